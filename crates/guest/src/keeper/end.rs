//! The end of a box: its cgroups, its claim and its folder are removed, in an order in which no program finds half of it.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use cofferdam_protocol::keeper::{BOXES, CLAIMS, CLAIMS_LOCK, EXIT_RECORDS, ExitRecord, TRASH};
use rustix::fs::{FlockOperation, flock};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::calls::{Forked, fork_into};
use super::cgroups::Cgroups;
use super::ids::Ids;
use super::removal::remove;
use super::watch::Fate;

/// Removes all that is left of a box that has ended.
pub(super) fn clean_up(folder: &Path, fate: Fate, cgroups: &Cgroups, ids: &Ids) {
    let oom = cgroups.has_starved();
    cgroups.remove();
    let (Some(handle), Some(state)) = (folder.file_name(), folder.ancestors().nth(2)) else { return };
    if let Fate::Exited(exit_code) = fate
        && exit_code != 0
    {
        let _ = fs::write(state.join(EXIT_RECORDS).join(handle), ExitRecord { exit_code, oom }.to_bytes());
    }
    let _ = release_claim(state, Path::new(handle));
    let trash = state.join(TRASH).join(handle);
    if fs::rename(state.join(BOXES).join(handle), &trash).is_err() {
        return;
    }
    // Programs that wait for the end need not wait for the last file: from here on nothing can be found.
    // SAFETY: this process has one thread.
    if unsafe { libc::fork() } == 0 {
        let _ = rustix::process::chdir("/");
        let _ = remove_tree(&trash, ids);
    }
}

/// Removes the claims on a box. One remover at a time: between a look and the removal, a claim may pass to another box.
fn release_claim(state: &Path, handle: &Path) -> io::Result<()> {
    let lock = File::open(state.join(CLAIMS_LOCK))?;
    flock(&lock, FlockOperation::LockExclusive)?;
    for entry in fs::read_dir(state.join(CLAIMS))?.flatten() {
        if fs::read_link(entry.path()).is_ok_and(|target| target == handle) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// `guest sweep <folder>`: removes the folder of a box that has ended, whoever owns its files.
pub(crate) fn sweep(folder: &str) -> io::Result<()> {
    remove_tree(Path::new(folder), &Ids::here())
}

/// Files of users that exist only in a box are removed as its root.
fn remove_tree(folder: &Path, ids: &Ids) -> io::Result<()> {
    let outcome = remove(folder);
    match (&outcome, ids) {
        (Err(error), Ids::Subordinate { .. }) if error.kind() == io::ErrorKind::PermissionDenied => {
            remove_as_root(folder, ids.clone())
        }
        _ => outcome,
    }
}

fn remove_as_root(folder: &Path, ids: Ids) -> io::Result<()> {
    let (here, there) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    match fork_into(libc::CLONE_NEWUSER, None)? {
        Forked::Child => {
            drop(here);
            let is_told = rustix::io::read(&there, &mut [0; 1]).is_ok_and(|count| count == 1);
            // SAFETY: changes this process only.
            let is_root = is_told && unsafe { libc::setresgid(0, 0, 0) == 0 && libc::setresuid(0, 0, 0) == 0 };
            std::process::exit(i32::from(!is_root || remove(folder).is_err()));
        }
        Forked::Parent { pid, .. } => {
            drop(there);
            if ids.give(pid).is_ok() {
                rustix::io::write(&here, b"g")?;
            }
            drop(here);
            let mut status = 0;
            // SAFETY: our own child.
            unsafe { libc::waitpid(pid, &mut status, 0) };
            if status == 0 { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
        }
    }
}
