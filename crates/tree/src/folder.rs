//! A folder that is held open, and what can be done in it by single names, without following a link.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use cofferdam_protocol::Meta;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, openat, readlinkat, statat};
use rustix::io::Errno;

/// A folder that is held open.
#[derive(Debug)]
pub struct Folder(OwnedFd);

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Folder {
    /// Follows links: the path is the caller's own.
    pub fn open(path: &Path) -> io::Result<Folder> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Folder(rustix::fs::open(path, flags, Mode::empty())?))
    }

    /// The folder of this name in it; not a link to one.
    pub(crate) fn enter(&self, name: &[u8]) -> Result<Folder, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Folder(openat(self, os(name), flags, Mode::empty())?))
    }

    /// Opens for reading, without waiting for anything; what it really is, its metadata says.
    pub fn read(&self, name: &[u8]) -> Result<File, Errno> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        Ok(File::from(openat(self, os(name), flags, Mode::empty())?))
    }

    /// What is there under a name.
    pub fn stat(&self, name: &[u8]) -> Result<Stat, Errno> {
        statat(self, os(name), AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Where the link of this name points.
    pub fn target(&self, name: &[u8]) -> Result<Vec<u8>, Errno> {
        Ok(readlinkat(self, os(name), Vec::new())?.into_bytes())
    }
}

pub(crate) fn os(name: &[u8]) -> &OsStr {
    OsStr::from_bytes(name)
}

/// A path below a root, grown and shrunk with a walk.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trail(Vec<u8>);

impl Trail {
    pub(crate) fn push(&mut self, name: &[u8]) {
        if !self.0.is_empty() {
            self.0.push(b'/');
        }
        self.0.extend_from_slice(name);
    }

    pub(crate) fn pop(&mut self) {
        let end = self.0.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        self.0.truncate(end);
    }

    pub(crate) fn with(&self, name: &[u8]) -> Vec<u8> {
        let mut path = self.clone();
        if !name.is_empty() {
            path.push(name);
        }
        path.0
    }
}

pub(crate) fn meta(stat: &Stat) -> Meta {
    Meta { mode: (stat.st_mode & 0o7777) as _, mtime_s: stat.st_mtime as _, mtime_ns: stat.st_mtime_nsec as _ }
}

pub(crate) fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}
