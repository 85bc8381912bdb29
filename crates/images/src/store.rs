//! The store: images on this machine's disk, from registries and archives, ready to be mounted.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};

use crate::archive::{Archive, Archived};
use crate::credentials::docker_config;
use crate::digest::Digest;
use crate::discard::discard;
use crate::error::{ImageError, ImageErrorKind, Result};
use crate::folder;
use crate::layer::{Budget, Limits};
use crate::layers::{Held, Layers, Source};
use crate::lock::{InUse, Lock, Share};
use crate::manifest::{Configuration, ImageConfig};
use crate::progress::{OnProgress, Reporter};
use crate::records::{NameRecord, Records};
use crate::reference::{Reference, Wanted};
use crate::registry::{Registry, Wire};
use crate::seam::sew;

/// Layers that are downloaded at the same time, as in docker.
const AT_ONCE: usize = 3;

/// When to ask a registry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PullPolicy {
    /// When the store does not have the image.
    #[default]
    Missing,
    /// Each time, in case the name stands for another image now.
    Always,
    /// Not at all.
    Never,
}

/// How a store works.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// The most that one image may unpack to.
    pub limits: Limits,
    /// Docker's configuration, for credentials; by default `$DOCKER_CONFIG/config.json` or `~/.docker/config.json`.
    pub docker_config: Option<PathBuf>,
    /// The timeout of a silent registry.
    pub patience: Duration,
}

impl Default for StoreOptions {
    fn default() -> StoreOptions {
        StoreOptions { limits: Limits::default(), docker_config: docker_config(), patience: Duration::from_secs(30) }
    }
}

/// An image that is ready to be mounted.
#[derive(Debug)]
pub struct Image {
    /// Folders for an overlay, lowest first; there is always one. They are never written to: other images may share them.
    pub layers: Vec<PathBuf>,
    /// How it wants to be run.
    pub config: ImageConfig,
    /// Of its configuration, which names all that is in it: `sha256:…`. A reference for [`ImageStore::prepare`].
    pub id: String,
    /// Of its manifest, as the registry knows it; its id, where it never was in one.
    pub digest: String,
    /// Keeps it from being pruned.
    pub lease: InUse,
}

/// Images in a folder. Any number of processes may use the same one at the same time.
///
/// ```no_run
/// # async fn example() -> Result<(), cofferdam_images::ImageError> {
/// use cofferdam_images::{ImageStore, PullPolicy};
///
/// let store = ImageStore::new(cofferdam_images::default_folder()?);
/// let image = store.prepare("alpine:3.19", PullPolicy::Missing, None).await?;
/// println!("{} layers, lowest first: {:?}", image.layers.len(), image.layers);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ImageStore {
    pub(crate) folder: PathBuf,
    pub(crate) options: StoreOptions,
    pub(crate) records: Records,
    pub(crate) layers: Layers,
    wire: Wire,
    ready: OnceLock<()>,
}

impl ImageStore {
    /// Touches nothing before the first call.
    pub fn new(folder: impl Into<PathBuf>) -> ImageStore {
        ImageStore::with(folder, StoreOptions::default())
    }

    /// With options.
    pub fn with(folder: impl Into<PathBuf>, options: StoreOptions) -> ImageStore {
        let folder = folder.into();
        let part = |name: &str| folder.join(name);
        let records = Records::new(part(folder::IMAGES), part(folder::NAMES), part(folder::DRAFTS));
        let layers = Layers::new(part(folder::LAYERS), part(folder::LOCKS), part(folder::DRAFTS));
        let wire = Wire::new(options.patience);
        ImageStore { folder, options, records, layers, wire, ready: OnceLock::new() }
    }

    /// The image of this name, from the store or from its registry.
    pub async fn prepare(&self, reference: &str, pull: PullPolicy, on_progress: Option<&OnProgress>) -> Result<Image> {
        self.open()?;
        let name = match Wanted::parse(reference)? {
            Wanted::Id(id) => return self.held(&id, None).await?.ok_or_else(|| not_stored(reference)),
            Wanted::Name(name) => name,
        };
        // A digest stands for the same image for ever.
        if pull != PullPolicy::Always || name.digest.is_some() {
            if let Some(record) = self.records.name(&name)
                && let Some(image) = self.held(&record.id, record.digest).await?
            {
                return Ok(image);
            }
            if pull == PullPolicy::Never {
                return Err(not_stored(reference));
            }
        }
        let reporter = Reporter::new(reference, on_progress);
        let pulled = self.pull(&name, &reporter).await;
        pulled.map_err(|error| error.about(format!("image \"{reference}\" could not be pulled")))
    }

