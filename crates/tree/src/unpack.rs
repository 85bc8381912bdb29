//! Unpacks a stream to a folder or a file.
//!
//! Invariants: nothing outside the target is touched, whatever the stream says and whatever is swapped meanwhile; and
//! nothing is ever incomplete. A new target appears when all of it is unpacked; in an existing folder, each file is the old
//! one or the new one.

use std::fs::Permissions;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cofferdam_protocol::{Meta, Record, TreeDecoder, TreeItem};
use rustix::fs::{CWD, Mode, RenameFlags, fchmod, fchown, futimens, mkdirat, renameat, renameat_with};
use rustix::io::Errno;

use crate::Trouble;
use crate::draft::{Defaults, Draft, Owner, Placing, forgive, place_link, times};
use crate::drafts::{Fate, draft_name};
use crate::folder::{Folder, Trail, os};
use crate::report::{Ceilings, Report};

/// How a tree is built.
pub struct UnpackOptions {
    /// The owner; this program's user when absent.
    pub owner: Option<Owner>,
    /// Permission bits that are applied. An untrusted tree must not bring setuid files.
    pub mode_mask: u32,
    /// Limits of the transfer.
    pub ceilings: Ceilings,
    /// Makes the folder that the target goes into, when there is something to put there.
    pub make_parent: fn(&Path, Option<Owner>) -> io::Result<()>,
}

/// A tree that is being unpacked. Dropped before it is finished, it leaves nothing incomplete.
pub struct Unpacker {
    target: PathBuf,
    options: UnpackOptions,
    defaults: Defaults,
    decoder: TreeDecoder,
    place: Option<Place>,
    levels: Vec<Level>,
    trail: Trail,
    draft: Option<Draft>,
    report: Report,
}

/// Where the root goes.
enum Place {
    /// An existing folder.
    Existing,
    /// A new folder: made under another name first.
    New { staging: PathBuf },
    /// A file, in this folder.
    File { folder: Folder },
}

/// A folder on the way down.
struct Level {
    folder: Folder,
    /// Applied when the folder is complete; an existing root keeps its own.
    meta: Option<Meta>,
}

impl Unpacker {
    /// Nothing happens before the first bytes come.
    pub fn new(target: &Path, options: UnpackOptions) -> Unpacker {
        Unpacker {
            // A link at the target itself is the caller's own: follow it.
            target: target.canonicalize().unwrap_or_else(|_| target.to_owned()),
            defaults: Defaults::new(options.owner),
            options,
            decoder: TreeDecoder::default(),
            place: None,
            levels: Vec::new(),
            trail: Trail::default(),
            draft: None,
            report: Report::default(),
        }
    }

    /// What was unpacked so far.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Where it is, below the root.
    pub fn current(&self) -> Vec<u8> {
        self.trail.with(b"")
    }

    /// Takes the next bytes of the stream.
    pub fn take(&mut self, mut bytes: &[u8]) -> Result<(), Trouble> {
        while let Some(item) = self.decoder.next(&mut bytes)? {
            match item {
                TreeItem::Content(content) => self.write(content)?,
                TreeItem::Record(record) => self.step(record)?,
            }
        }
        Ok(())
    }

    /// Moves new entries to their final names.
    pub fn finish(mut self) -> Result<Report, Trouble> {
        self.decoder.finish()?;
        if let Some(Place::New { staging }) = &self.place {
            let placed = match renameat_with(CWD, staging, CWD, &self.target, RenameFlags::NOREPLACE) {
                // Not every file system has the flag; without it, only an empty folder can be replaced.
                Err(Errno::INVAL | Errno::NOSYS) => renameat(CWD, staging, CWD, &self.target),
                placed => placed,
            };
            placed.map_err(Trouble::at("make the folder", &self.target))?;
            self.place = None;
        }
        Ok(std::mem::take(&mut self.report))
    }

    fn path(&self, name: &[u8]) -> PathBuf {
        match self.trail.with(name) {
            path if path.is_empty() => self.target.clone(),
            path => self.target.join(os(&path)),
        }
    }

    fn folder(&self) -> Option<&Folder> {
        match (&self.place, self.levels.last()) {
            (_, Some(level)) => Some(&level.folder),
            (Some(Place::File { folder }), None) => Some(folder),
            _ => None,
        }
    }

    fn placing(&self) -> Placing {
        if matches!(self.place, Some(Place::New { .. })) { Placing::Direct } else { Placing::Over }
    }

