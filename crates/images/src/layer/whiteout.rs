//! Marks for overlays: that something of the layers below is removed.
//!
//! A removed name is a character device 0/0, which any user may make since Linux 5.8; where the file system refuses that (an overlay
//! below the store, for one), it is an empty file with an attribute, which overlays know since Linux 6.7. A folder that hides
//! what is below it has an attribute. Attributes are set for both kinds of mount: `user.overlay.*` for those with `userxattr`,
//! which is all that a user namespace can have, and `trusted.overlay.*` for those of root.

use std::fs::File;
use std::os::fd::AsFd;

use rustix::fs::{FileType, Mode, XattrFlags, fsetxattr, mknodat};
use rustix::io::Errno;

use super::root::{create, os};
use super::tarball::told;
use crate::error::{ImageError, Result};

/// Marks a name as removed.
pub(super) fn remove(folder: impl AsFd, listing: impl AsFd, name: &[u8]) -> Result<()> {
    match mknodat(&folder, os(name), FileType::CharacterDevice, Mode::empty(), 0) {
        Ok(()) => Ok(()),
        Err(Errno::PERM | Errno::INVAL | Errno::OPNOTSUPP | Errno::ACCESS) => {
            remove_by_attribute(folder, listing, name).map_err(|error| {
                ImageError::unsupported(format!(
                    "the layer removes {}, and the file system of the store can note that neither as a device nor as an attribute \
                     ({error}). Set COFFERDAM_IMAGES to a folder on ext4, xfs, btrfs or tmpfs",
                    told(name)
                ))
            })
        }
        Err(error) => Err(ImageError::storage("note the removal of", std::path::Path::new(os(name)))(error)),
    }
}

fn remove_by_attribute(folder: impl AsFd, listing: impl AsFd, name: &[u8]) -> std::result::Result<(), String> {
    if !overlays_know_attributes() {
        return Err("overlays support the attribute since Linux 6.7, and this kernel is older".to_owned());
    }
    let file: File = create(folder, name).map_err(|error| error.to_string())?;
    let marked = set(&file, "overlay.whiteout", b"y")
        // Where to look for such files: the first name is that of Linux 6.7, the second one of all later ones.
        .and_then(|()| set(&listing, "overlay.whiteouts", b"y"))
        .and_then(|()| set(&listing, "overlay.opaque", b"x"));
    marked.map_err(|error| error.to_string())
}

/// Marks a folder that hides all that is below it.
pub(super) fn hide_below(folder: impl AsFd, path: &[u8]) -> Result<()> {
    set(folder, "overlay.opaque", b"y").map_err(|error| {
        ImageError::unsupported(format!(
            "the layer replaces the folder {}, and the file system of the store cannot note that: it takes no user.* attributes \
             ({error}). Set COFFERDAM_IMAGES to a folder on ext4, xfs, btrfs, or tmpfs since Linux 6.6",
            told(path)
        ))
    })
}

fn set(target: impl AsFd, name: &str, value: &[u8]) -> std::result::Result<(), Errno> {
    // For root's own mounts; only root can set it.
    let _ = fsetxattr(&target, format!("trusted.{name}").as_str(), value, XattrFlags::empty());
    fsetxattr(&target, format!("user.{name}").as_str(), value, XattrFlags::empty())
}

fn overlays_know_attributes() -> bool {
    let release = rustix::system::uname();
    let mut numbers =
        release.release().to_str().unwrap_or("").split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(6), Some(7))
}
