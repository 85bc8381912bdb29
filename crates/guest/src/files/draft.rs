//! A file that is being written.
//!
//! Invariant: a written file appears whole or not at all. It is written under another name in the same folder, and
//! renamed at the end; on any failure it is removed.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use cofferdam_protocol::{Fault, Write};
use cofferdam_tree::{Fate, draft_name, io_fault};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::content::not_regular;
use super::place::Place;
use super::tree::{make_dirs, own};
use crate::process::users::ROOT;

/// A file that is not complete yet.
pub(super) struct Draft {
    place: Place,
    options: Write,
    /// Its final path: the place, or the target of a link there.
    pub(super) target: PathBuf,
    /// Its path until then.
    path: PathBuf,
    file: File,
    mode: u32,
    pub(super) size: u64,
    committed: bool,
    /// The old file stays open, so that freeing it does not delay the reply.
    pub(super) replaced: Option<File>,
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.committed {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Draft {
    pub(super) fn begin(place: Place, options: Write) -> Result<Draft, Fault> {
        let target = follow_links(&place)?;
        let replaced = OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_NOFOLLOW).open(&target);
        let mode = match replaced.as_ref().map_err(|_| ()).and_then(|file| file.metadata().map_err(|_| ())) {
            Ok(there) if there.is_dir() => {
                return Err(place.fault("write", &io::Error::from_raw_os_error(libc::EISDIR)));
            }
            Ok(there) if !there.is_file() => return Err(not_regular(&target)),
            Ok(_) if !options.overwrite => {
                return Err(place.fault("write", &io::Error::from_raw_os_error(libc::EEXIST)));
            }
            Ok(there) => options.mode.unwrap_or(there.mode() & 0o7777),
            Err(_) => options.mode.unwrap_or(0o644),
        };
        let name = match target.file_name() {
            Some(name) => name.as_bytes(),
            None => return Err(place.fault("write", &io::Error::from_raw_os_error(libc::EISDIR))),
        };
        let too_long = name.len() > 255;
        // The folder itself first: it usually exists.
        let folder = target.parent().unwrap_or(Path::new("/"));
        let fate = if replaced.is_ok() { Fate::Replaces } else { Fate::New };
        let path = folder.join(OsStr::from_bytes(&draft_name(name, fate)));
        // Private until it has its owner; the guest's own umask is 0.
        let mode_at_first = if place.owner == ROOT { mode } else { mode & 0o700 };
        let open = || OpenOptions::new().read(true).write(true).create_new(true).mode(mode_at_first).open(&path);
        let file = match open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make_dirs(folder, None, place.owner).map_err(|error| io_fault("make the folder", folder, &error))?;
                open()
            }
            other => other,
        };
        let file = file.map_err(|error| place.fault("write", &error))?;
        let replaced = replaced.ok();
        let draft = Draft { target, path, file, mode, size: 0, committed: false, place, options, replaced };
        if draft.place.owner != ROOT {
            let given = own(&draft.file, draft.place.owner)
                .and_then(|()| draft.file.set_permissions(std::fs::Permissions::from_mode(mode)));
            given.map_err(|error| draft.place.fault("write", &error))?;
        }
        if too_long {
            return Err(draft.place.fault("write", &io::Error::from_raw_os_error(libc::ENAMETOOLONG)));
        }
        Ok(draft)
    }

    pub(super) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    pub(super) fn append(&mut self, blocks: &[Bytes]) -> Result<(), Fault> {
        for block in blocks {
            self.file.write_all(block).map_err(|error| self.place.fault("write", &error))?;
            self.size += block.len() as u64;
        }
        Ok(())
    }

    /// Renames it to its final path, or with `append` adds it to the existing file.
    pub(super) fn commit(mut self) -> Result<Draft, Fault> {
        let outcome = if self.options.append { self.join() } else { self.appear() };
        outcome.map_err(|error| self.place.fault("write", &error))?;
        Ok(self)
    }

    fn appear(&mut self) -> io::Result<()> {
        keep_special_bits(&self.file, self.mode)?;
        let may_replace = self.options.overwrite && !self.options.append;
        let flags = if may_replace { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
        renameat_with(CWD, &self.path, CWD, &self.target, flags)?;
        self.committed = true;
        Ok(())
    }

    /// One append at a time: their data must not mix.
    fn join(&mut self) -> io::Result<()> {
        static TURN: Mutex<()> = Mutex::new(());
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
        let mut there = loop {
            match OpenOptions::new().append(true).custom_flags(flags).open(&self.target) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => match self.appear() {
                    // Created by another writer meanwhile.
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    outcome => return outcome,
                },
                opened => break opened?,
            }
        };
        let before = there.metadata()?;
        let end = before.len();
        self.file.rewind()?;
        if let Err(error) = io::copy(&mut self.file, &mut there) {
            // A full disk: undo the partial append.
            let _ = there.set_len(end);
            return Err(error);
        }
        match self.options.mode {
            Some(mode) => there.set_permissions(std::fs::Permissions::from_mode(mode))?,
            None => keep_special_bits(&there, before.permissions().mode())?,
        }
        self.size += end;
        Ok(())
    }
}

/// In a user namespace, writing to a file clears its setuid and setgid bits.
fn keep_special_bits(file: &File, mode: u32) -> io::Result<()> {
    const SPECIAL: u32 = 0o6000;
    if mode & SPECIAL == 0 {
        return Ok(());
    }
    file.set_permissions(std::fs::Permissions::from_mode(mode & 0o7777))
}

/// Writing to a symbolic link writes its target, as everywhere on Linux; the link stays.
fn follow_links(place: &Place) -> Result<PathBuf, Fault> {
    let mut target = place.path.clone();
    for _ in 0..40 {
        match std::fs::read_link(&target) {
            Ok(next) => target = target.parent().unwrap_or(Path::new("/")).join(next),
            // Not a link, missing, or not reachable: the next call reports it.
            Err(_) => return Ok(target),
        }
    }
    Err(place.fault("write", &io::Error::from_raw_os_error(libc::ELOOP)))
}
