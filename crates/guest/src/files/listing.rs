//! Stat and list: one path, a folder, or everything below one.

use std::collections::VecDeque;
use std::fs::{Metadata, ReadDir};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use cofferdam_protocol::{Fault, FaultCode, FileEntry, FileType, Kind, Reply};

use serde::Serialize;

use super::place::{Place, blocking};
use crate::channel::Channel;
use crate::requests::{Failure, fault};

/// Encoded entries per frame: a frame's limit less the longest entry, be it a path with its link target, or a match with its
/// context lines.
const BATCH_BYTES: usize = 32 * 1024;

pub(crate) fn stat(place: &Place) -> Result<Reply, Fault> {
    match place.path.symlink_metadata() {
        Ok(metadata) => Ok(Reply::Stat(Some(entry(place.path.clone(), &metadata)))),
        Err(error) if is_absent(&error) => Ok(Reply::Stat(None)),
        Err(error) => Err(place.fault("look at", &error)),
    }
}

/// Also when the parent is missing, or is a file.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR))
}

pub(crate) async fn list(place: Place, recursive: bool, max_entries: u64, channel: &Channel) -> Result<Reply, Failure> {
    let mut walk = Walk { folders: VecDeque::new(), open: None, recursive, rest: max_entries, place };
    walk = blocking(move || walk.start()).await?;
    loop {
        let (next, batch) = blocking(move || walk.next_batch()).await?;
        walk = next;
        let Some(batch) = batch else { return Ok(Reply::Done) };
        channel.send(Kind::Data, batch).await?;
    }
}

/// As many entries as fit a frame; `None` after the last. `weight` is what one takes at most.
pub(super) fn batch<T: Serialize>(
    mut entries: impl Iterator<Item = T>,
    weight: impl Fn(&T) -> usize,
) -> Result<Option<Bytes>, Fault> {
    let (mut batch, mut bytes) = (Vec::new(), 0);
    while bytes < BATCH_BYTES {
        let Some(entry) = entries.next() else { break };
        bytes += weight(&entry);
        batch.push(entry);
    }
    if batch.is_empty() {
        return Ok(None);
    }
    let encoded = cofferdam_protocol::encode_data(&batch)
        .map_err(|error| fault(FaultCode::Internal, format!("a listing could not be encoded: {error}")))?;
    Ok(Some(encoded))
}

struct Walk {
    place: Place,
    folders: VecDeque<PathBuf>,
    open: Option<ReadDir>,
    recursive: bool,
    rest: u64,
}

impl Walk {
    fn start(mut self) -> Result<Walk, Fault> {
        self.open = Some(self.place.path.read_dir().map_err(|error| self.place.fault("list", &error))?);
        Ok(self)
    }

    fn next_batch(mut self) -> Result<(Walk, Option<Bytes>), Fault> {
        let entries = std::iter::from_fn(|| {
            self.rest = self.rest.checked_sub(1)?;
            self.next_entry()
        });
        let encoded = batch(entries, |entry| 40 + entry.path.len() + entry.target.as_ref().map_or(0, Vec::len))?;
        Ok((self, encoded))
    }

    fn next_entry(&mut self) -> Option<FileEntry> {
        loop {
            let Some(found) = self.open.as_mut()?.next() else {
                // A folder that was removed or became unreadable meanwhile has nothing to list.
                self.open = loop {
                    match self.folders.pop_front()?.read_dir() {
                        Ok(folder) => break Some(folder),
                        Err(_) => continue,
                    }
                };
                continue;
            };
            let Ok(path) = found.map(|found| found.path()) else { continue };
            let Ok(metadata) = path.symlink_metadata() else { continue };
            if self.recursive && metadata.is_dir() {
                self.folders.push_back(path.clone());
            }
            return Some(entry(path, &metadata));
        }
    }
}

fn entry(path: PathBuf, metadata: &Metadata) -> FileEntry {
    let file_type = match metadata.file_type() {
        kind if kind.is_file() => FileType::File,
        kind if kind.is_dir() => FileType::Dir,
        kind if kind.is_symlink() => FileType::Symlink,
        _ => FileType::Other,
    };
    let target = if file_type == FileType::Symlink { target(&path) } else { None };
    FileEntry {
        file_type,
        target,
        path: path.into_os_string().into_vec(),
        size: metadata.len(),
        mode: metadata.mode() & 0o7777,
        mtime_ms: metadata.mtime() * 1000 + metadata.mtime_nsec() / 1_000_000,
    }
}

fn target(path: &Path) -> Option<Vec<u8>> {
    path.read_link().ok().map(|target| target.into_os_string().into_vec())
}
