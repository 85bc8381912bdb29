//! What a backend is: something that gives Linux boxes and a byte stream into each. It never sees a command or a file.

mod auto;
pub mod docker;
#[cfg(all(target_os = "linux", feature = "namespaces"))]
pub mod namespaces;

pub(crate) use auto::choose;

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use cofferdam_protocol::{Setup, Status};
use serde::{Deserialize, Serialize};

use crate::guest::ByteStream;
use crate::options::{Limits, OnPull, PullPolicy};
use crate::{Error, ErrorCode, Result};

/// A box to make.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BoxSpec {
    /// A name that only one box can have.
    pub claim: String,
    /// What PID 1 in it is told.
    pub setup: Setup,
    /// A resolved image name.
    pub image: String,
    /// Over the image's own environment.
    pub env: BTreeMap<String, String>,
    /// What it may use.
    pub limits: Limits,
    /// Whether it may reach the network.
    pub network: bool,
    /// Whether only the workdir and `/tmp` may be written.
    pub read_only_root: bool,
    /// Whether its workspace outlives it.
    pub persist: bool,
    /// The caller's own.
    pub labels: BTreeMap<String, String>,
    /// What it starts from instead of the image: the image with packages.
    #[serde(default)]
    pub layer: Option<String>,
}

impl BoxSpec {
    /// What it starts from.
    pub fn root(&self) -> &str {
        self.layer.as_deref().unwrap_or(&self.image)
    }
}

/// What came of making a box.
pub enum Creation {
    /// It is there, and this is its first stream.
    New {
        /// The backend's own name for it.
        handle: String,
        /// Its first stream.
        stream: ByteStream,
    },
    /// Somebody else holds the claim.
    Taken,
}

/// What a box is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoxState {
    /// Made, about to run.
    Starting,
    /// It runs, and is nobody's yet.
    Warm,
    /// It runs.
    Running,
    /// It is frozen.
    Paused,
    /// It is over.
    Stopped,
}

/// A box that exists.
#[derive(Debug, Clone)]
pub struct BoxRecord {
    /// The backend's own name for it.
    pub handle: String,
    /// Its claim.
    pub name: String,
    /// `sbx_…`
    pub id: String,
    /// The session's key; empty where only its guest knows it.
    pub key: String,
    /// A resolved image name.
    pub image: String,
    /// Where commands run.
    pub workdir: String,
    /// What it is doing.
    pub state: BoxState,
    /// When it was made.
    pub created_at: SystemTime,
    /// When it ends at the latest.
    pub expires_at: Option<SystemTime>,
    /// What it may use.
    pub limits: Limits,
    /// Whether it may reach the network.
    pub network: bool,
    /// Whether its workspace outlives it.
    pub persist: bool,
    /// The caller's own.
    pub labels: BTreeMap<String, String>,
}

impl BoxRecord {
    /// Ours, and just taken from the pool: it is about to get its name.
    pub(crate) fn named_for(&mut self, key: &str) {
        if self.state == BoxState::Warm {
            self.state = BoxState::Running;
            self.name = crate::key::claim(key);
        }
    }

    /// Takes over what the guest knows better than the engine. Whose it is, is not a thing to take a guest's word for
    /// where the engine knows it.
    pub(crate) fn take_status(&mut self, status: &Status) {
        let setup = &status.setup;
        if self.key.is_empty() && crate::key::claim(&setup.key) == self.name {
            self.key.clone_from(&setup.key);
            self.workdir.clone_from(&setup.workdir);
            self.labels.extend(setup.labels.iter().cloned());
        }
        let left = status.expires_in_ms.map(Duration::from_millis);
        self.expires_at = left.and_then(|left| SystemTime::now().checked_add(left));
        let bound = |value: u64| (value > 0).then_some(value);
        self.limits.workspace_mb = bound(setup.bounds.workspace_bytes >> 20);
        self.limits.open_files = bound(setup.bounds.open_files).or(self.limits.open_files);
    }
}

/// What to clean up.
#[derive(Debug, Clone, Copy, Default)]
pub struct PruneRequest {
    /// Persistent workspaces too, that no sandbox uses.
    pub volumes: bool,
    /// Layers with packages too, that no sandbox uses.
    pub packages: bool,
    /// Only what is at least so old.
    pub older_than: Duration,
    /// Tell, and do nothing.
    pub dry_run: bool,
}

/// What was cleaned up.
#[derive(Debug, Clone, Default)]
pub struct PruneReport {
    /// Dead sandboxes, by their backend's name.
    pub sandboxes: Vec<String>,
    /// Volumes, by name.
    pub volumes: Vec<String>,
    /// Layers with packages, by name.
    pub packages: Vec<String>,
}

/// What an image says of itself.
#[derive(Debug, Clone, Default)]
pub struct ImageFacts {
    /// What it is, whatever it is called.
    pub id: String,
    /// Whom commands run as.
    pub user: Option<String>,
}