    fn step(&mut self, record: Record) -> Result<(), Trouble> {
        match record {
            Record::Enter { meta, .. } if self.levels.is_empty() => self.begin_folder(meta),
            Record::Enter { name, meta } => self.enter(&name, meta),
            Record::File { meta, size, .. } if self.levels.is_empty() => {
                let name = self.begin_file()?;
                self.begin_draft(name, meta, size)
            }
            Record::File { name, meta, size } => self.begin_draft(name, meta, size),
            Record::Hole(length) => {
                let fits = self.draft.as_mut().is_none_or(|draft| draft.skip(length));
                match fits {
                    true => self.admit_size(),
                    false => Err(self.ceiling("a file cannot be this long")),
                }
            }
            Record::Whole => self.commit_draft(),
            Record::Torn { reason } => {
                if let (Some(draft), Some(folder)) = (self.draft.take(), self.folder()) {
                    draft.abandon(folder);
                }
                if self.levels.is_empty() {
                    let error = io::Error::other(reason);
                    return Err(Trouble::Io { doing: "read all of", path: self.target.clone(), error });
                }
                self.report.skip(self.trail.with(b""), reason);
                self.trail.pop();
                Ok(())
            }
            Record::Link { name, target, meta } => self.link(&name, &target, meta),
            Record::Skipped { name, reason } => {
                self.report.skip(self.trail.with(&name), reason);
                Ok(())
            }
            Record::Leave => self.leave(),
            // The decoder never returns it.
            Record::Data(_) => Ok(()),
        }
    }

    fn parent(&self) -> Result<(&Path, &[u8]), Trouble> {
        let refused = || Trouble::Io { doing: "write", path: self.target.clone(), error: Errno::EXIST.into() };
        let name = self.target.file_name().ok_or_else(refused)?.as_bytes();
        let parent = self.target.parent().filter(|parent| !parent.as_os_str().is_empty());
        Ok((parent.unwrap_or(Path::new(".")), name))
    }

    fn make_parent(&self) -> Result<(&Path, &[u8]), Trouble> {
        let (parent, name) = self.parent()?;
        if !parent.is_dir() {
            (self.options.make_parent)(parent, self.options.owner).map_err(Trouble::io("make the folder", parent))?;
        }
        Ok((parent, name))
    }

    fn begin_folder(&mut self, meta: Meta) -> Result<(), Trouble> {
        let meta = self.masked(meta);
        match self.target.metadata() {
            Ok(there) if there.is_dir() => {
                let folder = Folder::open(&self.target).map_err(Trouble::io("open the folder", &self.target))?;
                self.place = Some(Place::Existing);
                self.levels.push(Level { folder, meta: None });
            }
            Ok(_) => {
                let error = Errno::NOTDIR.into();
                return Err(Trouble::Io { doing: "make the folder", path: self.target.clone(), error });
            }
            Err(_) => {
                let (parent, name) = self.make_parent()?;
                let staging = parent.join(os(&draft_name(name, Fate::New)));
                mkdirat(CWD, &staging, Mode::RWXU).map_err(Trouble::at("make the folder", &self.target))?;
                let folder = Folder::open(&staging).map_err(Trouble::io("open the folder", &self.target));
                self.place = Some(Place::New { staging });
                let folder = folder?;
                self.own(&folder)?;
                self.levels.push(Level { folder, meta: Some(meta) });
            }
        }
        Ok(())
    }

    fn begin_file(&mut self) -> Result<Vec<u8>, Trouble> {
        if self.target.is_dir() {
            let error = Errno::ISDIR.into();
            return Err(Trouble::Io { doing: "write", path: self.target.clone(), error });
        }
        let (parent, name) = self.make_parent()?;
        let folder = Folder::open(parent).map_err(Trouble::io("open the folder", parent))?;
        let name = name.to_vec();
        self.place = Some(Place::File { folder });
        Ok(name)
    }

