//! A file or a link that is being made: it has another name in the same folder until it is complete, and is removed if it
//! never is.

use std::fs::{File, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt};

use cofferdam_protocol::Meta;
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, Uid, openat, renameat, unlinkat};
use rustix::io::Errno;

use crate::drafts::{Fate, draft_name};
use crate::folder::{Folder, os};

/// The owner of new entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

impl Owner {
    pub(crate) fn ids(self) -> (Option<Uid>, Option<Gid>) {
        (Some(Uid::from_raw(self.uid)), Some(Gid::from_raw(self.gid)))
    }
}

/// Where the system has no such user, or this program may not change owners, the owner stays.
pub(crate) fn forgive(outcome: rustix::io::Result<()>) -> rustix::io::Result<()> {
    match outcome {
        Err(Errno::INVAL | Errno::PERM) => Ok(()),
        other => other,
    }
}

pub(crate) fn times(meta: Meta) -> Timestamps {
    let nanos = meta.mtime_ns.min(999_999_999);
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT as _ },
        last_modification: Timespec { tv_sec: meta.mtime_s, tv_nsec: nanos as _ },
    }
}

/// How entries get their names in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placing {
    /// At once: the folder itself is not visible before it is complete.
    Direct,
    /// Under another name first, then renamed over what exists.
    Over,
}

/// What the kernel sets on new files anyway: each saves a system call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Defaults {
    umask: u32,
    /// Set on new files; absent where they have it already.
    owner: Option<Owner>,
}

impl Defaults {
    pub(crate) fn new(owner: Option<Owner>) -> Defaults {
        let own = Owner { uid: rustix::process::geteuid().as_raw(), gid: rustix::process::getegid().as_raw() };
        Defaults { umask: umask(), owner: owner.filter(|owner| *owner != own) }
    }

    fn gives(&self, mode: u32) -> bool {
        self.owner.is_none() && mode & (self.umask | 0o7000) == 0
    }
}

/// The umask of this process; all bits where it cannot be read without changing it.
fn umask() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    mask.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok()).unwrap_or(0o777)
}

/// A file that is not complete yet.
#[derive(Debug)]
pub(crate) struct Draft {
    file: File,
    name: Vec<u8>,
    /// Its name until it is complete.
    draft: Vec<u8>,
    meta: Meta,
    defaults: Defaults,
    offset: u64,
    ends_in_hole: bool,
}

impl Draft {
    pub(crate) fn begin(
        folder: &Folder,
        name: Vec<u8>,
        meta: Meta,
        placing: Placing,
        defaults: Defaults,
    ) -> rustix::io::Result<Draft> {
        let draft = match placing {
            Placing::Direct => name.clone(),
            Placing::Over => draft_name(&name, fate(folder, &name)),
        };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // Private until it has its owner and its mode.
        let mode = if defaults.gives(meta.mode) { meta.mode } else { 0o600 };
        let file = File::from(openat(folder, os(&draft), flags, Mode::from_raw_mode(mode as _))?);
        Ok(Draft { file, name, draft, meta, defaults, offset: 0, ends_in_hole: false })
    }

    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    pub(crate) fn write(&mut self, content: &[u8]) -> std::io::Result<()> {
        self.file.write_all_at(content, self.offset)?;
        self.offset += content.len() as u64;
        self.ends_in_hole = false;
        Ok(())
    }

    /// False where no file can be so long.
    pub(crate) fn skip(&mut self, hole: u64) -> bool {
        match self.offset.checked_add(hole).filter(|offset| i64::try_from(*offset).is_ok()) {
            Some(offset) => {
                self.offset = offset;
                self.ends_in_hole = true;
                true
            }
            None => false,
        }
    }

    pub(crate) fn commit(self, folder: &Folder) -> std::io::Result<()> {
        let done = self.complete(folder);
        if done.is_err() {
            self.abandon(folder);
        }
        done
    }

    fn complete(&self, folder: &Folder) -> std::io::Result<()> {
        if self.ends_in_hole {
            self.file.set_len(self.offset)?;
        }
        if let Some((uid, gid)) = self.defaults.owner.map(Owner::ids) {
            forgive(rustix::fs::fchown(&self.file, uid, gid))?;
        }
        if !self.defaults.gives(self.meta.mode) {
            self.file.set_permissions(Permissions::from_mode(self.meta.mode))?;
        }
        forgive(rustix::fs::futimens(&self.file, &times(self.meta)))?;
        if self.draft != self.name {
            renameat(folder, os(&self.draft), folder, os(&self.name))?;
        }
        Ok(())
    }

    /// Removes it.
    pub(crate) fn abandon(&self, folder: &Folder) {
        let _ = unlinkat(folder, os(&self.draft), AtFlags::empty());
    }
}

fn fate(folder: &Folder, name: &[u8]) -> Fate {
    if folder.stat(name).is_ok() { Fate::Replaces } else { Fate::New }
}

/// Makes a link, wherever it points.
pub(crate) fn place_link(
    folder: &Folder,
    name: &[u8],
    target: &[u8],
    meta: Meta,
    placing: Placing,
    defaults: Defaults,
) -> rustix::io::Result<()> {
    let draft = match placing {
        Placing::Direct => name.to_vec(),
        Placing::Over => draft_name(name, fate(folder, name)),
    };
    rustix::fs::symlinkat(os(target), folder, os(&draft))?;
    let placed = (|| {
        if let Some((uid, gid)) = defaults.owner.map(Owner::ids) {
            forgive(rustix::fs::chownat(folder, os(&draft), uid, gid, AtFlags::SYMLINK_NOFOLLOW))?;
        }
        forgive(rustix::fs::utimensat(folder, os(&draft), &times(meta), AtFlags::SYMLINK_NOFOLLOW))?;
        if draft == name { Ok(()) } else { renameat(folder, os(&draft), folder, os(name)) }
    })();
    if placed.is_err() {
        let _ = unlinkat(folder, os(&draft), AtFlags::empty());
    }
    placed
}
