//! Everything below a folder whose path matches a pattern.

use cofferdam_protocol::{Fault, FileEntry, FileType, Glob, Reply};
use cofferdam_tree::{Folder, Kind, Rules, Step as WalkStep, Walk};
use rustix::fs::Stat;

use super::globs::{Globs, Reach};
use super::{MAX_PATH, Search, Step, below};
use crate::files::place::Place;

pub(super) struct Names {
    place: Place,
    walk: Walk,
    globs: Globs,
    rest: u64,
    looked_at: u64,
    truncated: bool,
}

impl Names {
    pub(super) fn new(place: Place, glob: &Glob, rules: Rules) -> Result<Names, Fault> {
        let globs = Globs::new(&glob.patterns, Reach::Root)?;
        let walk = Folder::open(&place.path).and_then(|root| Walk::new(root, rules));
        let walk = walk.map_err(|error| place.fault("search", &error))?;
        Ok(Names { place, walk, globs, rest: glob.max_results, looked_at: 0, truncated: false })
    }

    /// The current entry of the walk; `None` when it was removed meanwhile.
    fn entry(&self, path: &[u8], name: &[u8], kind: Option<Kind>) -> Option<FileEntry> {
        let folder = self.walk.folder()?;
        let stat = match kind {
            // A folder that was just entered is the current one.
            None => rustix::fs::fstat(folder).ok()?,
            Some(_) => folder.stat(name).ok()?,
        };
        let file_type = match kind {
            None => FileType::Dir,
            Some(Kind::File) => FileType::File,
            Some(Kind::Link) => FileType::Symlink,
            Some(Kind::Other) => FileType::Other,
        };
        let target = (file_type == FileType::Symlink).then(|| folder.target(name).ok()).flatten();
        Some(entry(below(&self.place.path, path), file_type, &stat, target))
    }
}

impl Search for Names {
    type Found = FileEntry;

    fn step(&mut self) -> Step<FileEntry> {
        let (name, kind) = match self.walk.next() {
            None => return Step::End,
            Some(WalkStep::Enter(name)) => (name, None),
            Some(WalkStep::Entry(name, kind)) => (name, Some(kind)),
            Some(WalkStep::Skipped(..) | WalkStep::Leave) => return Step::Busy,
        };
        self.looked_at += 1;
        let path = self.walk.path(if kind.is_none() { b"" } else { &name });
        if path.len() > MAX_PATH || !self.globs.matches(&path, kind.is_none()) {
            return Step::Busy;
        }
        let Some(entry) = self.entry(&path, &name, kind).filter(|entry| entry.path.len() <= MAX_PATH) else {
            return Step::Busy;
        };
        let Some(rest) = self.rest.checked_sub(1) else {
            self.truncated = true;
            return Step::End;
        };
        self.rest = rest;
        Step::Found(entry)
    }

    fn weight(entry: &FileEntry) -> usize {
        40 + entry.path.len() + entry.target.as_ref().map_or(0, Vec::len)
    }

    fn reply(&self) -> Reply {
        Reply::Searched { truncated: self.truncated, files: self.looked_at, skipped: 0 }
    }
}

fn entry(path: Vec<u8>, file_type: FileType, stat: &Stat, target: Option<Vec<u8>>) -> FileEntry {
    let (seconds, nanos): (i64, i64) = (stat.st_mtime as _, stat.st_mtime_nsec as _);
    FileEntry {
        path,
        file_type,
        size: stat.st_size as _,
        mode: stat.st_mode & 0o7777,
        mtime_ms: seconds * 1000 + nanos / 1_000_000,
        target,
    }
}
