//! The end of a box: its cgroups, its claim and its folder go, in an order in which nobody ever finds half of it alive.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use cofferdam_protocol::keeper::{BOXES, CLAIMS, CLAIMS_LOCK, OBITUARIES, Obituary, TRASH};
use rustix::fs::{FlockOperation, flock};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::calls::{Forked, fork_into};
use super::cgroups::Cgroups;
use super::ids::Ids;
use super::removal::remove;
use super::watch::Fate;

/// Leaves nothing of a box that has ended.
pub(super) fn bury(folder: &Path, fate: Fate, cgroups: &Cgroups, ids: &Ids) {
    let oom = cgroups.has_starved();
    cgroups.remove();
    let (Some(handle), Some(state)) = (folder.file_name(), folder.ancestors().nth(2)) else { return };
    if let Fate::Exited(exit_code) = fate
        && exit_code != 0
    {
        let _ = fs::write(state.join(OBITUARIES).join(handle), Obituary { exit_code, oom }.to_bytes());
    }
    let _ = release_claim(state, Path::new(handle));
    let trash = state.join(TRASH).join(handle);
    if fs::rename(state.join(BOXES).join(handle), &trash).is_err() {
        return;
    }
    // Whoever waits for the end need not wait for the last file: from here on there is nothing to be found.
    // SAFETY: this process has one thread.
    if unsafe { libc::fork() } == 0 {
        let _ = rustix::process::chdir("/");
        let _ = remove_tree(&trash, ids);
    }
}

/// Removes the links to a box. One remover at a time: the link may have become another's between a look and the removal.
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

/// `guest sweep <folder>`: removes a folder of a box that is no more, whoever its files belong to.
pub(crate) fn sweep(folder: &str) -> io::Result<()> {
    remove_tree(Path::new(folder), &Ids::here())
}

/// Files of users that only a box knows are removed as its root.
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
