//! Removes a folder that commands in a box filled: however deep, however long its names, whatever its modes.
//!
//! No path is ever built from what is in it, and nothing recurses: a folder within a folder is moved up to the top, so that
//! what is left is never deeper than two. Another process may remove the same folder: a missing entry
//! counts as removed.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, RenameFlags, chmodat, openat, renameat_with, unlinkat};
use rustix::io::Errno;
use rustix::path::Arg;

/// Like `rm -rf`: removes what it can, and returns the first failure.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let removed = match unlinkat(CWD, path, AtFlags::empty()) {
        Err(Errno::ISDIR) => {
            let cleared = open(CWD, path).and_then(|top| clear(&top));
            cleared.and_then(|()| unlinkat(CWD, path, AtFlags::REMOVEDIR))
        }
        other => other,
    };
    Ok(unless_gone(removed)?)
}

fn unless_gone(outcome: rustix::io::Result<()>) -> rustix::io::Result<()> {
    if outcome == Err(Errno::NOENT) { Ok(()) } else { outcome }
}

fn clear(top: &OwnedFd) -> rustix::io::Result<()> {
    let mut waiting = names(top)?;
    let (mut moved, mut outcome) = (0_u64, Ok(()));
    while let Some(name) = waiting.pop() {
        let gone = match unlinkat(top, &name, AtFlags::empty()) {
            Err(Errno::ISDIR) => empty(top, &name, &mut waiting, &mut moved),
            other => other,
        };
        outcome = outcome.and(unless_gone(gone));
    }
    outcome
}

/// Removes a folder in the top one; its subfolders are moved beside it first.
fn empty(top: &OwnedFd, name: &CStr, waiting: &mut Vec<CString>, moved: &mut u64) -> rustix::io::Result<()> {
    let folder = open(top, name)?;
    let mut outcome = Ok(());
    for entry in names(&folder)? {
        let gone = match unlinkat(&folder, &entry, AtFlags::empty()) {
            Err(Errno::ISDIR) => move_up(&folder, &entry, top, moved).map(|place| waiting.push(place)),
            other => other,
        };
        outcome = outcome.and(unless_gone(gone));
    }
    outcome.and(unlinkat(top, name, AtFlags::REMOVEDIR))
}

fn move_up(folder: &OwnedFd, name: &CStr, top: &OwnedFd, moved: &mut u64) -> rustix::io::Result<CString> {
    // Moving a folder changes its `..`, which takes write permission on it.
    chmodat(folder, name, Mode::RWXU, AtFlags::empty())?;
    loop {
        *moved += 1;
        let place = CString::new(format!("moved-{moved}")).map_err(|_| Errno::INVAL)?;
        match renameat_with(folder, name, top, &place, RenameFlags::NOREPLACE) {
            // The name is taken.
            Err(Errno::EXIST) => continue,
            other => return other.map(|()| place),
        }
    }
}

/// Overlays leave folders that even their owner cannot read.
fn open(at: impl AsFd, name: impl Arg + Copy) -> rustix::io::Result<OwnedFd> {
    chmodat(&at, name, Mode::RWXU, AtFlags::empty())?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(&at, name, flags, Mode::empty())
}

fn names(folder: &OwnedFd) -> rustix::io::Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        if ![c".", c".."].contains(&entry.file_name()) {
            names.push(entry.file_name().to_owned());
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use rustix::fs::mkdirat;

    use super::*;

    #[test]
    fn a_tree_deeper_than_any_path_goes() {
        let home = tempfile::tempdir().unwrap();
        let victim = home.path().join("victim");
        fs::create_dir(&victim).unwrap();
        let mut here = open(CWD, victim.as_path()).unwrap();
        let name = CString::new("d".repeat(100)).unwrap();
        for _ in 0..2000 {
            mkdirat(&here, &name, Mode::RWXU).unwrap();
            here = open(&here, name.as_c_str()).unwrap();
        }
        remove(&victim).unwrap();
        assert!(!victim.exists());
    }

    #[test]
    fn modes_and_names_do_not_matter_and_links_are_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let (victim, kept) = (home.path().join("victim"), home.path().join("kept"));
        fs::create_dir_all(victim.join("a/moved-1/b")).unwrap();
        fs::create_dir_all(victim.join("moved-1")).unwrap();
        fs::create_dir(&kept).unwrap();
        fs::write(kept.join("file"), "kept").unwrap();
        fs::write(victim.join("a/moved-1/file"), "").unwrap();
        symlink(&kept, victim.join("a/link")).unwrap();
        symlink(kept.join("file"), victim.join("link")).unwrap();
        for folder in ["a/moved-1/b", "a/moved-1", "a"] {
            fs::set_permissions(victim.join(folder), fs::Permissions::from_mode(0o0)).unwrap();
        }
        remove(&victim).unwrap();
        assert!(!victim.exists());
        assert_eq!(fs::read_to_string(kept.join("file")).unwrap(), "kept");
        remove(&victim).unwrap();
        remove(&kept.join("file")).unwrap();
        assert!(!kept.join("file").exists());
    }

    #[test]
    fn several_may_be_at_it() {
        let home = tempfile::tempdir().unwrap();
        let victim = home.path().join("victim");
        for number in 0..200 {
            let folder = victim.join(format!("{}/{}/{number}", number % 3, number % 7));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("file"), "").unwrap();
        }
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| while remove(&victim).is_err() {});
            }
        });
        assert!(!victim.exists());
    }
}
