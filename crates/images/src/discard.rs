//! Removes whole trees, however deep and whatever modes their folders have: a layer may nest folders deeper than any recursion
//! can go. Links are removed, never followed.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, chmodat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;

/// Removes a folder with everything in it. Idempotent.
pub(crate) fn discard(folder: &Path) -> io::Result<()> {
    match empty(folder) {
        Ok(()) => Ok(std::fs::remove_dir(folder)?),
        Err(Errno::NOENT) => Ok(()),
        Err(Errno::NOTDIR | Errno::LOOP) => std::fs::remove_file(folder),
        Err(error) => Err(error.into()),
    }
}

/// Every folder is moved to the top before it is removed, so no path gets long.
fn empty(folder: &Path) -> Result<(), Errno> {
    let top = open(CWD, folder.as_os_str())?;
    let mut lifted = 0_u64;
    loop {
        let names = names(&top)?;
        if names.is_empty() {
            return Ok(());
        }
        for name in names {
            if !is_folder(&top, &name)? {
                unlinkat(&top, &name, AtFlags::empty())?;
                continue;
            }
            let inner = open(&top, &name)?;
            for child in self::names(&inner)? {
                match is_folder(&inner, &child)? {
                    true => lift(&inner, &child, &top, &mut lifted)?,
                    false => unlinkat(&inner, &child, AtFlags::empty())?,
                }
            }
            unlinkat(&top, &name, AtFlags::REMOVEDIR)?;
        }
    }
}

fn lift(from: &OwnedFd, name: &OsString, top: &OwnedFd, lifted: &mut u64) -> Result<(), Errno> {
    // Moving a folder changes its "..", which takes write permission on it.
    chmodat(from, name, Mode::RWXU, AtFlags::empty())?;
    loop {
        *lifted += 1;
        match renameat(from, name, top, format!("{lifted}").as_str()) {
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR | Errno::ISDIR) => {}
            outcome => return outcome,
        }
    }
}

fn open(at: impl AsFd, name: &std::ffi::OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(&at, name, flags, Mode::empty()) {
        Err(Errno::ACCESS) => {}
        Ok(folder) => {
            rustix::fs::fchmod(&folder, Mode::RWXU)?;
            return Ok(folder);
        }
        outcome => return outcome,
    }
    if !is_folder(&at, name)? {
        return Err(Errno::NOTDIR);
    }
    chmodat(&at, name, Mode::RWXU, AtFlags::empty())?;
    openat(&at, name, flags, Mode::empty())
}

fn names(folder: &OwnedFd) -> Result<Vec<OsString>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(OsString::from_vec(name));
        }
    }
    Ok(names)
}

fn is_folder(at: impl AsFd, name: &std::ffi::OsStr) -> Result<bool, Errno> {
    let stat = statat(at, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_tree_goes_however_deep_and_closed_it_is_and_nothing_beside_it() {
        let place = tempfile::tempdir().unwrap();
        let outside = place.path().join("outside");
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("kept"), "kept").unwrap();
        let tree = place.path().join("tree");
        std::fs::create_dir_all(tree.join("1/2")).unwrap();
        std::fs::write(tree.join("1/2/3"), "").unwrap();
        symlink(&outside, tree.join("1/out")).unwrap();
        symlink(&outside, tree.join("out")).unwrap();
        // Deeper than any path or number of open files.
        let mut at = rustix::fs::open(&tree, OFlags::PATH, Mode::empty()).unwrap();
        for _ in 0..5_000 {
            rustix::fs::mkdirat(&at, "d", Mode::RWXU).unwrap();
            at = openat(&at, "d", OFlags::PATH, Mode::empty()).unwrap();
        }
        chmodat(CWD, tree.join("1/2"), Mode::empty(), AtFlags::empty()).unwrap();
        chmodat(CWD, tree.join("1"), Mode::empty(), AtFlags::empty()).unwrap();
        discard(&tree).unwrap();
        assert!(!tree.exists());
        assert_eq!(std::fs::read_to_string(outside.join("kept")).unwrap(), "kept");
        discard(&tree).unwrap();
    }
}
