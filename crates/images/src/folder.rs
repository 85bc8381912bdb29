//! The folder of a store, and its permissions.

use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::error::{ImageError, ImageErrorKind, Result};

pub(crate) const IMAGES: &str = "images";
pub(crate) const NAMES: &str = "names";
pub(crate) const LAYERS: &str = "layers";
/// One more layer for images that need it, by the image's digest.
pub(crate) const SEAMS: &str = "seams";
pub(crate) const LOCKS: &str = "locks";
/// What is not complete yet, and what is being removed.
pub(crate) const DRAFTS: &str = "drafts";

/// The default folder of images: `$COFFERDAM_IMAGES`, else `/var/lib/cofferdam/images` for root, else `cofferdam/images` in
/// `$XDG_DATA_HOME` or `~/.local/share`.
pub fn default_folder() -> Result<PathBuf> {
    let said = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(folder) = said("COFFERDAM_IMAGES") {
        return Ok(folder);
    }
    if rustix::process::geteuid().is_root() {
        return Ok("/var/lib/cofferdam/images".into());
    }
    let data = said("XDG_DATA_HOME").or_else(|| said("HOME").map(|home| home.join(".local/share")));
    let data = data.ok_or_else(|| {
        let message = "there is no home folder for images. Set COFFERDAM_IMAGES to a folder of yours";
        ImageError::new(ImageErrorKind::Storage, message)
    })?;
    Ok(data.join("cofferdam/images"))
}

/// Makes the folder private: layers may have setuid files.
pub(crate) fn prepare(folder: &Path) -> Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(folder).map_err(ImageError::storage("make the image store", folder))?;
    let there = folder.metadata().map_err(ImageError::storage("look at the image store", folder))?;
    let own = rustix::process::geteuid().as_raw();
    if there.uid() != own {
        let message = format!(
            "the image store {} belongs to the user {} and this is {own}. Set COFFERDAM_IMAGES to a folder of your own",
            folder.display(),
            there.uid()
        );
        return Err(ImageError::new(ImageErrorKind::Storage, message));
    }
    if there.mode() & 0o077 != 0 {
        let closed = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(folder, closed).map_err(ImageError::storage("close the image store", folder))?;
    }
    for part in [IMAGES, NAMES, LAYERS, SEAMS, LOCKS, DRAFTS] {
        let part = folder.join(part);
        builder.create(&part).map_err(ImageError::storage("make", &part))?;
    }
    Ok(())
}