    fn enter(&mut self, name: &[u8], meta: Meta) -> Result<(), Trouble> {
        let path = self.path(name);
        let meta = self.masked(meta);
        let Some(folder) = self.folder() else { return Ok(()) };
        let is_new = match mkdirat(folder, os(name), Mode::RWXU) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(error) => return Err(Trouble::at("make the folder", &path)(error)),
        };
        // A link there is not followed.
        let entered = folder.enter(name).map_err(|error| if error == Errno::LOOP { Errno::NOTDIR } else { error });
        let folder = entered.map_err(Trouble::at("make the folder", &path))?;
        if is_new {
            self.own(&folder)?;
        }
        self.levels.push(Level { folder, meta: Some(meta) });
        self.trail.push(name);
        self.report.dirs += 1;
        Ok(())
    }

    fn leave(&mut self) -> Result<(), Trouble> {
        let Some(Level { folder, meta }) = self.levels.pop() else { return Ok(()) };
        if let Some(meta) = meta {
            let done = fchmod(&folder, Mode::from_raw_mode(meta.mode as _))
                .and_then(|()| forgive(futimens(&folder, &times(meta))));
            done.map_err(Trouble::at("finish the folder", &self.path(b"")))?;
        }
        if !self.levels.is_empty() {
            self.trail.pop();
        }
        Ok(())
    }

    fn begin_draft(&mut self, name: Vec<u8>, meta: Meta, size: u64) -> Result<(), Trouble> {
        let is_root = self.levels.is_empty();
        let path = if is_root { self.target.clone() } else { self.path(&name) };
        self.options.ceilings.admit_file(&path, size)?;
        self.options.ceilings.admit_count(&path, self.report.files + self.report.links + 1)?;
        let (meta, placing) = (self.masked(meta), self.placing());
        let Some(folder) = self.folder() else { return Ok(()) };
        let draft =
            Draft::begin(folder, name.clone(), meta, placing, self.defaults).map_err(Trouble::at("write", &path))?;
        self.draft = Some(draft);
        if !is_root {
            self.trail.push(&name);
        }
        Ok(())
    }

    fn write(&mut self, content: &[u8]) -> Result<(), Trouble> {
        let path = self.path(b"");
        let Some(draft) = &mut self.draft else { return Ok(()) };
        draft.write(content).map_err(Trouble::io("write", &path))?;
        self.report.bytes += content.len() as u64;
        self.admit_size()
    }

    fn admit_size(&self) -> Result<(), Trouble> {
        let size = self.draft.as_ref().map_or(0, Draft::offset);
        self.options.ceilings.admit_file(&self.path(b""), size)
    }

    fn commit_draft(&mut self) -> Result<(), Trouble> {
        let path = self.path(b"");
        if let (Some(draft), Some(folder)) = (self.draft.take(), self.folder()) {
            draft.commit(folder).map_err(Trouble::io("write", &path))?;
            self.report.files += 1;
        }
        if !self.levels.is_empty() {
            self.trail.pop();
        }
        Ok(())
    }

    fn link(&mut self, name: &[u8], target: &[u8], meta: Meta) -> Result<(), Trouble> {
        let path = self.path(name);
        self.options.ceilings.admit_count(&path, self.report.files + self.report.links + 1)?;
        let Some(folder) = self.folder() else { return Ok(()) };
        place_link(folder, name, target, meta, self.placing(), self.defaults)
            .map_err(Trouble::at("make the link", &path))?;
        self.report.links += 1;
        Ok(())
    }

    fn masked(&self, meta: Meta) -> Meta {
        Meta { mode: meta.mode & self.options.mode_mask, ..meta }
    }

    fn own(&self, folder: &Folder) -> Result<(), Trouble> {
        let Some((uid, gid)) = self.options.owner.map(Owner::ids) else { return Ok(()) };
        forgive(fchown(folder, uid, gid)).map_err(Trouble::at("make the folder", &self.target))
    }

    fn ceiling(&self, what: &str) -> Trouble {
        Trouble::Ceiling { what: what.to_owned(), path: self.path(b"") }
    }
}

impl Drop for Unpacker {
    fn drop(&mut self) {
        if let (Some(draft), Some(folder)) = (self.draft.take(), self.folder()) {
            draft.abandon(folder);
        }
        if let Some(Place::New { staging }) = &self.place {
            self.levels.clear();
            remove_tree(staging);
        }
    }
}

/// Folders without write permission get it first.
fn remove_tree(path: &Path) {
    if std::fs::remove_dir_all(path).is_ok() {
        return;
    }
    let mut pending = vec![path.to_owned()];
    while let Some(folder) = pending.pop() {
        let _ = std::fs::set_permissions(&folder, Permissions::from_mode(0o700));
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        pending.extend(entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|e| e.path()));
    }
    let _ = std::fs::remove_dir_all(path);
}
