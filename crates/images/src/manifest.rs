//! Indexes, manifests and configurations of images, as registries and archives give them. None of it is trusted.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::error::{ImageError, ImageErrorKind, Result};

/// The accepted kinds of manifest, the most general first.
pub(crate) const ACCEPTED: &str = "application/vnd.oci.image.index.v1+json, \
    application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.oci.image.manifest.v1+json, \
    application/vnd.docker.distribution.manifest.v2+json";

/// The most lower folders of an overlay.
const MOST_LAYERS: usize = 500;

/// Content by its digest.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Descriptor {
    #[serde(default)]
    pub(crate) media_type: String,
    pub(crate) digest: Digest,
    pub(crate) size: u64,
    platform: Option<Platform>,
    #[serde(default)]
    pub(crate) annotations: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Deserialize)]
struct Platform {
    architecture: String,
    os: String,
    variant: Option<String>,
}

/// An index or the manifest of one image: its fields decide.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    media_type: Option<String>,
    schema_version: Option<u32>,
    manifests: Option<Vec<Descriptor>>,
    config: Option<Descriptor>,
    layers: Option<Vec<Descriptor>>,
}

/// What a registry gives for a name.
#[derive(Debug)]
pub(crate) enum Manifest {
    /// Several images, for several architectures.
    Index(Vec<Descriptor>),
    /// One image.
    Image(ImageManifest),
}

/// What one image is made of.
#[derive(Debug)]
pub(crate) struct ImageManifest {
    pub(crate) config: Descriptor,
    pub(crate) layers: Vec<Descriptor>,
}

impl Manifest {
    pub(crate) fn parse(content: &[u8]) -> Result<Manifest> {
        let document: Document = serde_json::from_slice(content).map_err(|error| {
            ImageError::unsupported(format!("its manifest cannot be read ({error}): it is not an OCI or Docker image"))
        })?;
        match document {
            Document { manifests: Some(manifests), .. } => Ok(Manifest::Index(manifests)),
            Document { config: Some(config), layers: Some(layers), .. } => {
                ImageManifest::new(config, layers).map(Manifest::Image)
            }
            Document { schema_version: Some(1), .. } => Err(ImageError::unsupported(
                "it is in Docker's first format (schema 1), which is no longer supported. Push it again with a current tool",
            )),
            Document { media_type, .. } => Err(ImageError::unsupported(format!(
                "it is not the manifest of an image (media type {:?})",
                media_type.unwrap_or_default()
            ))),
        }
    }
}

impl ImageManifest {
    fn new(config: Descriptor, layers: Vec<Descriptor>) -> Result<ImageManifest> {
        const CONFIGS: [&str; 3] = [
            "application/vnd.oci.image.config.v1+json",
            "application/vnd.docker.container.image.v1+json",
            // Some tools write it; the content decides.
            "",
        ];
        if !CONFIGS.contains(&config.media_type.as_str()) {
            let message = format!(
                "it is no image but something else that a registry can hold (its configuration has the media type {:?}). \
                 Name an image",
                config.media_type
            );
            return Err(ImageError::unsupported(message));
        }
        for layer in &layers {
            check_layer_type(&layer.media_type)?;
        }
        Ok(ImageManifest { config, layers })
    }
}

/// The first bytes of a layer say how it is compressed; this refuses only what cannot be unpacked at all.
fn check_layer_type(media_type: &str) -> Result<()> {
    const KINDS: [&str; 4] = [
        "application/vnd.oci.image.layer.v1.tar",
        "application/vnd.oci.image.layer.nondistributable.v1.tar",
        "application/vnd.docker.image.rootfs.diff.tar",
        "application/vnd.docker.image.rootfs.foreign.diff.tar",
    ];
    const PACKINGS: [&str; 5] = ["", ".gzip", "+gzip", "+zstd", ".zstd"];
    let known = KINDS.iter().any(|kind| media_type.strip_prefix(kind).is_some_and(|rest| PACKINGS.contains(&rest)));
    if known || media_type.is_empty() {
        return Ok(());
    }
    Err(ImageError::unsupported(format!(
        "one of its layers has the media type {media_type:?}, which cannot be unpacked; tar, tar+gzip and tar+zstd can. Build the \
         image without encryption and with one of these"
    )))
}

