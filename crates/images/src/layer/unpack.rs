//! Unpacks a layer's tar stream to a folder for the lower side of an overlay.
//!
//! Nothing outside the folder is ever touched, whatever the stream says; of two entries with one path the last one counts.
//! Devices are left out. An entry whose owner cannot be set is ours, loses its setuid and setgid bits, and is recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, Uid, XattrFlags};
use rustix::fs::{chownat, fchmod, fchown, fsetxattr, fstat, futimens, linkat, mkdirat, mknodat, symlinkat, utimensat};
use rustix::io::Errno;

use super::budget::Budget;
use super::content::write_content;
use super::name::{Name, clean};
use super::record::{FILES, LayerRecord, LeftOwner, Owners, write_implied};
use super::root::{Root, create, is_folder, os, split};
use super::tarball::{Entry, Kind, Tarball, told};
use super::whiteout;
use crate::error::{ImageError, Result};

const SET_UID: u32 = 0o4000;
const SET_GID: u32 = 0o2000;
const TRASH: &str = "replaced";

/// Unpacks into `fs` in a layer's own, empty folder.
pub(crate) fn unpack(stream: impl Read, layer: &Path, budget: Budget) -> Result<LayerRecord> {
    let (files, trash) = (layer.join(FILES), layer.join(TRASH));
    for folder in [&files, &trash] {
        std::fs::create_dir(folder).map_err(ImageError::storage("make", folder))?;
    }
    let root = Root::open(&files, &trash, budget.clone())?;
    fchmod(&root, Mode::from_raw_mode(0o755)).map_err(ImageError::storage("prepare", &files))?;
    let mut unpacking = Unpacking {
        root,
        budget,
        may_give: rustix::process::geteuid().is_root(),
        layer,
        owners: Owners::beside(layer),
        folders: BTreeMap::new(),
        removed: BTreeSet::new(),
        opaque: BTreeSet::new(),
        record: LayerRecord::default(),
    };
    let mut tarball = Tarball::new(stream);
    while let Some(entry) = tarball.next()? {
        unpacking.take(entry, &mut tarball)?;
    }
    let record = unpacking.finish()?;
    crate::discard::discard(&trash).map_err(ImageError::storage("remove", &trash))?;
    record.write(layer)?;
    Ok(record)
}

struct Unpacking<'a> {
    root: Root,
    budget: Budget,
    /// Things to others.
    may_give: bool,
    layer: &'a Path,
    owners: Owners<'a>,
    /// Finished last: a read-only folder could not be filled.
    folders: BTreeMap<Vec<u8>, FolderMeta>,
    removed: BTreeSet<Vec<u8>>,
    opaque: BTreeSet<Vec<u8>>,
    record: LayerRecord,
}

struct FolderMeta {
    /// The folder that had the path then: it may have been replaced since.
    inode: u64,
    mode: u32,
    mtime: (i64, u32),
}

