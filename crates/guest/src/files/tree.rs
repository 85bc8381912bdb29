//! Folders and whole trees: make, move, copy, remove.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

use cofferdam_protocol::{Fault, Reply};
use cofferdam_tree::io_fault;
use rustix::fs::{AtFlags, CWD, Gid, Uid, chownat, fchown, utimensat};

use super::content::not_regular;
use super::listing::is_absent;
use super::place::Place;
use crate::process::users::Owner;

/// Makes a folder and its parents; `owner` owns the new ones.
pub(crate) fn make_dirs(path: &Path, mode: Option<u32>, owner: Owner) -> io::Result<()> {
    match fs::DirBuilder::new().mode(mode.unwrap_or(0o755)).create(path) {
        Ok(()) => {
            own_path(path, owner)?;
            match mode {
                // Regardless of the umask.
                Some(mode) => fs::set_permissions(path, fs::Permissions::from_mode(mode)),
                None => Ok(()),
            }
        }
        // Some file systems (procfs) give the same error although the parent exists: then making parents does not help.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            match path.parent().filter(|parent| !parent.is_dir()) {
                Some(parent) => {
                    make_dirs(parent, None, owner)?;
                    make_dirs(path, mode, owner)
                }
                None => Err(error),
            }
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(error),
    }
}

pub(crate) fn own(file: impl AsFd, owner: Owner) -> io::Result<()> {
    let (uid, gid) = ids(owner);
    forgive(fchown(file, uid, gid))
}

pub(crate) fn own_path(path: &Path, owner: Owner) -> io::Result<()> {
    let (uid, gid) = ids(owner);
    forgive(chownat(CWD, path, uid, gid, AtFlags::SYMLINK_NOFOLLOW))
}

fn ids(owner: Owner) -> (Option<Uid>, Option<Gid>) {
    (Some(Uid::from_raw(owner.uid)), Some(Gid::from_raw(owner.gid)))
}

/// Where the sandbox has no such user (a user namespace that maps few ids), or may not change owners, root keeps the file.
fn forgive(outcome: rustix::io::Result<()>) -> io::Result<()> {
    match outcome {
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::PERM) => Ok(()),
        other => Ok(other?),
    }
}

pub(crate) fn mkdir(place: &Place, mode: Option<u32>) -> Result<Reply, Fault> {
    make_dirs(&place.path, mode, place.owner).map_err(|error| place.fault("make the folder", &error))?;
    Ok(Reply::Done)
}

/// Makes the parents of a new path.
fn make_parents(to: &Place) -> Result<(), Fault> {
    let Some(folder) = to.path.parent() else { return Ok(()) };
    let made = match folder.metadata() {
        Ok(there) if there.is_dir() => Ok(()),
        Ok(_) => Err(io::Error::from_raw_os_error(libc::ENOTDIR)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => make_dirs(folder, None, to.owner),
        Err(error) => Err(error),
    };
    made.map_err(|error| io_fault("make the folder", folder, &error))
}

pub(crate) fn rename(from: &Place, to: &Place) -> Result<Reply, Fault> {
    // The missing side is named: the kernel's error does not say which it was.
    let there = from.path.symlink_metadata().map_err(|error| from.fault("move", &error))?;
    make_parents(to)?;
    refuse_special(to)?;
    match fs::rename(&from.path, &to.path) {
        Ok(()) => Ok(Reply::Done),
        Err(error) if error.raw_os_error() == Some(libc::EXDEV) => {
            copy_or_undo(&from.path, &there, to, None).map_err(|error| to.fault("move to", &error))?;
            remove_any(&from.path, &there).map_err(|error| {
                // What cannot be removed at its old path was not moved.
                let _ = remove_any(&to.path, &there);
                from.fault("move", &error)
            })?;
            Ok(Reply::Done)
        }
        Err(error) => Err(to.fault("move to", &error)),
    }
}

pub(crate) fn copy(from: &Place, to: &Place) -> Result<Reply, Fault> {
    let there = from.path.symlink_metadata().map_err(|error| from.fault("copy", &error))?;
    if there.is_dir() && is_inside(&to.path, &from.path) {
        return Err(to.fault("copy a folder into itself, to", &io::Error::from_raw_os_error(libc::EINVAL)));
    }
    if !there.is_dir() && to.path.is_dir() {
        return Err(to.fault("copy over", &io::Error::from_raw_os_error(libc::EISDIR)));
    }
    let identity = |path: &Path| path.metadata().map(|file| (file.dev(), file.ino())).ok();
    if !there.is_dir() && identity(&from.path).is_some() && identity(&from.path) == identity(&to.path) {
        return Err(to.fault("copy a file onto itself, at", &io::Error::from_raw_os_error(libc::EINVAL)));
    }
    make_parents(to)?;
    refuse_special(from)?;
    refuse_special(to)?;
    copy_or_undo(&from.path, &there, to, Some(to.owner)).map_err(|error| to.fault("copy to", &error))?;
    Ok(Reply::Done)
}

/// Resolves links and dots in both paths.
fn is_inside(path: &Path, folder: &Path) -> bool {
    let real = |path: &Path| path.ancestors().find_map(|ancestor| ancestor.canonicalize().ok());
    match (real(path), folder.canonicalize()) {
        (Some(path), Ok(folder)) => path.starts_with(folder),
        _ => false,
    }
}

/// Devices, sockets and FIFOs are neither copied nor overwritten.
fn refuse_special(place: &Place) -> Result<(), Fault> {
    match place.path.metadata() {
        Ok(there) if !there.is_file() && !there.is_dir() => Err(not_regular(&place.path)),
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) => Err(place.fault("use", &error)),
        _ => Ok(()),
    }
}