/// This machine's architecture, as images name it.
pub(crate) fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        "powerpc64" => "ppc64le",
        other => other,
    }
}

/// The image of an index for this machine.
pub(crate) fn for_this_machine(index: &[Descriptor]) -> Result<&Descriptor> {
    let fits = |descriptor: &&Descriptor| match &descriptor.platform {
        Some(platform) => platform.os == "linux" && platform.architecture == architecture(),
        None => index.len() == 1,
    };
    // Variants of an architecture build on each other: the first runs everywhere.
    let variant = |descriptor: &&Descriptor| descriptor.platform.as_ref().and_then(|platform| platform.variant.clone());
    index.iter().filter(fits).min_by_key(variant).ok_or_else(|| {
        let named = |platform: &Platform| format!("{}/{}", platform.os, platform.architecture);
        let real = |platform: &&Platform| platform.os != "unknown";
        let mut others: Vec<String> =
            index.iter().filter_map(|each| each.platform.as_ref()).filter(real).map(named).collect();
        others.dedup();
        let message = format!(
            "there is no image for this machine (linux/{}) under that name, only for {}. Choose another tag, or build it \
             for this machine",
            architecture(),
            if others.is_empty() { "nothing".to_owned() } else { others.join(", ") }
        );
        ImageError::new(ImageErrorKind::WrongPlatform, message)
    })
}

/// How an image wants to be run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageConfig {
    /// `NAME=value`, in order.
    pub env: Vec<String>,
    /// `user[:group]`, by name or number; root when absent.
    pub user: Option<String>,
    /// Where commands start; `/` when absent.
    pub workdir: Option<String>,
    /// What runs first.
    pub entrypoint: Vec<String>,
    /// Its arguments, or what runs without an entrypoint.
    pub cmd: Vec<String>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The architecture it is for, as images name it: `amd64`, `arm64`.
    pub architecture: String,
}

/// An image's configuration: what to run, and which layers make it.
#[derive(Debug)]
pub(crate) struct Configuration {
    pub(crate) config: ImageConfig,
    /// The digests of the unpacked layers, lowest first.
    pub(crate) layers: Vec<Digest>,
}

impl Configuration {
    pub(crate) fn parse(content: &[u8]) -> Result<Configuration> {
        #[derive(Deserialize)]
        struct Document {
            #[serde(default)]
            architecture: String,
            #[serde(default)]
            os: String,
            config: Option<Run>,
            rootfs: RootFs,
        }
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "PascalCase", default)]
        struct Run {
            env: Option<Vec<String>>,
            user: Option<String>,
            working_dir: Option<String>,
            entrypoint: Option<Vec<String>>,
            cmd: Option<Vec<String>>,
            labels: Option<BTreeMap<String, String>>,
        }
        #[derive(Deserialize)]
        struct RootFs {
            #[serde(default)]
            diff_ids: Option<Vec<Digest>>,
        }
        let document: Document = serde_json::from_slice(content).map_err(|error| {
            ImageError::unsupported(format!(
                "its configuration cannot be read ({error}): it is not an OCI or Docker image"
            ))
        })?;
        let machine = architecture();
        let fits = |value: &str, ours: &str| value.is_empty() || value == ours;
        if !fits(&document.architecture, machine) || !fits(&document.os, "linux") {
            let message = format!(
                "it is for {}/{} and this machine is linux/{machine}. Choose another tag, or build it for this machine",
                document.os, document.architecture
            );
            return Err(ImageError::new(ImageErrorKind::WrongPlatform, message));
        }
        let layers = document.rootfs.diff_ids.unwrap_or_default();
        if layers.len() > MOST_LAYERS {
            let message = format!("it has {} layers, and {MOST_LAYERS} is the most. Build it with fewer", layers.len());
            return Err(ImageError::new(ImageErrorKind::TooLarge, message));
        }
        let run = document.config.unwrap_or_default();
        let said = |text: Option<String>| text.filter(|text| !text.is_empty());
        let config = ImageConfig {
            env: run.env.unwrap_or_default(),
            user: said(run.user),
            workdir: said(run.working_dir),
            entrypoint: run.entrypoint.unwrap_or_default(),
            cmd: run.cmd.unwrap_or_default(),
            labels: run.labels.unwrap_or_default(),
            architecture: document.architecture,
        };
        Ok(Configuration { config, layers })
    }
}