/// How a limit is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enforcement {
    /// By the kernel.
    Enforced,
    /// By the guest, which ends what goes beyond it.
    Watched,
    /// Not at all.
    None,
}

/// A backend, and what it can and cannot do here.
#[derive(Debug, Clone)]
pub struct EngineInfo {
    /// `docker`
    pub backend: &'static str,
    /// The engine's own.
    pub version: String,
    /// Of its API.
    pub api_version: Option<String>,
    /// How well boxes are kept apart, where that depends on the machine.
    pub tier: Option<&'static str>,
    /// Facts by name, for people and for `doctor`.
    pub abilities: BTreeMap<String, serde_json::Value>,
    /// Which limits really apply.
    pub limits: BTreeMap<&'static str, Enforcement>,
    /// Engines that were tried before this one.
    pub tried: Vec<Attempt>,
}

/// An engine that was tried in vain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// Its address.
    pub host: String,
    /// Who says so: `option`, `DOCKER_HOST`, `context <name>`, or `default` for a place where engines are known to be.
    pub source: String,
    /// For programs: `missing`, `denied`, `refused`, `silent`, `unresolved`, `old-api`, `not-an-engine`, `bad-address`, `other`.
    pub reason: String,
    /// For people.
    pub problem: String,
}

/// Gives boxes.
#[async_trait]
pub trait Backend: Send + Sync {
    /// What it is and can do here.
    async fn info(&self) -> Result<EngineInfo>;

    /// The name that a shortcut or a caller's own word for an image stands for here.
    async fn resolve_image(&self, name: &str) -> Result<String> {
        crate::resolve_image(name)
    }

    /// Makes sure that an image is there.
    async fn prepare_image(&self, image: &str, pull: PullPolicy, on_pull: Option<&OnPull>) -> Result<ImageFacts>;

    /// Pulls an image whether or not it is there.
    async fn pull(&self, image: &str, on_pull: Option<&OnPull>) -> Result<()>;

    /// Makes and starts a box, unless its claim is taken. Leaves nothing behind when it fails.
    async fn create(&self, spec: &BoxSpec) -> Result<Creation>;

    /// A further stream into a box; `SANDBOX_LOST` with the reason when there is none.
    async fn link(&self, handle: &str) -> Result<ByteStream>;

    /// Why a box is no more: `SANDBOX_LOST` with the reason; `None` while it is there.
    async fn fate(&self, handle: &str) -> Option<Error>;

    /// A stream that does not pass through the engine, where there is a way to one.
    async fn shortcut(&self, _handle: &str) -> Option<ByteStream> {
        None
    }

    /// A box by its claim or its handle.
    async fn find(&self, name: &str) -> Result<Option<BoxRecord>>;

    /// All boxes of cofferdam, whoever made them.
    async fn list(&self) -> Result<Vec<BoxRecord>>;

    /// Ends a box and removes all that belongs to it but a persistent workspace. One that is gone already is fine.
    async fn remove(&self, handle: &str) -> Result<()>;

    /// Gives a box another claim. False when somebody else holds that. A lasting one may be found again by others: it
    /// outlives its host for its orphan timeout.
    async fn rename(&self, _handle: &str, _claim: &str, _is_lasting: bool) -> Result<bool> {
        Err(unsupported("give a sandbox to a session"))
    }

    /// Changes what a box may use while it runs.
    async fn set_limits(&self, _handle: &str, _limits: Limits) -> Result<()> {
        Err(unsupported("change limits"))
    }

    /// Makes the persistent workspace of a box unless it is there; gives what it was first made for.
    async fn keep(&self, _spec: &BoxSpec) -> Result<BoxSpec> {
        Err(unsupported("keep workspaces"))
    }

    /// What the persistent workspace of a claim was made for; `None` when there is none.
    async fn kept(&self, _claim: &str) -> Result<Option<BoxSpec>> {
        Ok(None)
    }

    /// Removes the persistent workspace of a claim. One that is gone already is fine.
    async fn remove_data(&self, _claim: &str) -> Result<()> {
        Err(unsupported("keep workspaces"))
    }

    /// Whether a layer that [`Backend::commit`] made is there.
    async fn has_layer(&self, _layer: &str) -> Result<bool> {
        Err(unsupported("install packages"))
    }

    /// Makes a layer of what was changed in a box since it was made from the image with this id.
    async fn commit(&self, _handle: &str, _layer: &str, _image_id: &str) -> Result<()> {
        Err(unsupported("install packages"))
    }

    /// Removes what no living program needs: what dead ones left half made, and what belongs to older versions.
    async fn prune(&self, _request: &PruneRequest) -> Result<PruneReport> {
        Ok(PruneReport::default())
    }
}

pub(crate) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

fn unsupported(what: &str) -> Error {
    Error::new(ErrorCode::Unsupported, format!("this backend cannot {what}"))
}
