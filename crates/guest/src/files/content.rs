//! Reads and writes a file's content.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use bytes::Bytes;
use cofferdam_protocol::{Fault, FaultCode, Kind, Reply, Write};

use super::blocks::{BLOCK, Block, next_block};
use super::draft::Draft;
use super::place::{Place, blocking, brief};
use crate::channel::Channel;
use crate::fd::READ_SIZE;
use crate::process::users;
use crate::requests::{Failure, fault};
use crate::workspace::Workspace;

pub(crate) async fn read(place: Place, offset: u64, limit: u64, channel: &Channel) -> Result<Reply, Failure> {
    let mut reader = Reader { place, file: None, offset, rest: limit, size: 0 };
    let mut told = false;
    loop {
        // The first block is short: most files end in it, and need no helper thread.
        let (next, block, end) = match reader.file {
            None => brief(move || reader.next(READ_SIZE)).await?,
            Some(_) => blocking(move || reader.next(BLOCK)).await?,
        };
        reader = next;
        if !told {
            channel.reply(&Reply::Opened { size: reader.size }).await?;
            told = true;
        }
        let mut block = Bytes::from(block);
        while !block.is_empty() {
            channel.send(Kind::Data, block.split_to(READ_SIZE.min(block.len()))).await?;
        }
        if let Some(truncated) = end {
            return Ok(Reply::Content { size: reader.size, truncated });
        }
    }
}

struct Reader {
    place: Place,
    file: Option<File>,
    offset: u64,
    rest: u64,
    size: u64,
}

impl Reader {
    /// The next block, and when it is the last one, whether the file goes on after it.
    fn next(mut self, at_most: usize) -> Result<(Reader, Vec<u8>, Option<bool>), Fault> {
        let failed = |place: &Place, error: io::Error| place.fault("read", &error);
        let file = match self.file.take() {
            Some(file) => file,
            None => {
                let file = open_regular(&self.place)?;
                self.size = file.metadata().map_err(|error| failed(&self.place, error))?.len();
                file
            }
        };
        let wanted = self.rest.min(at_most as u64) as usize;
        // Files in /proc report size 0; for others the size says how much to allocate.
        let expected = if self.size == 0 { READ_SIZE as u64 } else { self.size.saturating_sub(self.offset) };
        let mut block = vec![0; wanted.min(expected as usize)];
        let mut filled = 0;
        while filled < block.len() {
            match file.read_at(&mut block[filled..], self.offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(&self.place, error)),
            }
        }
        block.truncate(filled);
        self.offset += filled as u64;
        if filled > 0 {
            // It may have grown, or be one of those in /proc.
            self.size = self.size.max(self.offset);
        }
        self.rest -= filled as u64;
        let more = file.read_at(&mut [0], self.offset).map_err(|error| failed(&self.place, error))? > 0;
        let end = (!more || self.rest == 0).then_some(more);
        self.file = Some(file);
        Ok((self, block, end))
    }
}

/// Opens without waiting for a FIFO's other end, and only what has an end.
pub(super) fn open_regular(place: &Place) -> Result<File, Fault> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC)
        .open(&place.path)
        .map_err(|error| match error.raw_os_error() {
            Some(libc::ENXIO) => not_regular(&place.path),
            _ => place.fault("read", &error),
        })?;
    let metadata = file.metadata().map_err(|error| place.fault("read", &error))?;
    if metadata.is_dir() {
        return Err(place.fault("read", &io::Error::from_raw_os_error(libc::EISDIR)));
    }
    if metadata.is_file() { Ok(file) } else { Err(not_regular(&place.path)) }
}

pub(super) fn not_regular(path: &Path) -> Fault {
    let message = format!("\"{}\" is a device, a socket or a FIFO, not a regular file", path.display());
    fault(FaultCode::InvalidArgument, message)
}

pub(crate) async fn write(
    mut place: Place,
    write: Write,
    workspace: &Workspace,
    channel: &Channel,
) -> Result<Reply, Failure> {
    if let Some(user) = &write.user {
        place.owner = users::resolve(Some(user))?.owner();
    }
    let mut draft: Option<Draft> = None;
    let mut size = 0;
    loop {
        let Block { pieces, bytes, is_last } = next_block(channel).await?;
        size += bytes;
        workspace.admit(&place.path, size).await?;
        let (place, write) = (place.clone(), write.clone());
        let taken = draft.take();
        let is_short = is_last && taken.is_none() && pieces.len() <= 1;
        let work = move || {
            let mut draft = match taken {
                Some(draft) => draft,
                None => Draft::begin(place, write)?,
            };
            draft.append(&pieces)?;
            if is_last { draft.commit() } else { Ok(draft) }
        };
        draft = Some(if is_short { brief(work).await? } else { blocking(work).await? });
        if is_last && let Some(mut done) = draft.take() {
            if let Some(replaced) = done.replaced.take() {
                drop(tokio::task::spawn_blocking(move || drop(replaced)));
            }
            workspace.add(size);
            return Ok(Reply::Written { path: done.target.to_string_lossy().into_owned(), size: done.size });
        }
    }
}