    /// Loads the images of an archive: a file of `docker save`, or an OCI layout as a file or a folder; compressed or not. Returns
    /// the name of the first, for [`ImageStore::prepare`].
    pub async fn load(&self, archive: &Path) -> Result<String> {
        self.open()?;
        let loaded = self.load_all(archive).await;
        loaded.map_err(|error| error.about(format!("no image could be loaded from {}", archive.display())))
    }

    pub(crate) fn open(&self) -> Result<()> {
        if self.ready.get().is_none() {
            folder::prepare(&self.folder)?;
            let _ = self.ready.set(());
        }
        Ok(())
    }

    pub(crate) fn image_lock(&self, id: &Digest) -> PathBuf {
        self.folder.join(folder::LOCKS).join(format!("image-{}", id.hex()))
    }

    /// An image that is in the store with all its layers.
    async fn held(&self, id: &Digest, digest: Option<Digest>) -> Result<Option<Image>> {
        let lock = Lock::take(&self.image_lock(id), Share::Users, || ()).await?;
        let Some(configuration) = self.records.image(id) else { return Ok(None) };
        if needed(&configuration).iter().any(|layer| self.layers.record(layer).is_none()) {
            return Ok(None);
        }
        self.records.touch(id);
        Ok(Some(self.image(id, digest, configuration, lock)))
    }

    async fn pull(&self, name: &Reference, reporter: &Reporter) -> Result<Image> {
        reporter.report(format!("Pulling from {}", name.repository));
        let registry = Registry::new(self.wire.clone(), name.clone(), self.options.docker_config.clone());
        let (manifest, digest) = registry.manifest().await?;
        let id = manifest.config.digest.clone();
        let record = NameRecord { reference: name.to_string(), id: id.clone(), digest: Some(digest.clone()) };
        if let Some(image) = self.held(&id, Some(digest.clone())).await? {
            self.records.keep_name(&record)?;
            reporter.report(format!("Digest: {digest}"));
            reporter.report(format!("Status: Image is up to date for {name}"));
            return Ok(image);
        }
        let raw_configuration = registry.small_blob(&manifest.config).await?;
        let configuration = Configuration::parse(&raw_configuration)?;
        let registry = Arc::new(registry);
        let source = |blob| Source::Registry(registry.clone(), blob);
        let sources: Vec<Source> = manifest.layers.into_iter().map(source).collect();
        let layers = self.bring(&configuration, sources, reporter).await?;
        let image = self.keep(&record, &raw_configuration, configuration, layers).await?;
        reporter.report(format!("Digest: {digest}"));
        reporter.report(format!("Status: Downloaded newer image for {name}"));
        Ok(image)
    }

    async fn load_all(&self, path: &Path) -> Result<String> {
        let scratch = self.draft("archive");
        let (path, budget) = (path.to_owned(), Budget::new(self.options.limits));
        let opening = tokio::task::spawn_blocking(move || {
            let archive = Archive::open(&path, &scratch, budget)?;
            Ok((archive.images()?, archive))
        });
        let opened = opening
            .await
            .map_err(|error| ImageError::new(ImageErrorKind::Storage, format!("reading failed: {error}")))?;
        let (images, archive): (Vec<Archived>, Archive) = opened?;
        let archive = Arc::new(archive);
        let mut first = None;
        for image in images {
            let name = self.load_one(&archive, image).await?;
            first.get_or_insert(name);
        }
        first.ok_or_else(|| ImageError::unsupported("it holds no image"))
    }

    async fn load_one(&self, archive: &Arc<Archive>, image: Archived) -> Result<String> {
        let Archived { id, digest, configuration, raw_configuration, layers, names } = image;
        let source = |name| Source::Archive(archive.clone(), name);
        let sources = layers.into_iter().map(source).collect();
        let reporter = Reporter::new("", None);
        let layers = self.bring(&configuration, sources, &reporter).await?;
        // A bare tag is not a name.
        let is_name = |name: &String| name.contains([':', '/']);
        let names = names.iter().filter(|name| is_name(name)).map(|name| Reference::parse(name));
        let names = names.collect::<Result<Vec<_>>>()?;
        let _lock = Lock::take(&self.image_lock(&id), Share::Users, || ()).await?;
        self.keep_image(&id, &raw_configuration, &configuration)?;
        drop(layers);
        for name in &names {
            let record = NameRecord { reference: name.to_string(), id: id.clone(), digest: digest.clone() };
            self.records.keep_name(&record)?;
        }
        Ok(names.first().map_or_else(|| id.to_string(), Reference::to_string))
    }

