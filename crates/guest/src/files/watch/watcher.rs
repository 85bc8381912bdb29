//! Turns events into changes for the host, and keeps the watched folders up to date.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bytes::Bytes;
use cofferdam_protocol::{Fault, FileChange};

use super::backlog::{Backlog, Happening, Next};
use super::batch::{Batch, Scope};
use super::folders::{Folders, Follow, Reading, Tell};
use super::inotify::{Event, Watches};
use super::nodes::Spot;
use crate::files::place::Place;
use cofferdam_tree::draft_fate;

/// Reported names that are remembered; beyond that, one may be reported twice.
const MAX_TOLD: usize = 65_536;

/// Why a watcher stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// A frame of changes is ready.
    Full,
    /// The second half of a rename may still come.
    Half,
    /// All events that were read are handled.
    Drained,
    /// What was watched is gone.
    Over,
}

pub(super) struct Watcher {
    folders: Folders,
    recursive: bool,
    backlog: Backlog,
    batch: Batch,
    told: Told,
    has_tried_again: bool,
    is_over: bool,
}

impl Watcher {
    /// Returns when the watch is complete.
    pub(super) fn begin(place: &Place, recursive: bool) -> Result<Watcher, Fault> {
        let target = place.path.canonicalize().map_err(|error| place.fault("watch", &error))?;
        let is_dir = target.metadata().map_err(|error| place.fault("watch", &error))?.is_dir();
        let (origin, scope) = match (target.parent(), target.file_name()) {
            // Watch its folder: a file that is replaced is another file.
            (Some(parent), Some(name)) if !is_dir => {
                let shown = place.path.file_name().unwrap_or(name).as_bytes().to_vec();
                (parent, Scope::File { name: name.as_bytes().to_vec(), shown, is_there: true })
            }
            _ => (target.as_path(), Scope::Folder),
        };
        let recursive = recursive && is_dir;
        let mut folders = Folders::open(Path::to_owned(origin))?;
        if recursive {
            folders.walk()?;
        }
        Ok(Watcher {
            folders,
            recursive,
            backlog: Backlog::default(),
            batch: Batch::new(scope),
            told: Told::default(),
            has_tried_again: false,
            is_over: false,
        })
    }

    pub(super) fn watches(&self) -> Watches {
        self.folders.watches.clone()
    }

    pub(super) fn backlog(&mut self) -> &mut Backlog {
        &mut self.backlog
    }

    pub(super) fn take_in(&mut self, events: Vec<Event>) {
        self.has_tried_again = false;
        self.backlog.extend(events);
    }

    /// Whether the next step reads no folder, and so cannot block.
    pub(super) fn is_brief(&self) -> bool {
        !(self.folders.is_reading() || self.folders.is_lost() || self.backlog.has_folders())
    }

    pub(super) fn take_batch(&mut self) -> Result<Option<Bytes>, Fault> {
        self.batch.take()
    }

    /// The kernel has no more events. False when there is still something to do.
    pub(super) fn has_caught_up(&mut self) -> bool {
        // Once after each event: misplaced folders wait for the next one.
        if !std::mem::replace(&mut self.has_tried_again, true) && self.folders.try_again() {
            return false;
        }
        self.told.clear();
        true
    }

    /// Handles events until something else must be done first.
    pub(super) fn work(mut self) -> Result<(Watcher, Step), Fault> {
        let step = loop {
            if self.batch.is_full() {
                break Step::Full;
            }
            if self.is_over {
                break Step::Over;
            }
            if self.folders.is_lost() {
                self.start_over()?;
            }
            match self.folders.read_on()? {
                Reading::Found(entry) if !entry.is_dir && draft_fate(&entry.at.name).is_some() => {}
                Reading::Found(entry) => {
                    self.told.insert(&entry.at);
                    self.tell(&entry.at, FileChange::Create);
                }
                Reading::Next => {}
                Reading::Done => match self.backlog.next() {
                    Next::Happening(happening) => self.take(happening)?,
                    Next::Half => break Step::Half,
                    Next::Empty => break Step::Drained,
                },
            }
        };
        Ok((self, step))
    }

