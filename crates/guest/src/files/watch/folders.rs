//! The watched folders themselves: opens, watches and reads them, and keeps [`Nodes`] as they are.
//!
//! A folder is watched before it is read, so what appears in it meanwhile comes as an event if it is not read here. The known
//! tree may lag behind: a folder that is not at its path was just renamed or removed, and the event is still to come. It is
//! tried again after that event.

use std::collections::{BTreeSet, VecDeque};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use cofferdam_protocol::{Fault, FaultCode};
use cofferdam_tree::io_fault;
use rustix::fs::{AtFlags, CWD, Dir, DirEntry, FileType, Mode, OFlags, fstat, fstatfs, openat, statat};
use rustix::io::Errno;

use super::inotify::{AROUND_FOLDER, IN_FOLDER, Watches};
use super::nodes::{Nodes, Spot};
use crate::requests::fault;

/// The most folders of one watch.
const MAX_FOLDERS: usize = 65_536;

/// Folders that may be misplaced at once before the whole tree is read again.
const MAX_MISPLACED: usize = 1024;

/// `sysfs`, `cgroup2` and `cgroup`: large, and without events.
const MADE_UP: [u64; 4] = [rustix::fs::PROC_SUPER_MAGIC as u64, 0x6265_6572, 0x6367_7270, 0x0027_e0eb];

/// A name in a folder that was read.
pub(super) struct Entry {
    pub(super) at: Spot,
    pub(super) is_dir: bool,
}

/// The next step of reading.
pub(super) enum Reading {
    Found(Entry),
    Next,
    Done,
}

/// Whether a renamed folder is the expected one.
#[derive(PartialEq, Eq)]
pub(super) enum Follow {
    Sure,
    Unsure,
}

/// Whether to report what is found: everything below a new folder is new.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tell {
    All,
    Nothing,
}

struct Scan {
    folder: i32,
    dir: Dir,
    tell: Tell,
}

pub(super) struct Folders {
    pub(super) watches: Watches,
    pub(super) nodes: Nodes,
    origin: PathBuf,
    /// Open, so that paths below it stay right when a folder above it is renamed.
    root: OwnedFd,
    /// The folder that the root is in.
    around: Option<i32>,
    visits: VecDeque<(Spot, Tell)>,
    scan: Option<Scan>,
    misplaced: BTreeSet<Spot>,
    is_lost: bool,
}

impl Folders {
    /// Watches `origin`, a path without links.
    pub(super) fn open(origin: PathBuf) -> Result<Folders, Fault> {
        let failed = |error: Errno| io_fault("watch", &origin, &error.into());
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = openat(CWD, &origin, flags, Mode::empty()).map_err(failed)?;
        let watches = Watches::new()?;
        let around = match origin.parent() {
            Some(parent) => {
                let parent = openat(CWD, parent, flags, Mode::empty()).map_err(failed)?;
                Some(watches.add(parent.as_fd(), AROUND_FOLDER).map_err(|error| refused(&origin, error))?)
            }
            None => None,
        };
        let number = watches.add(root.as_fd(), IN_FOLDER).map_err(|error| refused(&origin, error))?;
        Ok(Folders {
            watches,
            nodes: Nodes::new(number),
            origin,
            root,
            around,
            visits: VecDeque::new(),
            scan: None,
            misplaced: BTreeSet::new(),
            is_lost: false,
        })
    }

    /// Whether this is the root's own name in the folder around it.
    pub(super) fn is_origin(&self, at: &Spot) -> bool {
        Some(at.folder) == self.around && self.origin.file_name().is_some_and(|name| name.as_bytes() == &*at.name)
    }

    /// Whether the watched file or folder is still at its path.
    pub(super) fn is_there(&self) -> bool {
        match (fstat(&self.root), self.origin.metadata()) {
            (Ok(held), Ok(there)) => (held.st_dev, held.st_ino) == (there.dev(), there.ino()),
            _ => false,
        }
    }

    /// Whether the known tree is unreliable, and must be read again.
    pub(super) fn is_lost(&self) -> bool {
        self.is_lost
    }

    pub(super) fn is_reading(&self) -> bool {
        self.scan.is_some() || !self.visits.is_empty()
    }

    /// Forgets everything, and watches the root again.
    pub(super) fn start_over(&mut self) -> Result<(), Fault> {
        self.nodes.all().for_each(|folder| self.watches.remove(folder));
        self.visits.clear();
        self.scan = None;
        self.misplaced.clear();
        self.is_lost = false;
        // Under a new number: events of the old one are ignored.
        let number = self.watches.add(self.root.as_fd(), IN_FOLDER).map_err(|error| refused(&self.origin, error))?;
        self.nodes = Nodes::new(number);
        Ok(())
    }

    /// Watches everything below the root as well, without reporting what exists.
    pub(super) fn walk(&mut self) -> Result<(), Fault> {
        let root = openat(&self.root, ".", OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .and_then(Dir::new)
            .map_err(|error| io_fault("watch", &self.origin, &error.into()))?;
        self.scan = Some(Scan { folder: self.nodes.root(), dir: root, tell: Tell::Nothing });
        while !matches!(self.read_on()?, Reading::Done) {}
        Ok(())
    }

    /// Queues a folder to be watched and read.
    pub(super) fn visit(&mut self, at: Spot, tell: Tell) {
        self.visits.push_back((at, tell));
    }

    /// One step of reading; all reading is done before new events are handled.
    pub(super) fn read_on(&mut self) -> Result<Reading, Fault> {
        if let Some(scan) = &mut self.scan {
            let (folder, tell) = (scan.folder, scan.tell);
            let Some(Ok(entry)) = scan.dir.read() else {
                // At its end, or it was removed meanwhile.
                self.scan = None;
                return Ok(Reading::Next);
            };
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                return Ok(Reading::Next);
            }
            let entry = Entry { at: Spot::new(folder, name), is_dir: is_dir(&scan.dir, &entry) };
            if entry.is_dir {
                self.visits.push_back((entry.at.clone(), tell));
            }
            return Ok(if tell == Tell::All { Reading::Found(entry) } else { Reading::Next });
        }
        match self.visits.pop_front() {
            Some((at, tell)) => self.enter(at, tell).map(|()| Reading::Next),
            None => Ok(Reading::Done),
        }
    }

