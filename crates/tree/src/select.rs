//! Single entries of a tree, by their paths below its root, as the steps of a walk.

use std::collections::VecDeque;

use cofferdam_protocol::{MAX_DEPTH, is_name};
use rustix::fs::FileType;

use crate::folder::{Folder, Trail, file_type};
use crate::walk::{Kind, Step};

/// The names in a path below a root; `None` when it leads elsewhere.
pub(crate) fn names(path: &[u8]) -> Option<Vec<&[u8]>> {
    let names: Vec<_> = path.split(|byte| *byte == b'/').collect();
    (names.len() < MAX_DEPTH && names.iter().all(|name| is_name(name))).then_some(names)
}

/// A stack of open folders, moved from one path to the next.
pub(crate) struct Selection {
    root: Folder,
    stack: Vec<(Vec<u8>, Folder)>,
    trail: Trail,
    paths: VecDeque<Vec<u8>>,
}

impl Selection {
    pub(crate) fn new(root: Folder) -> Selection {
        Selection { root, stack: Vec::new(), trail: Trail::default(), paths: VecDeque::new() }
    }

    pub(crate) fn select(&mut self, paths: impl IntoIterator<Item = Vec<u8>>) {
        self.paths.extend(paths);
    }

    pub(crate) fn folder(&self) -> &Folder {
        self.stack.last().map_or(&self.root, |(_, folder)| folder)
    }

    pub(crate) fn trail(&self) -> &Trail {
        &self.trail
    }

    /// The next step; `None` at the end of what was selected so far.
    pub(crate) fn next(&mut self) -> Option<Step> {
        loop {
            let path = self.paths.front()?.clone();
            let Some(names) = names(&path) else {
                self.paths.pop_front();
                continue;
            };
            let (last, folders) = names.split_last()?;
            let shared = self.stack.iter().zip(folders).take_while(|((open, _), name)| open == *name).count();
            // The entry itself may be the folder where we are.
            let is_here = self.stack.len() == names.len() && shared == folders.len() && self.stack[shared].0 == *last;
            if is_here {
                self.paths.pop_front();
                continue;
            }
            if shared < self.stack.len() {
                return self.leave();
            }
            if let Some(name) = folders.get(shared) {
                let step = self.enter(name);
                if matches!(step, Step::Skipped(..)) {
                    self.paths.pop_front();
                }
                return Some(step);
            }
            self.paths.pop_front();
            let kind = match self.folder().stat(last) {
                Ok(stat) => file_type(&stat),
                // Gone meanwhile.
                Err(_) => continue,
            };
            return Some(match kind {
                FileType::Directory => self.enter(last),
                FileType::RegularFile => Step::Entry(last.to_vec(), Kind::File),
                FileType::Symlink => Step::Entry(last.to_vec(), Kind::Link),
                _ => Step::Entry(last.to_vec(), Kind::Other),
            });
        }
    }

    /// Up by one folder; `None` at the root.
    pub(crate) fn leave(&mut self) -> Option<Step> {
        self.stack.pop()?;
        self.trail.pop();
        Some(Step::Leave)
    }

    fn enter(&mut self, name: &[u8]) -> Step {
        match self.folder().enter(name) {
            Ok(folder) => {
                self.stack.push((name.to_vec(), folder));
                self.trail.push(name);
                Step::Enter(name.to_vec())
            }
            Err(error) => Step::Skipped(name.to_vec(), std::io::Error::from(error).to_string()),
        }
    }
}