    /// All layers of an image, locked until it is recorded.
    async fn bring(
        &self,
        configuration: &Configuration,
        sources: Vec<Source>,
        reporter: &Reporter,
    ) -> Result<Vec<Held>> {
        if sources.len() != configuration.layers.len() {
            return Err(ImageError::unsupported(format!(
                "its manifest lists {} layers and its configuration {}: it is broken. Build or push it again",
                sources.len(),
                configuration.layers.len()
            )));
        }
        let budget = Budget::new(self.options.limits);
        let mut seen = HashSet::new();
        let mut wanted: Vec<(Digest, Source)> = configuration.layers.iter().cloned().zip(sources).collect();
        if wanted.is_empty() {
            wanted.push((Layers::empty(), Source::Empty));
        }
        wanted.retain(|(layer, _)| seen.insert(layer.clone()));
        for (layer, source) in &wanted {
            reporter.layer(shown(layer, source)).report("Pulling fs layer");
        }
        let ensure = |(layer, source): (Digest, Source)| {
            let (reporter, budget) = (reporter.layer(shown(&layer, &source)), budget.clone());
            async move { self.layers.ensure(&layer, &source, &reporter, &budget).await }
        };
        stream::iter(wanted).map(ensure).buffer_unordered(AT_ONCE).try_collect().await
    }

    /// Records an image whose layers are in the store.
    async fn keep(
        &self,
        record: &NameRecord,
        raw_configuration: &[u8],
        configuration: Configuration,
        layers: Vec<Held>,
    ) -> Result<Image> {
        let lock = Lock::take(&self.image_lock(&record.id), Share::Users, || ()).await?;
        self.keep_image(&record.id, raw_configuration, &configuration)?;
        // From here on the record protects them.
        drop(layers);
        self.records.keep_name(record)?;
        Ok(self.image(&record.id, record.digest.clone(), configuration, lock))
    }

    fn image(&self, id: &Digest, digest: Option<Digest>, configuration: Configuration, lock: Lock) -> Image {
        let mut layers = self.lowers(&configuration);
        layers.extend(Some(self.seam(id)).filter(|seam| seam.is_dir()));
        Image {
            layers,
            config: configuration.config,
            id: id.to_string(),
            digest: digest.as_ref().unwrap_or(id).to_string(),
            lease: InUse::new(lock),
        }
    }

    /// As an overlay takes them: none twice, and none that is hidden.
    fn lowers(&self, configuration: &Configuration) -> Vec<PathBuf> {
        let mut lowers: Vec<Digest> = Vec::new();
        for layer in needed(configuration).into_iter().rev() {
            // A repeated layer only counts at its highest position.
            if lowers.contains(&layer) {
                continue;
            }
            let hides = self.layers.record(&layer).is_some_and(|record| record.hides_all_below);
            lowers.push(layer);
            if hides {
                break;
            }
        }
        lowers.iter().rev().map(|layer| self.layers.files(layer)).collect()
    }

    pub(crate) fn seam(&self, id: &Digest) -> PathBuf {
        self.folder.join(folder::SEAMS).join(id.hex())
    }

    /// The record of an image, when all its layers are there.
    fn keep_image(&self, id: &Digest, raw_configuration: &[u8], configuration: &Configuration) -> Result<()> {
        let layers = self.lowers(configuration);
        let is_plain = |layer: &Digest| self.layers.record(layer).is_none_or(|record| record.implied == 0);
        if !needed(configuration).iter().all(is_plain) && !self.seam(id).exists() {
            let draft = self.draft("seam");
            std::fs::create_dir(&draft).map_err(ImageError::storage("make", &draft))?;
            let sewn = sew(&layers, &draft);
            if matches!(sewn, Ok(true)) {
                // Another process made the same one faster.
                let _ = std::fs::rename(&draft, self.seam(id));
            }
            discard(&draft).map_err(ImageError::storage("remove", &draft))?;
            sewn?;
        }
        self.records.keep_image(id, raw_configuration)
    }

    /// A unique name.
    fn draft(&self, what: &str) -> PathBuf {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        self.folder.join(folder::DRAFTS).join(format!("{what}-{}-{number}", std::process::id()))
    }
}

/// The layers of an image.
pub(crate) fn needed(configuration: &Configuration) -> Vec<Digest> {
    match configuration.layers.is_empty() {
        true => vec![Layers::empty()],
        false => configuration.layers.clone(),
    }
}

/// The registry's digest of a layer is the one that people know.
fn shown<'a>(layer: &'a Digest, source: &'a Source) -> &'a Digest {
    match source {
        Source::Registry(_, blob) => &blob.digest,
        _ => layer,
    }
}

fn not_stored(reference: &str) -> ImageError {
    let message = format!(
        "image \"{reference}\" is not in the store of this machine, and pulling it is not allowed. Pull or load it first, or leave \
         pull out"
    );
    ImageError::new(ImageErrorKind::NotFound, message)
}
