//! The folder that a layer is unpacked into, held open.
//!
//! Names from a layer are resolved by the kernel as if the folder were `/` (`openat2` with `RESOLVE_IN_ROOT`), as they would be
//! in a container: a link may point anywhere, and still leads to a path in here. Nothing outside is ever opened.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, ResolveFlags, chmodat, mkdirat, openat, openat2, renameat, statat, unlinkat,
};
use rustix::io::Errno;

use super::budget::Budget;
use super::tarball::told;
use crate::error::{ImageError, Result};

/// Tries of a lookup: a rename anywhere on the system can make the kernel refuse `..` for a moment.
const TRIES: usize = 128;

pub(super) struct Root {
    folder: OwnedFd,
    trash: OwnedFd,
    removed: u64,
    /// The folder of the last entry: the next one is mostly in the same.
    last: Option<(Vec<u8>, Rc<OwnedFd>)>,
    /// Parent folders without an entry of their own.
    implied: Vec<Vec<u8>>,
    budget: Budget,
}

impl AsFd for Root {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }
}

impl Root {
    /// `trash` takes folders that are replaced; it is on the same file system, and outside.
    pub(super) fn open(path: &Path, trash: &Path, budget: Budget) -> Result<Root> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = |path| rustix::fs::open(path, flags, Mode::empty()).map_err(ImageError::storage("open", path));
        let (folder, trash) = (open(path)?, open(trash)?);
        Ok(Root { folder, trash, removed: 0, last: None, implied: Vec::new(), budget })
    }

    pub(super) fn into_implied(self) -> Vec<Vec<u8>> {
        self.implied
    }

    /// Opens what a path leads to.
    pub(super) fn resolve(&self, path: &[u8], flags: OFlags) -> std::result::Result<OwnedFd, Errno> {
        if path.is_empty() {
            return openat(&self.folder, ".", flags | OFlags::CLOEXEC, Mode::empty());
        }
        let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let mut tries = 0;
        loop {
            match openat2(&self.folder, os(path), flags | OFlags::CLOEXEC, Mode::empty(), within) {
                Err(Errno::AGAIN) if tries < TRIES => tries += 1,
                outcome => return outcome,
            }
        }
    }

    /// The folder of an entry; makes it if it is missing.
    pub(super) fn parent(&mut self, path: &[u8]) -> Result<Rc<OwnedFd>> {
        if let Some((_, folder)) = self.last.as_ref().filter(|(last, _)| last == path) {
            return Ok(folder.clone());
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let folder = match self.resolve(path, flags) {
            Err(Errno::NOENT) => self.make(path)?,
            outcome => outcome.map_err(|error| unreachable(path, error))?,
        };
        let folder = Rc::new(folder);
        self.last = Some((path.to_vec(), folder.clone()));
        Ok(folder)
    }

    /// From folder to folder, each opened once: a path may be very deep.
    fn make(&mut self, path: &[u8]) -> Result<OwnedFd> {
        let failed = |error| unreachable(path, error);
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let mut folder = self.resolve(b"", flags).map_err(failed)?;
        let mut end = 0;
        for name in path.split(|byte| *byte == b'/') {
            end += name.len() + usize::from(end > 0);
            let enter = || openat(&folder, os(name), flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty());
            let entered = match enter() {
                Err(Errno::NOENT) => {
                    self.budget.entries(1)?;
                    self.budget.name(&path[..end])?;
                    let mode = Mode::from_raw_mode(0o755);
                    mkdirat(&folder, os(name), mode).map_err(failed)?;
                    // The umask must not change an image.
                    chmodat(&folder, os(name), mode, AtFlags::empty()).map_err(failed)?;
                    self.implied.push(path[..end].to_vec());
                    enter()
                }
                // A link to a folder counts as one, resolved from the root.
                Err(Errno::NOTDIR | Errno::LOOP) => self.resolve(&path[..end], flags),
                outcome => outcome,
            };
            folder = entered.map_err(failed)?;
        }
        Ok(folder)
    }

    /// Removes whatever has the name, and forgets cached folders.
    pub(super) fn remove(&mut self, folder: impl AsFd, name: &[u8]) -> std::result::Result<(), Errno> {
        self.last = None;
        match unlinkat(&folder, os(name), AtFlags::empty()) {
            Err(Errno::ISDIR | Errno::PERM) => {
                self.removed += 1;
                renameat(folder, os(name), &self.trash, self.removed.to_string().as_str())
            }
            Err(Errno::NOENT) => Ok(()),
            outcome => outcome,
        }
    }
}

pub(super) fn is_folder(folder: BorrowedFd<'_>, name: &[u8]) -> std::result::Result<bool, Errno> {
    let stat = statat(folder, os(name), AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
}

/// A new file of this name in the folder.
pub(super) fn create(folder: impl AsFd, name: &[u8]) -> std::result::Result<File, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(openat(folder, os(name), flags, Mode::RUSR | Mode::WUSR)?))
}

/// The folder's path and the name in it.
pub(super) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (&[], path),
    }
}

pub(super) fn os(name: &[u8]) -> &OsStr {
    OsStr::from_bytes(name)
}

fn unreachable(path: &[u8], error: Errno) -> ImageError {
    let why = match error {
        Errno::NOTDIR | Errno::NOENT => {
            "something in its path is not a folder, or a link that leads nowhere".to_owned()
        }
        Errno::LOOP => "its path has a loop of links".to_owned(),
        Errno::NAMETOOLONG => "its name is longer than Linux allows".to_owned(),
        Errno::NOSYS => "this kernel has no openat2; Linux 5.6 or newer is needed".to_owned(),
        Errno::NOSPC | Errno::DQUOT => return ImageError::storage("make", Path::new(os(path)))(error),
        other => other.to_string(),
    };
    ImageError::invalid_layer(format!("cannot make the folder {}: {why}", told(path)))
}