impl Unpacking<'_> {
    fn take(&mut self, entry: Entry, content: &mut impl Read) -> Result<()> {
        self.budget.entries(1)?;
        match Name::parse(&entry.path)? {
            Name::Nothing => Ok(()),
            Name::Removed(path) => {
                self.budget.name(&path)?;
                self.removed.insert(path);
                Ok(())
            }
            Name::Opaque(path) => {
                self.budget.name(&path)?;
                self.opaque.insert(path);
                Ok(())
            }
            Name::Entry(path) => {
                self.record.entries += 1;
                self.place(&path, &entry, content).map_err(|error| error.about(told(&path)))
            }
        }
    }

    fn place(&mut self, path: &[u8], entry: &Entry, content: &mut impl Read) -> Result<()> {
        if path.is_empty() {
            return match entry.kind {
                Kind::Folder => self.describe_folder(path, entry),
                _ => Err(ImageError::invalid_layer("the root of a layer is a folder, and this is not")),
            };
        }
        let (above, name) = split(path);
        let parent = self.root.parent(above)?;
        if entry.kind == Kind::Folder {
            self.make_folder(&parent, name)?;
            return self.describe_folder(path, entry);
        }
        let placed = self.place_in(&parent, name, path, entry, content);
        match placed {
            // The last one counts.
            Err(Place::Taken) => {
                self.root.remove(&parent, name).map_err(failed("replace", path))?;
                self.place_in(&parent, name, path, entry, content).map_err(|place| place.into_error(path))
            }
            outcome => outcome.map_err(|place| place.into_error(path)),
        }
    }

    fn make_folder(&mut self, parent: impl AsFd, name: &[u8]) -> Result<()> {
        let made = mkdirat(&parent, os(name), Mode::RWXU);
        if made != Err(Errno::EXIST) {
            return made.map_err(failed("make", name));
        }
        if is_folder(parent.as_fd(), name).map_err(failed("look at", name))? {
            return Ok(());
        }
        self.root.remove(&parent, name).map_err(failed("replace", name))?;
        mkdirat(&parent, os(name), Mode::RWXU).map_err(failed("make", name))
    }

    /// Its owner at once, the rest when it is complete.
    fn describe_folder(&mut self, path: &[u8], entry: &Entry) -> Result<()> {
        let (above, name) = split(path);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        let folder = match path.is_empty() {
            true => self.root.resolve(path, flags),
            false => {
                let parent = self.root.parent(above)?;
                rustix::fs::openat(&parent, os(name), flags | OFlags::CLOEXEC, Mode::empty())
            }
        };
        let folder = folder.map_err(failed("open", path))?;
        let mode = self.give(path, entry, |uid, gid| fchown(&folder, uid, gid))?;
        self.set_attributes(&folder, entry);
        let stat = fstat(&folder).map_err(failed("look at", path))?;
        self.budget.name(path)?;
        self.folders.insert(path.to_vec(), FolderMeta { inode: stat.st_ino, mode, mtime: entry.mtime });
        Ok(())
    }

    fn place_in(
        &mut self,
        parent: impl AsFd,
        name: &[u8],
        path: &[u8],
        entry: &Entry,
        content: &mut impl Read,
    ) -> std::result::Result<(), Place> {
        match entry.kind {
            Kind::File => {
                let mut file = create(&parent, name)?;
                write_content(&mut file, entry, content, &self.budget)?;
                self.record.bytes += entry.size;
                let mode = self.give(path, entry, |uid, gid| fchown(&file, uid, gid))?;
                fchmod(&file, Mode::from_raw_mode(mode))?;
                self.set_attributes(&file, entry);
                futimens(&file, &times(entry.mtime))?;
            }
            Kind::SymbolicLink => {
                symlinkat(os(&entry.link), &parent, os(name))?;
                self.give(path, entry, |uid, gid| chownat(&parent, os(name), uid, gid, AtFlags::SYMLINK_NOFOLLOW))?;
                utimensat(&parent, os(name), &times(entry.mtime), AtFlags::SYMLINK_NOFOLLOW)?;
            }
            Kind::Fifo => {
                mknodat(&parent, os(name), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
                let mode = self.give(path, entry, |uid, gid| chownat(&parent, os(name), uid, gid, AtFlags::empty()))?;
                rustix::fs::chmodat(&parent, os(name), Mode::from_raw_mode(mode), AtFlags::empty())?;
                utimensat(&parent, os(name), &times(entry.mtime), AtFlags::SYMLINK_NOFOLLOW)?;
            }
            Kind::HardLink => self.link(&parent, name, path, entry)?,
            Kind::Device => {
                self.root.remove(&parent, name)?;
                self.record.devices += 1;
            }
            Kind::Folder => {}
        }
        Ok(())
    }

    fn link(&mut self, parent: impl AsFd, name: &[u8], path: &[u8], entry: &Entry) -> std::result::Result<(), Place> {
        let target = clean(&entry.link)?;
        if target == path {
            return Err(Place::Failed(ImageError::invalid_layer("it is a hard link to itself")));
        }
        let (above, target_name) = split(&target);
        let folder = self.root.resolve(above, OFlags::PATH | OFlags::DIRECTORY);
        // The last name is not followed: a hard link to a symbolic link is that link again.
        let linked = folder.and_then(|folder| {
            if target_name.is_empty() || is_folder(folder.as_fd(), target_name)? {
                return Err(Errno::ISDIR);
            }
            linkat(&folder, os(target_name), &parent, os(name), AtFlags::empty())
        });
        linked.map_err(|error| match error {
            Errno::EXIST => Place::Taken,
            Errno::NOSPC | Errno::DQUOT => Place::System(error),
            error => Place::Failed(ImageError::invalid_layer(format!(
                "it is a hard link to {}, which cannot be linked to in this layer ({error})",
                told(&entry.link)
            ))),
        })
    }

    /// The mode that remains to be set.
    fn give(
        &mut self,
        path: &[u8],
        entry: &Entry,
        chown: impl FnOnce(Option<Uid>, Option<Gid>) -> std::result::Result<(), Errno>,
    ) -> Result<u32> {
        let Entry { uid, gid, mode, .. } = *entry;
        let given = match self.may_give {
            true => match chown(Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid))) {
                Ok(()) => true,
                // No such user in our namespace, or no permission to change owners.
                Err(Errno::PERM | Errno::INVAL | Errno::OVERFLOW) => false,
                Err(error) => return Err(failed("give away", path)(error)),
            },
            // With a single mapped id, ours is root's.
            false => (uid, gid) == (0, 0),
        };
        if given {
            return Ok(mode);
        }
        self.owners.add(&LeftOwner { path: path.to_vec(), uid, gid, mode })?;
        let lent = if uid == 0 { 0 } else { SET_UID } | if gid == 0 { 0 } else { SET_GID };
        Ok(mode & !lent)
    }

    /// Sets attributes of a layer, but never those that an overlay would take for its own marks.
    fn set_attributes(&mut self, target: impl AsFd, entry: &Entry) {
        for (name, value) in &entry.attributes {
            let is_plain = name.starts_with(b"user.") && !name.starts_with(b"user.overlay.");
            let is_allowed = (is_plain || name == b"security.capability") && !name.contains(&0);
            if !is_allowed || fsetxattr(&target, os(name), value, XattrFlags::empty()).is_err() {
                self.record.attributes_left_out += 1;
            }
        }
    }

    fn finish(mut self) -> Result<LayerRecord> {
        for path in std::mem::take(&mut self.removed) {
            let (above, name) = split(&path);
            let parent = self.root.parent(above)?;
            match is_folder(parent.as_fd(), name) {
                // Removed and made again: nothing of the old one is in it.
                Ok(true) => drop(self.opaque.insert(path)),
                Ok(false) => {}
                Err(_) => drop(self.removed.insert(path)),
            }
        }
        let listing = OFlags::RDONLY | OFlags::DIRECTORY;
        for path in &self.opaque {
            self.root.parent(path)?;
            let folder = self.root.resolve(path, listing).map_err(failed("open", path))?;
            whiteout::hide_below(&folder, path)?;
            self.record.hides_all_below |= path.is_empty();
        }
        for path in &self.removed {
            let (above, name) = split(path);
            if !self.is_hidden(above) {
                let parent = self.root.parent(above)?;
                let folder = self.root.resolve(above, listing).map_err(failed("open", above))?;
                whiteout::remove(&parent, &folder, name)?;
            }
        }
        // The deepest first: a folder may lose its search permission.
        for (path, meta) in self.folders.iter().rev() {
            let Ok(folder) = self.root.resolve(path, listing) else { continue };
            let stat = fstat(&folder).map_err(failed("look at", path))?;
            if stat.st_ino == meta.inode {
                fchmod(&folder, Mode::from_raw_mode(meta.mode)).map_err(failed("finish", path))?;
                futimens(&folder, &times(meta.mtime)).map_err(failed("finish", path))?;
            }
        }
        self.record.owners_left_out = self.owners.finish()?;
        let undescribed = |path: &Vec<u8>| !self.folders.contains_key(path);
        let implied: Vec<Vec<u8>> = self.root.into_implied().into_iter().filter(undescribed).collect();
        write_implied(self.layer, &implied)?;
        self.record.implied = implied.len() as u64;
        Ok(self.record)
    }

    /// Whether nothing from below is seen in the folder anyway.
    fn is_hidden(&self, folder: &[u8]) -> bool {
        let mut path = folder;
        while !path.is_empty() {
            if self.opaque.contains(path) {
                return true;
            }
            path = split(path).0;
        }
        self.opaque.contains(path)
    }
}

/// Why an entry could not be made.
enum Place {
    /// Something else has it.
    Taken,
    System(Errno),
    Failed(ImageError),
}

impl From<Errno> for Place {
    fn from(error: Errno) -> Place {
        if error == Errno::EXIST { Place::Taken } else { Place::System(error) }
    }
}

impl From<ImageError> for Place {
    fn from(error: ImageError) -> Place {
        Place::Failed(error)
    }
}

impl Place {
    fn into_error(self, path: &[u8]) -> ImageError {
        match self {
            Place::Taken => failed("write", path)(Errno::EXIST),
            Place::System(error) => failed("write", path)(error),
            Place::Failed(error) => error,
        }
    }
}

fn failed(doing: &'static str, path: &[u8]) -> impl FnOnce(Errno) -> ImageError {
    move |error| match error {
        Errno::NAMETOOLONG => ImageError::invalid_layer("its name is longer than Linux allows"),
        error => ImageError::storage(doing, Path::new(os(path)))(error),
    }
}

fn times((seconds, nanos): (i64, u32)) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT as _ },
        last_modification: Timespec { tv_sec: seconds, tv_nsec: nanos.min(999_999_999) as _ },
    }
}
