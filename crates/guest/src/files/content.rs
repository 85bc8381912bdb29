//! A file's content, in and out.
//!
//! Invariant: a written file appears whole or not at all. It is written beside its place under another name, which is
//! removed again whatever goes wrong, and renamed over it at the end.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use cofferdam_protocol::{Fault, FaultCode, Kind, Reply, Write};
use cofferdam_tree::{Fate, draft_name, io_fault};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::place::{Place, blocking, brief};
use super::tree::{make_dirs, own};
use crate::channel::{Channel, Inbound};
use crate::fd::READ_SIZE;
use crate::process::users::{self, ROOT};
use crate::requests::{Failure, fault};
use crate::workspace::Workspace;

/// What one trip to a helper thread reads or writes.
const BLOCK: usize = 8 * READ_SIZE;

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
        // Files in /proc say that they are empty; others say how much there is to allocate for.
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

/// Opens without waiting for a FIFO's other end, and gives only what has an end.
fn open_regular(place: &Place) -> Result<File, Fault> {
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
    let mut pending: Vec<Bytes> = Vec::new();
    let mut size = 0;
    loop {
        let end = match channel.recv().await? {
            Inbound::Data(bytes) => {
                size += bytes.len() as u64;
                pending.push(bytes);
                false
            }
            Inbound::End => true,
        };
        if !end && pending.len() * READ_SIZE < BLOCK {
            continue;
        }
        workspace.admit(&place.path, size).await?;
        let (place, write, blocks) = (place.clone(), write.clone(), std::mem::take(&mut pending));
        let taken = draft.take();
        let is_short = end && taken.is_none() && blocks.len() <= 1;
        let work = move || {
            let mut draft = match taken {
                Some(draft) => draft,
                None => Draft::begin(place, write)?,
            };
            draft.append(&blocks)?;
            if end { draft.commit() } else { Ok(draft) }
        };
        draft = Some(if is_short { brief(work).await? } else { blocking(work).await? });
        if end && let Some(mut done) = draft.take() {
            if let Some(replaced) = done.replaced.take() {
                drop(tokio::task::spawn_blocking(move || drop(replaced)));
            }
            workspace.add(size);
            return Ok(Reply::Written { path: done.target.to_string_lossy().into_owned(), size: done.size });
        }
    }
}

/// A file that is not there yet.
struct Draft {
    place: Place,
    options: Write,
    /// Where it will be: the place, or where a link there leads.
    target: PathBuf,
    /// Where it is until then.
    path: PathBuf,
    file: File,
    size: u64,
    committed: bool,
    /// Holding on to the old file puts off the work of freeing it until the answer is under way.
    replaced: Option<File>,
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.committed {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Draft {
    fn begin(place: Place, options: Write) -> Result<Draft, Fault> {
        let target = follow_links(&place)?;
        let replaced = OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_NOFOLLOW).open(&target);
        let mode = match replaced.as_ref().map_err(|_| ()).and_then(|file| file.metadata().map_err(|_| ())) {
            Ok(there) if there.is_dir() => {
                return Err(place.fault("write", &io::Error::from_raw_os_error(libc::EISDIR)));
            }
            Ok(there) if !there.is_file() => return Err(not_regular(&target)),
            Ok(_) if !options.overwrite => {
                return Err(place.fault("write", &io::Error::from_raw_os_error(libc::EEXIST)));
            }
            Ok(there) => options.mode.unwrap_or(there.mode() & 0o7777),
            Err(_) => options.mode.unwrap_or(0o644),
        };
        let name = match target.file_name() {
            Some(name) => name,
            None => return Err(place.fault("write", &io::Error::from_raw_os_error(libc::EISDIR))),
        };
        // The folder itself first: that it is there is the common case.
        let folder = target.parent().unwrap_or(Path::new("/"));
        let fate = if replaced.is_ok() { Fate::Replaces } else { Fate::New };
        let path = folder.join(OsStr::from_bytes(&draft_name(name.as_bytes(), fate)));
        // Nobody else's until it has its owner; the guest's own umask is 0.
        let mode_at_first = if place.owner == ROOT { mode } else { mode & 0o700 };
        let open = || OpenOptions::new().write(true).create_new(true).mode(mode_at_first).open(&path);
        let file = match open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make_dirs(folder, None, place.owner).map_err(|error| io_fault("make the folder", folder, &error))?;
                open()
            }
            other => other,
        };
        let file = file.map_err(|error| place.fault("write", &error))?;
        let replaced = replaced.ok();
        let draft = Draft { target, path, file, size: 0, committed: false, place, options, replaced };
        if draft.place.owner != ROOT {
            let given = own(&draft.file, draft.place.owner)
                .and_then(|()| draft.file.set_permissions(std::fs::Permissions::from_mode(mode)));
            given.map_err(|error| draft.place.fault("write", &error))?;
        }
        if draft.target.file_name().is_some_and(|name| name.len() > 255) {
            return Err(draft.place.fault("write", &io::Error::from_raw_os_error(libc::ENAMETOOLONG)));
        }
        Ok(draft)
    }

    fn append(&mut self, blocks: &[Bytes]) -> Result<(), Fault> {
        for block in blocks {
            self.file.write_all(block).map_err(|error| self.place.fault("write", &error))?;
            self.size += block.len() as u64;
        }
        Ok(())
    }

    fn commit(mut self) -> Result<Draft, Fault> {
        let flags = if self.options.overwrite { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
        renameat_with(CWD, &self.path, CWD, &self.target, flags)
            .map_err(|error| self.place.fault("write", &error.into()))?;
        self.committed = true;
        Ok(self)
    }
}

/// Writing to a link writes what it points to, as everywhere on Linux; the link stays.
fn follow_links(place: &Place) -> Result<PathBuf, Fault> {
    let mut target = place.path.clone();
    for _ in 0..40 {
        match std::fs::read_link(&target) {
            Ok(next) => target = target.parent().unwrap_or(Path::new("/")).join(next),
            // Not a link, not there, or not reachable: what comes next says so.
            Err(_) => return Ok(target),
        }
    }
    Err(place.fault("write", &io::Error::from_raw_os_error(libc::ELOOP)))
}
