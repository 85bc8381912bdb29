//! What the root of a box is made of: detached copies of mounts, which the box attaches.
//!
//! Root of the machine gathers them outside, where it can map their owners, and sends them in; for an ordinary user the box
//! gathers them itself, in its own namespaces.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use cofferdam_protocol::keeper::{Plan, Root, Step, Storage};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};

use super::calls::{
    Depth, MOUNT_ATTR_NODEV, MOUNT_ATTR_NOSUID, MOUNT_ATTR_RDONLY, Outcome, Tried, attach, clone_tree, set_attributes,
};
use super::etc;

/// The machine's own folders that a box on the host's root sees.
pub(super) const HOST_FOLDERS: [&str; 8] = ["usr", "etc", "bin", "sbin", "lib", "lib32", "lib64", "libx32"];

/// The part of a box's folder that holds what it writes; the box's root owns it.
pub(super) const STORE: &str = "box";

/// A tree, and the place it gets in the scratch folder.
pub(super) struct Source {
    pub(super) place: String,
    pub(super) tree: OwnedFd,
}

/// All sources of a plan. `ids` is the box's user namespace, when called from outside of it.
pub(super) fn gather(plan: &Plan, folder: &Path, ids: Option<&OwnedFd>) -> Outcome<Vec<Source>> {
    let mut sources = Vec::new();
    let mut add = |place: String, tree: OwnedFd| sources.push(Source { place, tree });
    match &plan.root {
        Root::Layers(layers) => {
            for (number, layer) in layers.iter().enumerate() {
                add(format!("l/{number}"), lower(layer, ids)?);
            }
        }
        Root::Host { .. } => {
            for name in HOST_FOLDERS {
                let path = Path::new("/").join(name);
                if !path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) {
                    continue;
                }
                if name == "etc" {
                    // A copy without secrets: the box may own it.
                    add(format!("l/{name}"), lower(etc_of(folder)?, ids)?);
                    continue;
                }
                // Without mapped owners: files that only root may read stay so.
                match lower(&path, None) {
                    Ok(tree) => add(format!("l/{name}"), tree),
                    // Mounts below it may not be taken away in another user namespace: it comes as a whole, and cannot
                    // be written.
                    Err(_) => add(format!("b/{name}"), whole(&path)?),
                }
            }
        }
    }
    if plan.storage == Storage::Disk {
        add("s".to_owned(), writable(&folder.join(STORE), None)?);
    }
    for cgroup in &plan.cgroups {
        // Under a name that is never empty.
        add(format!("g/_{}", cgroup.at), lower(&cgroup.folder, None)?);
    }
    for (number, mounted) in plan.folders.iter().enumerate() {
        if let Some(source) = &mounted.source {
            add(format!("x/{number}"), writable(Path::new(source), None)?);
        }
    }
    Ok(sources)
}

/// The copy of `/etc` beside the folder of a box.
fn etc_of(folder: &Path) -> Outcome<PathBuf> {
    let nowhere = io::Error::from_raw_os_error(libc::EINVAL);
    let places = folder.ancestors().nth(2).zip(folder.file_name());
    let copied = places.map_or(Err(nowhere), |(state, name)| etc::copy(state, name));
    copied.tried(Step::Sources, || "copy the visible part of /etc".to_owned())
}

fn lower(path: impl AsRef<Path>, ids: Option<&OwnedFd>) -> Outcome<OwnedFd> {
    let path = path.as_ref();
    let tree =
        clone_tree(path, Depth::Alone).tried(Step::Sources, || format!("copy the mount of {}", path.display()))?;
    let attributes = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID;
    if ids.is_some() && set_attributes(&tree, attributes, ids, Depth::Alone).is_ok() {
        return Ok(tree);
    }
    // The file system has no id-mapped mounts: root's files belong to `nobody` in the box.
    let set = set_attributes(&tree, attributes, None, Depth::Alone);
    set.tried(Step::Sources, || format!("make {} read-only", path.display()))?;
    Ok(tree)
}

fn whole(path: &Path) -> Outcome<OwnedFd> {
    let tree = clone_tree(path, Depth::WithMounts)
        .tried(Step::Sources, || format!("copy the mounts of {}", path.display()))?;
    let attributes = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID;
    let set = set_attributes(&tree, attributes, None, Depth::WithMounts);
    set.tried(Step::Sources, || format!("make all of {} read-only", path.display()))?;
    Ok(tree)
}

fn writable(path: &Path, ids: Option<&OwnedFd>) -> Outcome<OwnedFd> {
    let tree =
        clone_tree(path, Depth::Alone).tried(Step::Sources, || format!("copy the mount of {}", path.display()))?;
    let set = set_attributes(&tree, MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID, ids, Depth::Alone);
    set.tried(Step::Sources, || format!("copy the mount of {} without devices", path.display()))?;
    Ok(tree)
}

/// Attaches all of them below the current folder.
pub(super) fn place(sources: Vec<Source>) -> Outcome {
    for Source { place, tree } in sources {
        let metadata = rustix::fs::fstat(&tree).tried(Step::Sources, || format!("look at {place}"))?;
        let is_folder = rustix::fs::FileType::from_raw_mode(metadata.st_mode) == rustix::fs::FileType::Directory;
        if !is_folder {
            let what = || format!("{place} is no folder");
            return Err(std::io::Error::from_raw_os_error(libc::ENOTDIR)).tried(Step::Sources, what);
        }
        std::fs::create_dir_all(&place).tried(Step::Sources, || format!("make {place}"))?;
        attach(&tree, &place).tried(Step::Sources, || format!("attach a tree at {place}"))?;
    }
    Ok(())
}

/// Sends sources to a process that waits in [`hear`].
pub(super) fn send(socket: BorrowedFd<'_>, sources: &[Source]) -> Outcome {
    let handing = |place: &str| format!("send {place} to the box");
    for Source { place, tree } in sources {
        let descriptors = [tree.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
        let sent = sendmsg(socket, &[IoSlice::new(place.as_bytes())], &mut control, SendFlags::NOSIGNAL);
        sent.tried(Step::Sources, || handing(place))?;
    }
    Ok(())
}

/// A message of the keeper to its box.
pub(super) enum Heard {
    Source(Source),
    /// There are no more.
    Word(u8),
    /// The keeper is gone.
    Nothing,
}

/// Waits for the keeper's next message.
pub(super) fn hear(socket: BorrowedFd<'_>) -> Outcome<Heard> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut text = [0; 64];
    let received = recvmsg(socket, &mut [IoSliceMut::new(&mut text)], &mut control, RecvFlags::CMSG_CLOEXEC);
    let count = received.tried(Step::Sources, || "receive from the keeper".to_owned())?.bytes;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(mut descriptors) = message
            && let Some(tree) = descriptors.next()
        {
            let place = String::from_utf8_lossy(&text[..count]).into_owned();
            return Ok(Heard::Source(Source { place, tree }));
        }
    }
    Ok(text[..count].first().map_or(Heard::Nothing, |word| Heard::Word(*word)))
}
