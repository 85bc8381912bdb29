//! The unpacked layers of a store: each is made once, by one process, and is complete or absent.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::archive::Archive;
use crate::digest::{Digest, Hashing};
use crate::discard::discard;
use crate::error::{ImageError, ImageErrorKind, Result};
use crate::layer::{Budget, FILES, LayerRecord, Metered, expand, unpack, unreadable};
use crate::lock::{Lock, Share};
use crate::manifest::Descriptor;
use crate::progress::{Counter, LayerReporter};
use crate::registry::Registry;

/// The digest of a tar without entries: the only layer of an image without layers.
const EMPTY: &str = "sha256:5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef";
const EMPTY_TAR: &[u8] = &[0; 1024];

const BUFFER: usize = 256 * 1024;

/// With much to spare.
const MOMENT: Duration = Duration::from_secs(3600);

/// The layers of a store.
#[derive(Debug, Clone)]
pub(crate) struct Layers {
    folder: PathBuf,
    locks: PathBuf,
    drafts: PathBuf,
}

/// Where a layer comes from.
#[derive(Clone)]
pub(crate) enum Source {
    Registry(Arc<Registry>, Descriptor),
    Archive(Arc<Archive>, String),
    /// The empty layer, which has no source.
    Empty,
}

/// A layer that is locked against removal.
pub(crate) struct Held {
    _lock: Lock,
}

impl Layers {
    pub(crate) fn new(folder: PathBuf, locks: PathBuf, drafts: PathBuf) -> Layers {
        Layers { folder, locks, drafts }
    }

    pub(crate) fn empty() -> Digest {
        Digest::try_from(EMPTY.to_owned()).unwrap_or_else(|_| Digest::of(EMPTY_TAR))
    }

    pub(crate) fn record(&self, layer: &Digest) -> Option<LayerRecord> {
        LayerRecord::read(&self.place(layer))
    }

    /// For an overlay.
    pub(crate) fn files(&self, layer: &Digest) -> PathBuf {
        self.place(layer).join(FILES)
    }

    fn place(&self, layer: &Digest) -> PathBuf {
        self.folder.join(layer.hex())
    }

    fn lock(&self, layer: &str) -> PathBuf {
        self.locks.join(format!("layer-{layer}"))
    }

    /// The layer; makes it if it is missing.
    pub(crate) async fn ensure(
        &self,
        layer: &Digest,
        source: &Source,
        reporter: &LayerReporter,
        budget: &Budget,
    ) -> Result<Held> {
        let lock_file = self.lock(layer.hex());
        let mut is_made = false;
        loop {
            let lock = Lock::take(&lock_file, Share::Users, || reporter.report("Waiting")).await?;
            if let Some(record) = self.record(layer) {
                if !is_made {
                    budget.bytes(record.bytes)?;
                    budget.entries(record.entries)?;
                    reporter.report("Already exists");
                }
                return Ok(Held { _lock: lock });
            }
            drop(lock);
            let lock = Lock::take(&lock_file, Share::One, || reporter.report("Waiting")).await?;
            if self.record(layer).is_none() {
                self.make(layer, source, reporter, budget, lock).await?;
                is_made = true;
                reporter.report("Pull complete");
            }
        }
    }

    async fn make(
        &self,
        layer: &Digest,
        source: &Source,
        reporter: &LayerReporter,
        budget: &Budget,
        lock: Lock,
    ) -> Result<()> {
        let part = self.drafts.join(format!("{}.part", layer.hex()));
        if let Source::Registry(registry, blob) = source {
            registry.download(blob, &part, reporter).await?;
            reporter.report("Download complete");
        }
        let draft = Draft {
            layer: layer.clone(),
            folder: self.drafts.join(layer.hex()),
            place: self.place(layer),
            budget: budget.clone(),
        };
        let (source, reporter) = (source.clone(), reporter.clone());
        // It runs to its end, with its lock, even when nobody waits for it any more.
        let making = tokio::task::spawn_blocking(move || {
            let _lock = lock;
            let made = draft.make(&source, &part, &reporter);
            if matches!(source, Source::Registry(..)) && !made.as_ref().is_err_and(is_ours) {
                let _ = std::fs::remove_file(&part);
            }
            made
        });
        making.await.map_err(|error| ImageError::new(ImageErrorKind::Storage, format!("unpacking failed: {error}")))?
    }

    /// The digests of all layers, by name only.
    pub(crate) fn list(&self) -> Result<Vec<Digest>> {
        let entries = std::fs::read_dir(&self.folder).map_err(ImageError::storage("list", &self.folder))?;
        let name = |entry: io::Result<std::fs::DirEntry>| entry.ok()?.file_name().into_string().ok();
        Ok(entries.filter_map(name).filter_map(|hex| format!("sha256:{hex}").parse().ok()).collect())
    }

