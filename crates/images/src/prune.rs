//! Lists a store, and removes what is not in use.

use std::collections::HashSet;
use std::time::{Duration, SystemTime};

use crate::digest::Digest;
use crate::discard::discard;
use crate::error::{ImageError, ImageErrorKind, Result};
use crate::lock::{Lock, Share};
use crate::store::{ImageStore, needed};

/// What to remove: by default, all that is not in use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PruneOptions {
    /// Only images that were not used for this long.
    pub unused_for: Option<Duration>,
    /// Only until the remaining layers take no more than this; the least recently used go first.
    pub keep_bytes: Option<u64>,
}

/// What was removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pruned {
    /// The ids of images.
    pub images: Vec<String>,
    /// How many layers.
    pub layers: usize,
    /// Their content.
    pub bytes: u64,
}

/// An image in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredImage {
    /// Of its configuration.
    pub id: String,
    /// Its names, in full.
    pub references: Vec<String>,
    /// Of its manifest, where it came from a registry.
    pub digest: Option<String>,
    /// Of all its layers, including shared ones.
    pub bytes: u64,
    /// When it was last prepared.
    pub last_used: SystemTime,
    /// Whether it is in use.
    pub in_use: bool,
}

impl ImageStore {
    /// All images, the most recently used first.
    pub fn list(&self) -> Result<Vec<StoredImage>> {
        self.open()?;
        let names = self.records.names()?;
        let mut images = Vec::new();
        for id in self.records.images()? {
            let Some(configuration) = self.records.image(&id) else { continue };
            let layers: HashSet<Digest> = needed(&configuration).into_iter().collect();
            let own = || names.iter().filter(|name| name.id == id);
            let mut references: Vec<String> = own().map(|name| name.reference.clone()).collect();
            references.sort();
            images.push(StoredImage {
                references,
                digest: own().find_map(|name| name.digest.as_ref().map(Digest::to_string)),
                bytes: layers.iter().filter_map(|layer| self.layers.record(layer)).map(|record| record.bytes).sum(),
                last_used: self.records.last_used(&id),
                in_use: Lock::try_take(&self.image_lock(&id), Share::One)?.is_none(),
                id: id.to_string(),
            });
        }
        images.sort_by_key(|image| std::cmp::Reverse(image.last_used));
        Ok(images)
    }

    /// Removes images that are not in use, then layers without an image, then what killed processes left behind.
    pub async fn prune(&self, options: PruneOptions) -> Result<Pruned> {
        self.open()?;
        let store = ImageStore::with(&self.folder, self.options.clone());
        let pruning = tokio::task::spawn_blocking(move || store.prune_now(options));
        pruning.await.map_err(|error| ImageError::new(ImageErrorKind::Storage, format!("pruning failed: {error}")))?
    }

    fn prune_now(&self, options: PruneOptions) -> Result<Pruned> {
        let mut pruned = Pruned::default();
        let mut images = self.list()?;
        images.retain(|image| !image.in_use);
        for image in images.iter().rev() {
            let age = image.last_used.elapsed().unwrap_or_default();
            let is_old = options.unused_for.is_none_or(|most| age >= most);
            let is_too_much = match options.keep_bytes {
                Some(most) => self.needed_bytes()? > most,
                None => true,
            };
            if is_old && is_too_much && self.remove_image(&image.id)? {
                pruned.images.push(image.id.clone());
            }
        }
        let needed = self.needed_layers()?;
        for layer in self.layers.list()?.into_iter().filter(|layer| !needed.contains(layer)) {
            let bytes = self.layers.record(&layer).map_or(0, |record| record.bytes);
            if self.layers.remove(&layer, || Ok(self.needed_layers()?.contains(&layer)))? {
                pruned.layers += 1;
                pruned.bytes += bytes;
            }
        }
        self.layers.sweep()?;
        Ok(pruned)
    }

    /// False when it is in use.
    fn remove_image(&self, id: &str) -> Result<bool> {
        let Ok(id) = id.parse() else { return Ok(false) };
        let Some(lock) = Lock::try_take(&self.image_lock(&id), Share::One)? else { return Ok(false) };
        self.records.remove_image(&id)?;
        let seam = self.seam(&id);
        discard(&seam).map_err(ImageError::storage("remove", &seam))?;
        lock.retire();
        Ok(true)
    }

    fn needed_layers(&self) -> Result<HashSet<Digest>> {
        let ids = self.records.images()?;
        Ok(ids.iter().filter_map(|id| self.records.image(id)).flat_map(|image| needed(&image)).collect())
    }

    fn needed_bytes(&self) -> Result<u64> {
        let layers = self.needed_layers()?;
        Ok(layers.iter().filter_map(|layer| self.layers.record(layer)).map(|record| record.bytes).sum())
    }
}
