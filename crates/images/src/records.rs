//! The records of a store: image configurations by their digest, and names that point to them.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::error::{ImageError, Result};
use crate::manifest::Configuration;
use crate::reference::Reference;

/// The image of a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NameRecord {
    /// In full.
    pub(crate) reference: String,
    pub(crate) id: Digest,
    /// Of the manifest that a registry gave for it.
    pub(crate) digest: Option<Digest>,
}

/// The records of a store.
#[derive(Debug, Clone)]
pub(crate) struct Records {
    images: PathBuf,
    names: PathBuf,
    drafts: PathBuf,
}

impl Records {
    pub(crate) fn new(images: PathBuf, names: PathBuf, drafts: PathBuf) -> Records {
        Records { images, names, drafts }
    }

    /// `None` when it is missing or invalid.
    pub(crate) fn image(&self, id: &Digest) -> Option<Configuration> {
        let content = std::fs::read(self.image_file(id)).ok()?;
        (Digest::of(&content) == *id).then(|| Configuration::parse(&content).ok())?
    }

    pub(crate) fn keep_image(&self, id: &Digest, raw_configuration: &[u8]) -> Result<()> {
        self.write(&self.image_file(id), raw_configuration)
    }

    /// When it was last used, for pruning.
    pub(crate) fn touch(&self, id: &Digest) {
        let _ = File::open(self.image_file(id)).and_then(|file| file.set_modified(SystemTime::now()));
    }

    pub(crate) fn last_used(&self, id: &Digest) -> SystemTime {
        let modified = self.image_file(id).metadata().and_then(|there| there.modified());
        modified.unwrap_or(SystemTime::UNIX_EPOCH)
    }

    pub(crate) fn images(&self) -> Result<Vec<Digest>> {
        let entries = std::fs::read_dir(&self.images).map_err(ImageError::storage("list", &self.images))?;
        let name = |entry: io::Result<std::fs::DirEntry>| entry.ok()?.file_name().into_string().ok();
        let id = |name: String| format!("sha256:{}", name.strip_suffix(".json")?).parse().ok();
        Ok(entries.filter_map(name).filter_map(id).collect())
    }

    /// With all its names.
    pub(crate) fn remove_image(&self, id: &Digest) -> Result<()> {
        for record in self.names()?.into_iter().filter(|record| record.id == *id) {
            let file = self.name_file(&record.reference);
            std::fs::remove_file(&file).map_err(ImageError::storage("remove", &file))?;
        }
        let file = self.image_file(id);
        std::fs::remove_file(&file).map_err(ImageError::storage("remove", &file))
    }

    pub(crate) fn name(&self, reference: &Reference) -> Option<NameRecord> {
        read_name(&self.name_file(&reference.to_string()))
    }

    pub(crate) fn keep_name(&self, record: &NameRecord) -> Result<()> {
        if read_name(&self.name_file(&record.reference)).as_ref() == Some(record) {
            return Ok(());
        }
        let content = serde_json::to_vec(record).unwrap_or_default();
        self.write(&self.name_file(&record.reference), &content)
    }

    pub(crate) fn names(&self) -> Result<Vec<NameRecord>> {
        let entries = std::fs::read_dir(&self.names).map_err(ImageError::storage("list", &self.names))?;
        Ok(entries.filter_map(io::Result::ok).filter_map(|entry| read_name(&entry.path())).collect())
    }

    fn image_file(&self, id: &Digest) -> PathBuf {
        self.images.join(format!("{}.json", id.hex()))
    }

    /// Names have slashes and colons, and may be too long for file names.
    fn name_file(&self, reference: &str) -> PathBuf {
        self.names.join(format!("{}.json", Digest::of(reference.as_bytes()).hex()))
    }

    /// Atomically: the old content or the new.
    fn write(&self, file: &Path, content: &[u8]) -> Result<()> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let draft = self.drafts.join(format!("record-{}-{number}", std::process::id()));
        let written = File::create(&draft).and_then(|mut target| {
            target.write_all(content)?;
            target.sync_all()?;
            std::fs::rename(&draft, file)
        });
        written.map_err(ImageError::storage("write", file))
    }
}

fn read_name(file: &Path) -> Option<NameRecord> {
    serde_json::from_slice(&std::fs::read(file).ok()?).ok()
}
