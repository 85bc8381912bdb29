//! Folders without an entry in a layer keep the mode and owner that lower layers give them.
//!
//! Some tools write `tmp/x` into a layer and no `tmp`. Unpacked by itself, such a layer has a `tmp` with default mode and owner, and an
//! overlay would show those instead of the ones below. So an image gets one more layer on top, the seam, with nothing
//! but these folders, as their lower layers describe them.

use std::collections::{BTreeSet, HashSet};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Gid, Uid};
use rustix::fs::{
    Mode, OFlags, ResolveFlags, Stat, Timespec, Timestamps, fchmod, fchown, fstat, futimens, mkdirat, openat, openat2,
};
use rustix::io::Errno;

use crate::error::{ImageError, Result};
use crate::layer::implied;

/// More than any honest image has: further folders keep the default mode.
const MOST: usize = 10_000;

/// Builds the seam of these layers, lowest first, in an empty folder. False where none is needed.
pub(crate) fn sew(layers: &[PathBuf], folder: &Path) -> Result<bool> {
    let mut stack = Vec::new();
    for layer in layers {
        let undescribed: HashSet<Vec<u8>> = implied(layer).into_iter().take(MOST).collect();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let files = rustix::fs::open(layer, flags, Mode::empty()).map_err(ImageError::storage("open", layer))?;
        stack.push((files, undescribed));
    }
    let all: BTreeSet<&Vec<u8>> = stack.iter().flat_map(|(_, undescribed)| undescribed).collect();
    let sewn: BTreeSet<&[u8]> = all.into_iter().filter(|path| is_covered(&stack, path)).map(Vec::as_slice).collect();
    if sewn.is_empty() {
        return Ok(false);
    }
    let failed = |error: Errno| ImageError::storage("make", folder)(error);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open(folder, flags, Mode::empty()).map_err(failed)?;
    // With their parents: the seam is the topmost layer.
    let mut folders: BTreeSet<&[u8]> = BTreeSet::from([&b""[..]]);
    for path in &sewn {
        let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        folders.extend(slashes.map(|(end, _)| &path[..end]).chain([*path]));
    }
    for path in folders.iter().filter(|path| !path.is_empty()) {
        mkdirat(&root, os(path), Mode::RWXU).map_err(failed)?;
    }
    // The deepest first: a folder may lose its search permission.
    for path in folders.iter().rev() {
        if let Some(described) = described(&stack, path) {
            let made = open(&root, path, OFlags::RDONLY).map_err(failed)?;
            liken(&made, &described).map_err(failed)?;
        }
    }
    Ok(true)
}

type Stack = [(OwnedFd, HashSet<Vec<u8>>)];

/// Whether the topmost folder of this path has no entry of its own, and a lower one has.
fn is_covered(stack: &Stack, path: &[u8]) -> bool {
    let topmost = stack.iter().rev().find(|(files, _)| open(files, path, OFlags::PATH).is_ok());
    topmost.is_some_and(|(_, undescribed)| undescribed.contains(path)) && described(stack, path).is_some()
}

/// What the topmost layer that describes the folder says.
fn described(stack: &Stack, path: &[u8]) -> Option<Stat> {
    let describing = stack.iter().rev().filter(|(_, undescribed)| !undescribed.contains(path));
    describing.filter_map(|(files, _)| open(files, path, OFlags::PATH).ok()).find_map(|folder| fstat(folder).ok())
}

/// Does not follow links: a folder below one is another folder.
fn open(files: impl AsFd, path: &[u8], flags: OFlags) -> std::result::Result<OwnedFd, Errno> {
    let flags = flags | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match path.is_empty() {
        true => openat(files, ".", flags, Mode::empty()),
        false => {
            let within = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
            openat2(files, os(path), flags, Mode::empty(), within)
        }
    }
}

fn liken(folder: impl AsFd, described: &Stat) -> std::result::Result<(), Errno> {
    let owner = (Some(Uid::from_raw(described.st_uid)), Some(Gid::from_raw(described.st_gid)));
    let made = fstat(&folder)?;
    if (made.st_uid, made.st_gid) != (described.st_uid, described.st_gid) {
        fchown(&folder, owner.0, owner.1)?;
    }
    fchmod(&folder, Mode::from_raw_mode(described.st_mode & 0o7777))?;
    let time = Timespec { tv_sec: described.st_mtime as _, tv_nsec: described.st_mtime_nsec as _ };
    futimens(&folder, &Timestamps { last_access: time, last_modification: time })
}

fn os(path: &[u8]) -> &std::ffi::OsStr {
    std::ffi::OsStr::from_bytes(path)
}
