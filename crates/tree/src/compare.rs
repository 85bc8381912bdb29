//! Finds what of a tree exists already, so that only the rest is transferred: by kind, size, time, mode and target.

use std::io;
use std::path::Path;

use cofferdam_protocol::{FileType, Fingerprint};
use rustix::fs::{FileType as Kind, Stat};

use crate::folder::{Folder, file_type, meta};
use crate::rules::Rules;
use crate::select::names;
use crate::walk::{Step, Walk};

/// Mode bits that are not compared, because transfers drop them.
const SPECIAL_BITS: u32 = 0o7000;

/// The fingerprints of all that is below a folder.
pub struct Survey(Walk);

impl Survey {
    /// Without what the rules leave out.
    pub fn new(path: &Path, rules: Rules) -> io::Result<Survey> {
        Ok(Survey(Walk::new(Folder::open(path)?, rules)?))
    }
}

impl Iterator for Survey {
    type Item = Fingerprint;

    fn next(&mut self) -> Option<Fingerprint> {
        loop {
            // A folder that was entered is looked at from the inside.
            let (name, stat) = match self.0.next()? {
                Step::Enter(_) => (Vec::new(), rustix::fs::fstat(self.0.folder()?)),
                Step::Entry(name, _) => {
                    let stat = self.0.folder()?.stat(&name);
                    (name, stat)
                }
                Step::Skipped(..) | Step::Leave => continue,
            };
            let Ok(stat) = stat else { continue };
            if let Some(fingerprint) = fingerprint(self.0.folder()?, &name, self.0.path(&name), &stat) {
                return Some(fingerprint);
            }
        }
    }
}

fn fingerprint(folder: &Folder, name: &[u8], path: Vec<u8>, stat: &Stat) -> Option<Fingerprint> {
    let (kind, target) = match file_type(stat) {
        Kind::RegularFile => (FileType::File, None),
        Kind::Directory => (FileType::Dir, None),
        Kind::Symlink => (FileType::Symlink, Some(folder.target(name).ok()?)),
        _ => return None,
    };
    Some(Fingerprint { path, kind, size: u64::try_from(stat.st_size).unwrap_or_default(), meta: meta(stat), target })
}

/// Which of these differ below a folder, by their index in the list. A path that leads elsewhere is an error.
pub fn stale(root: &Path, entries: &[Fingerprint]) -> io::Result<Vec<u32>> {
    let root = Folder::open(root)?;
    let mut stale = Vec::new();
    let mut stack: Vec<(&[u8], Folder)> = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let names = names(&entry.path).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        let Some((last, folders)) = names.split_last() else { continue };
        let shared = stack.iter().zip(folders).take_while(|((open, _), name)| open == *name).count();
        stack.truncate(shared);
        let mut is_reached = true;
        for name in &folders[shared..] {
            match stack.last().map_or(&root, |(_, folder)| folder).enter(name) {
                Ok(folder) => stack.push((name, folder)),
                Err(_) => {
                    is_reached = false;
                    break;
                }
            }
        }
        let folder = stack.last().map_or(&root, |(_, folder)| folder);
        if !is_reached || !is_same(folder, last, entry) {
            stale.push(index as u32);
        }
    }
    Ok(stale)
}

fn is_same(folder: &Folder, name: &[u8], entry: &Fingerprint) -> bool {
    let Ok(stat) = folder.stat(name) else { return false };
    let Some(there) = fingerprint(folder, name, Vec::new(), &stat) else { return false };
    let has_same_mode = (there.meta.mode ^ entry.meta.mode) & !SPECIAL_BITS == 0;
    let has_same_time = (there.meta.mtime_s, there.meta.mtime_ns) == (entry.meta.mtime_s, entry.meta.mtime_ns);
    there.kind == entry.kind
        && match entry.kind {
            FileType::File => there.size == entry.size && has_same_time && has_same_mode,
            // Its time changes with everything that is made in it.
            FileType::Dir => has_same_mode,
            FileType::Symlink => there.target == entry.target,
            FileType::Other => false,
        }
}