    fn enter(&mut self, at: Spot, tell: Tell) -> Result<(), Fault> {
        let Some((folder, dir)) = self.watch(&at)? else { return Ok(()) };
        if tell == Tell::All {
            // Renamed to here, with the event still to come: another folder may be at its old path.
            self.misplaced.extend(self.nodes.spot(folder).filter(|old| **old != at).cloned());
        }
        let is_circle = !self.place(folder, at);
        // When nothing was known before, this is a folder that is mounted inside itself.
        if is_circle && tell == Tell::Nothing {
            return Ok(());
        }
        self.is_lost |= is_circle;
        self.scan = Dir::new(dir).ok().map(|dir| Scan { folder, dir, tell });
        Ok(())
    }

    /// Opens and watches what is at a path now; `None` when nothing there can be watched.
    fn watch(&mut self, at: &Spot) -> Result<Option<(i32, OwnedFd)>, Fault> {
        let Some(path) = self.nodes.path(at) else { return Ok(None) };
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let dir = match openat(&self.root, &path[..], flags, Mode::empty()) {
            Ok(dir) => dir,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {
                self.misplaced.insert(at.clone());
                self.is_lost |= self.misplaced.len() > MAX_MISPLACED;
                return Ok(None);
            }
            Err(error @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM)) => return Err(refused(&self.origin, error)),
            // Permission denied.
            Err(_) => return Ok(None),
        };
        if fstatfs(&dir).is_ok_and(|system| MADE_UP.contains(&(system.f_type as u64))) {
            return Ok(None);
        }
        let folder = match self.watches.add(dir.as_fd(), IN_FOLDER) {
            Ok(folder) => folder,
            Err(error @ (Errno::NOSPC | Errno::NOMEM)) => return Err(refused(&self.origin, error)),
            Err(_) => return Ok(None),
        };
        if self.nodes.len() >= MAX_FOLDERS && !self.nodes.contains(folder) {
            let message = format!(
                "cannot watch \"{}\": it has more than {MAX_FOLDERS} folders; watch a part of it, or leave recursive out",
                self.origin.display()
            );
            return Err(fault(FaultCode::LimitExceeded, message));
        }
        Ok(Some((folder, dir)))
    }

    /// False when it cannot be there.
    fn place(&mut self, folder: i32, at: Spot) -> bool {
        let placed = self.nodes.place(folder, at);
        let is_placed = placed.is_ok();
        placed.unwrap_or_default().into_iter().for_each(|folder| self.watches.remove(folder));
        is_placed
    }

    /// A folder was renamed: its watch stays, and so do those below it.
    pub(super) fn follow(&mut self, from: &Spot, to: &Spot) -> Result<Follow, Fault> {
        self.misplaced.remove(from);
        let Some(known) = self.nodes.at(from) else {
            self.visit(to.clone(), Tell::All);
            return Ok(Follow::Sure);
        };
        // Another folder may be at the path by the time it is watched: then this was not the renamed one.
        match self.watch(to)? {
            Some((folder, _)) if folder != known => {
                self.visit(to.clone(), Tell::All);
                Ok(Follow::Unsure)
            }
            _ => {
                self.is_lost |= !self.place(known, to.clone());
                self.misplaced.remove(to);
                Ok(Follow::Sure)
            }
        }
    }

    /// A folder was removed, or moved out of the tree.
    pub(super) fn leave(&mut self, at: &Spot) {
        self.misplaced.remove(at);
        if let Some(folder) = self.nodes.at(at) {
            self.forget(folder);
        }
    }

    pub(super) fn forget(&mut self, folder: i32) {
        self.nodes.remove(folder).into_iter().for_each(|folder| self.watches.remove(folder));
    }

    /// Looks again for misplaced folders. False when there are none.
    pub(super) fn try_again(&mut self) -> bool {
        let misplaced = std::mem::take(&mut self.misplaced);
        self.visits.extend(misplaced.into_iter().map(|at| (at, Tell::All)));
        self.is_reading()
    }
}

fn is_dir(folder: &Dir, entry: &DirEntry) -> bool {
    match entry.file_type() {
        FileType::Unknown => folder
            .fd()
            .and_then(|folder| statat(folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW))
            .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Directory),
        known => known == FileType::Directory,
    }
}

fn refused(origin: &Path, error: Errno) -> Fault {
    let what = match error {
        Errno::NOSPC => {
            "the machine has no watches left (fs.inotify.max_user_watches counts those of all its sandboxes); watch a \
             smaller folder, end other watches, or raise that limit on the machine that runs the sandboxes"
        }
        Errno::NOMEM => "the sandbox has no memory left for it; watch a smaller folder",
        Errno::MFILE | Errno::NFILE => "too many files are open; close some first",
        other => return io_fault("watch", origin, &other.into()),
    };
    fault(FaultCode::LimitExceeded, format!("cannot watch \"{}\": {what}", origin.display()))
}