    /// Removes a layer if nobody makes or uses it, and it is not `needed` once it is locked.
    pub(crate) fn remove(&self, layer: &Digest, needed: impl FnOnce() -> Result<bool>) -> Result<bool> {
        let Some(lock) = Lock::try_take(&self.lock(layer.hex()), Share::One)? else { return Ok(false) };
        if needed()? {
            return Ok(false);
        }
        let gone = self.drafts.join(format!("gone-{}", layer.hex()));
        discard(&gone).map_err(ImageError::storage("remove", &gone))?;
        let place = self.place(layer);
        std::fs::rename(&place, &gone).map_err(ImageError::storage("remove", &place))?;
        discard(&gone).map_err(ImageError::storage("remove", &gone))?;
        lock.retire();
        Ok(true)
    }

    /// Removes what crashed processes left behind.
    pub(crate) fn sweep(&self) -> Result<()> {
        let entries = std::fs::read_dir(&self.drafts).map_err(ImageError::storage("list", &self.drafts))?;
        for path in entries.filter_map(io::Result::ok).map(|entry| entry.path()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let hex = name.trim_start_matches("gone-").trim_end_matches(".part");
            let failed = || ImageError::storage("remove", &path);
            match format!("sha256:{hex}").parse::<Digest>() {
                // A process that works on it has its lock.
                Ok(layer) => {
                    let Some(lock) = Lock::try_take(&self.lock(hex), Share::One)? else { continue };
                    discard(&path).map_err(failed())?;
                    if !self.place(&layer).exists() {
                        lock.retire();
                    }
                }
                // Anything else is written in a moment.
                Err(_) if age(&path) > MOMENT => discard(&path).map_err(failed())?,
                Err(_) => {}
            }
        }
        Ok(())
    }
}

fn age(path: &Path) -> Duration {
    let modified = path.symlink_metadata().and_then(|there| there.modified());
    modified.ok().and_then(|modified| modified.elapsed().ok()).unwrap_or_default()
}

/// Whether a failure is local, and the download stays useful.
fn is_ours(error: &ImageError) -> bool {
    matches!(error.kind, ImageErrorKind::NoSpace | ImageErrorKind::Storage)
}

/// A layer that is being unpacked.
struct Draft {
    layer: Digest,
    folder: PathBuf,
    place: PathBuf,
    budget: Budget,
}

impl Draft {
    fn make(self, source: &Source, part: &Path, reporter: &LayerReporter) -> Result<()> {
        discard(&self.folder).map_err(ImageError::storage("remove", &self.folder))?;
        let made = self.fill(source, part, reporter).and_then(|()| self.place());
        if made.is_err() {
            let _ = discard(&self.folder);
        }
        made
    }

    fn fill(&self, source: &Source, part: &Path, reporter: &LayerReporter) -> Result<()> {
        std::fs::create_dir(&self.folder).map_err(ImageError::storage("make", &self.folder))?;
        let (packed, size): (Box<dyn Read + Send>, u64) = match source {
            Source::Registry(_, blob) => {
                (Box::new(File::open(part).map_err(ImageError::storage("read", part))?), blob.size)
            }
            Source::Archive(archive, name) => archive.read(name)?.ok_or_else(|| {
                ImageError::invalid_layer(format!("its layer {name:?} is missing: it was not saved completely"))
            })?,
            Source::Empty => (Box::new(EMPTY_TAR), EMPTY_TAR.len() as u64),
        };
        let counted = Counted { inner: packed, counter: reporter.counter("Extracting", size) };
        let content = expand(BufReader::with_capacity(BUFFER, counted)).map_err(unreadable)?;
        let hashing = Hashing::new(Metered { inner: content, budget: self.budget.clone() });
        let mut stream = BufReader::with_capacity(BUFFER, hashing);
        let what = || format!("layer {}", self.layer.short());
        unpack(&mut stream, &self.folder, self.budget.clone()).map_err(|error| error.about(what()))?;
        io::copy(&mut stream, &mut io::sink()).map_err(|error| unreadable(error).about(what()))?;
        self.layer.check(&stream.into_inner().finish(), &format!("the content of {}", what()))
    }

    /// Syncs all of it to disk before it gets its name.
    fn place(&self) -> Result<()> {
        let failed = || ImageError::storage::<io::Error>("keep", &self.place);
        let folder = File::open(&self.folder).map_err(failed())?;
        rustix::fs::syncfs(&folder).map_err(|error| failed()(error.into()))?;
        std::fs::rename(&self.folder, &self.place).map_err(failed())?;
        let above = self.place.parent().unwrap_or(&self.place);
        File::open(above).and_then(|above| above.sync_all()).map_err(failed())
    }
}

/// Reports its progress.
struct Counted<R> {
    inner: R,
    counter: Counter,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        if count > 0 {
            self.counter.add(count);
        }
        Ok(count)
    }
}