    fn take(&mut self, happening: Happening) -> Result<(), Fault> {
        match happening {
            Happening::Changed(at) => self.tell(&at, FileChange::Change),
            Happening::Made { at, is_dir } => self.made(at, is_dir),
            Happening::Gone { at, is_dir } => self.gone(&at, is_dir),
            Happening::Moved { from, to, is_dir } => self.moved(from, to, is_dir)?,
            Happening::Unwatched(folder) if folder == self.folders.nodes.root() => self.end(),
            Happening::Unwatched(folder) => self.folders.forget(folder),
            Happening::Overflow => self.start_over()?,
        }
        Ok(())
    }

    fn made(&mut self, at: Spot, is_dir: bool) {
        // Already found by reading its folder.
        if self.told.remove(&at) {
            return;
        }
        self.tell(&at, FileChange::Create);
        if is_dir && self.recursive && self.folders.nodes.contains(at.folder) {
            self.folders.visit(at, Tell::All);
        }
    }

    fn gone(&mut self, at: &Spot, is_dir: bool) {
        if self.folders.is_origin(at) {
            return self.end();
        }
        self.told.remove(at);
        self.tell(at, FileChange::Delete);
        if is_dir {
            self.folders.leave(at);
        }
    }

    fn moved(&mut self, from: Spot, to: Spot, is_dir: bool) -> Result<(), Fault> {
        let is_watched = |spot: &Spot| self.folders.nodes.contains(spot.folder);
        match (is_watched(&from), is_watched(&to)) {
            (true, true) => {}
            (true, false) => {
                self.gone(&from, is_dir);
                return Ok(());
            }
            // Also from the folder around the root.
            (false, _) => {
                self.made(to, is_dir);
                return Ok(());
            }
        }
        self.told.remove(&from);
        match (self.folders.nodes.path(&from), self.folders.nodes.path(&to)) {
            (Some(from), Some(to)) => self.batch.push(FileChange::Rename { from, to }),
            _ => self.batch.push(FileChange::Overflow),
        }
        if is_dir && self.recursive {
            if self.folders.follow(&from, &to)? == Follow::Unsure {
                self.batch.push(FileChange::Overflow);
            }
            // Those below it may have been looked for at its new path.
            self.folders.try_again();
        }
        Ok(())
    }

    /// The known tree may be wrong. Reported only when everything is watched again, so a host that looks then misses
    /// nothing.
    fn start_over(&mut self) -> Result<(), Fault> {
        if !self.folders.is_there() {
            self.end();
            return Ok(());
        }
        self.told.clear();
        self.folders.start_over()?;
        if self.recursive {
            self.folders.walk()?;
        }
        self.batch.push(FileChange::Overflow);
        Ok(())
    }

    fn end(&mut self) {
        self.batch.push(FileChange::Delete(Vec::new()));
        self.is_over = true;
    }

    fn tell(&mut self, at: &Spot, change: impl FnOnce(Vec<u8>) -> FileChange) {
        match self.folders.nodes.path(at) {
            Some(path) => self.batch.push(change(path)),
            // Its path is too long to send.
            None if self.folders.nodes.contains(at.folder) => self.batch.push(FileChange::Overflow),
            None => {}
        }
    }
}

/// Names that were reported because reading found them: their events may still come. Each is an 8-byte keyed hash, so that
/// nobody can construct a collision.
#[derive(Default)]
struct Told {
    hasher: RandomState,
    names: HashSet<u64>,
}

impl Told {
    fn insert(&mut self, at: &Spot) {
        if self.names.len() < MAX_TOLD {
            self.names.insert(self.hasher.hash_one(at));
        }
    }

    fn remove(&mut self, at: &Spot) -> bool {
        !self.names.is_empty() && self.names.remove(&self.hasher.hash_one(at))
    }

    fn clear(&mut self) {
        if !self.names.is_empty() {
            self.names = HashSet::new();
        }
    }
}
