//! Everything below a folder, depth first, as the file system gives it.

use cofferdam_protocol::{MAX_DEPTH, is_name};
use ignore::gitignore::Gitignore;
use rustix::fs::{Dir, FileType};

use crate::folder::{Folder, Trail, file_type};
use crate::rules::Rules;

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A symbolic link.
    Link,
    /// A device, a socket or a FIFO.
    Other,
}

/// A step of a walk.
#[derive(Debug)]
pub enum Step {
    /// Down into a folder, the walk's current one now.
    Enter(Vec<u8>),
    /// An entry of the current folder.
    Entry(Vec<u8>, Kind),
    /// An entry that the walk leaves out, and why.
    Skipped(Vec<u8>, String),
    /// Back up.
    Leave,
}

/// A walk. All folders from the root down to the current one are open.
pub struct Walk {
    rules: Rules,
    levels: Vec<Level>,
    trail: Trail,
}

struct Level {
    folder: Folder,
    entries: Dir,
    rules: Option<Gitignore>,
    /// Of the path down to here.
    length: usize,
}

impl Level {
    fn new(folder: Folder, rules: &Rules, length: usize) -> rustix::io::Result<Level> {
        Ok(Level { entries: Dir::read_from(&folder)?, rules: rules.of(&folder), folder, length })
    }
}

impl Walk {
    /// Begins in `root`, which is no step itself.
    pub fn new(root: Folder, rules: Rules) -> std::io::Result<Walk> {
        let level = Level::new(root, &rules, 0)?;
        Ok(Walk { levels: vec![level], rules, trail: Trail::default() })
    }

    /// The current folder; `None` at the end.
    pub fn folder(&self) -> Option<&Folder> {
        self.levels.last().map(|level| &level.folder)
    }

    /// The path below the root of a name in the current folder.
    pub fn path(&self, name: &[u8]) -> Vec<u8> {
        self.trail.with(name)
    }

    pub(crate) fn trail(&self) -> &Trail {
        &self.trail
    }

    fn step_into(&mut self, name: Vec<u8>) -> Step {
        if self.levels.len() >= MAX_DEPTH {
            return Step::Skipped(name, format!("more than {MAX_DEPTH} folders deep"));
        }
        let Some(level) = self.levels.last() else { return Step::Leave };
        let path = self.trail.with(&name);
        match level.folder.enter(&name).and_then(|folder| Level::new(folder, &self.rules, path.len())) {
            Ok(level) => {
                self.levels.push(level);
                self.trail.push(&name);
                Step::Enter(name)
            }
            Err(error) => Step::Skipped(name, std::io::Error::from(error).to_string()),
        }
    }
}

impl Iterator for Walk {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        loop {
            let level = self.levels.last_mut()?;
            // A folder that cannot be read further ends here; earlier steps stand.
            let Some(Ok(entry)) = level.entries.read() else {
                self.levels.pop();
                if self.levels.is_empty() {
                    return None;
                }
                self.trail.pop();
                return Some(Step::Leave);
            };
            let name = entry.file_name().to_bytes();
            if !is_name(name) {
                continue;
            }
            let name = name.to_vec();
            let kind = match entry.file_type() {
                FileType::Unknown => match level.folder.stat(&name) {
                    Ok(stat) => file_type(&stat),
                    // Gone meanwhile.
                    Err(_) => continue,
                },
                kind => kind,
            };
            let path = self.trail.with(&name);
            let levels = self.levels.iter().filter_map(|level| Some((level.length, level.rules.as_ref()?)));
            if let Some(reason) = self.rules.reason(&path, kind == FileType::Directory, levels) {
                return Some(Step::Skipped(name, reason.as_str().to_owned()));
            }
            return Some(match kind {
                FileType::Directory => self.step_into(name),
                FileType::RegularFile => Step::Entry(name, Kind::File),
                FileType::Symlink => Step::Entry(name, Kind::Link),
                _ => Step::Entry(name, Kind::Other),
            });
        }
    }
}
