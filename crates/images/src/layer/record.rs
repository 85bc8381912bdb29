//! The record of an unpacked layer, stored beside it.

use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{ImageError, Result};

/// Beside the layer's own folder.
pub(crate) const FILES: &str = "fs";
const RECORD: &str = "layer.json";
const OWNERS: &str = "owners";
const IMPLIED: &str = "implied";

/// A layer, counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LayerRecord {
    /// Of content, holes included.
    pub(crate) bytes: u64,
    /// Files, folders and links.
    pub(crate) entries: u64,
    /// It hides all layers below: an overlay ignores that mark at its root.
    pub(crate) hides_all_below: bool,
    /// The number of folders without an entry of their own: the layers below may describe them. A list names them.
    pub(crate) implied: u64,
    /// Skipped devices: a sandbox has its own.
    pub(crate) devices: u64,
    /// Attributes that the file system or our permissions do not allow, or that a layer must not set.
    pub(crate) attributes_left_out: u64,
    /// Entries whose owner could not be set; a list names the owners.
    pub(crate) owners_left_out: u64,
}

impl LayerRecord {
    pub(crate) fn read(layer: &Path) -> Option<LayerRecord> {
        let content = std::fs::read(layer.join(RECORD)).ok()?;
        serde_json::from_slice(&content).ok()
    }

    pub(crate) fn write(&self, layer: &Path) -> Result<()> {
        let path = layer.join(RECORD);
        let content = serde_json::to_vec(self).unwrap_or_default();
        std::fs::write(&path, content).map_err(ImageError::storage("write", &path))
    }
}

/// The folders of a layer without an entry of their own, by the layer's folder for overlays.
pub(crate) fn implied(files: &Path) -> Vec<Vec<u8>> {
    let content = std::fs::read(files.with_file_name(IMPLIED)).unwrap_or_default();
    content.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect()
}

pub(super) fn write_implied(layer: &Path, paths: &[Vec<u8>]) -> Result<()> {
    if paths.is_empty() {
        return Ok(());
    }
    let path = layer.join(IMPLIED);
    std::fs::write(&path, paths.join(&0)).map_err(ImageError::storage("write", &path))
}

/// The owner of an entry, where it could not be set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOwner {
    /// Below the layer's folder.
    pub path: Vec<u8>,
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// All permission bits, setuid and setgid included.
    pub mode: u32,
}

/// The owners that could not be set when a layer was unpacked, by one of [`Image::layers`](crate::Image): an ordinary user owns
/// all of it then, which a user namespace with a single id shows as root.
pub fn left_owners(layer: &Path) -> Result<Vec<LeftOwner>> {
    let path = layer.with_file_name(OWNERS);
    let content = match std::fs::read(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        content => content.map_err(ImageError::storage("read", &path))?,
    };
    let records = content.split(|byte| *byte == 0).filter(|record| !record.is_empty());
    Ok(records.filter_map(LeftOwner::parse).collect())
}

impl LeftOwner {
    /// `uid:gid:mode path`
    fn parse(record: &[u8]) -> Option<LeftOwner> {
        let space = record.iter().position(|byte| *byte == b' ')?;
        let mut numbers = std::str::from_utf8(&record[..space]).ok()?.split(':');
        let (uid, gid) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
        let mode = u32::from_str_radix(numbers.next()?, 8).ok()?;
        Some(LeftOwner { path: record[space + 1..].to_vec(), uid, gid, mode })
    }
}

/// The list, while it is written; there is none where all owners could be set.
pub(super) struct Owners<'a> {
    layer: &'a Path,
    list: Option<std::io::BufWriter<std::fs::File>>,
    pub(super) count: u64,
}

impl Owners<'_> {
    pub(super) fn beside(layer: &Path) -> Owners<'_> {
        Owners { layer, list: None, count: 0 }
    }

    pub(super) fn add(&mut self, owner: &LeftOwner) -> Result<()> {
        let path = self.layer.join(OWNERS);
        let failed = || ImageError::storage::<std::io::Error>("write", &path);
        let list = match &mut self.list {
            Some(list) => list,
            empty => empty.insert(std::io::BufWriter::new(std::fs::File::create(&path).map_err(failed())?)),
        };
        let LeftOwner { path, uid, gid, mode } = owner;
        let written = write!(list, "{uid}:{gid}:{mode:o} ").and_then(|()| list.write_all(path));
        written.and_then(|()| list.write_all(b"\0")).map_err(failed())?;
        self.count += 1;
        Ok(())
    }

    pub(super) fn finish(self) -> Result<u64> {
        if let Some(mut list) = self.list {
            list.flush().map_err(ImageError::storage("write", &self.layer.join(OWNERS)))?;
        }
        Ok(self.count)
    }
}