/// Removes a copy that fails half way, unless its target existed before.
fn copy_or_undo(from: &Path, there: &Metadata, to: &Place, owner: Option<Owner>) -> io::Result<()> {
    let is_new = to.path.symlink_metadata().is_err();
    let outcome = copy_any(from, there, &to.path, owner);
    if outcome.is_err()
        && is_new
        && let Ok(half) = to.path.symlink_metadata()
    {
        let _ = remove_any(&to.path, &half);
    }
    outcome
}

/// Copies with modes and times; the copy belongs to `owner`, or else to the same owner.
fn copy_any(from: &Path, there: &Metadata, to: &Path, owner: Option<Owner>) -> io::Result<()> {
    let owner = owner.unwrap_or(Owner { uid: there.uid(), gid: there.gid() });
    if there.is_symlink() {
        match fs::remove_file(to) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => std::os::unix::fs::symlink(fs::read_link(from)?, to)?,
        }
        return own_path(to, owner);
    }
    if there.is_dir() {
        make_dirs(to, None, owner)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy_any(&entry.path(), &entry.metadata()?, &to.join(entry.file_name()), Some(owner))?;
        }
    } else if there.is_file() {
        let mut target = File::create(to)?;
        // In the kernel where it can: `copy_file_range`, `sendfile`.
        io::copy(&mut File::open(from)?, &mut target)?;
        own(&target, owner)?;
    } else {
        // Devices, sockets and FIFOs are not copied.
        return Ok(());
    }
    fs::set_permissions(to, there.permissions())?;
    let time = |sec: i64, nsec: i64| rustix::fs::Timespec { tv_sec: sec, tv_nsec: nsec as _ };
    let times = rustix::fs::Timestamps {
        last_access: time(there.atime(), there.atime_nsec()),
        last_modification: time(there.mtime(), there.mtime_nsec()),
    };
    Ok(utimensat(CWD, to, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}

pub(crate) fn remove(place: &Place, recursive: bool) -> Result<Reply, Fault> {
    let there = match place.path.symlink_metadata() {
        Ok(there) => there,
        Err(error) if is_absent(&error) => return Ok(Reply::Removed(false)),
        Err(error) => return Err(place.fault("remove", &error)),
    };
    if there.is_dir() && !recursive {
        let mut refusal = place.fault("remove", &io::Error::from_raw_os_error(libc::EISDIR));
        refusal.message.push_str("; pass recursive: true to remove it with everything below it");
        return Err(refusal);
    }
    remove_any(&place.path, &there).map_err(|error| place.fault("remove", &error))?;
    Ok(Reply::Removed(true))
}

fn remove_any(path: &Path, there: &Metadata) -> io::Result<()> {
    // `remove_dir_all` works on open folders: a link swapped in meanwhile is removed, never followed.
    if there.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}
