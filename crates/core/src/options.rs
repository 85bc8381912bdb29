//! What callers may ask for, and what it is when they do not.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cofferdam_protocol::Command;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::key::{Scope, Session};
use crate::packages::Packages;
use crate::policy::Policy;
use crate::store::StoreOptions;

/// Where relative paths start and commands run.
pub const DEFAULT_WORKDIR: &str = "/workspace";

/// How to reach a Docker engine; found as the docker command finds it when empty.
#[derive(Debug, Clone, Default)]
pub struct DockerOptions {
    /// `unix:///…`, `tcp://…`, `ssh://…`, `npipe://…`
    pub host: Option<String>,
    /// For `tcp` with TLS.
    pub tls: Option<TlsFiles>,
    /// An OCI runtime the engine knows, such as `runsc`.
    pub runtime: Option<String>,
}

/// Paths of PEM files.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// Certificate authority.
    pub ca: String,
    /// Client certificate.
    pub cert: String,
    /// Client key.
    pub key: String,
}

/// When sandboxes end by themselves.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// With no request and no output.
    pub idle: Duration,
    /// Since the start.
    pub max_lifetime: Duration,
    /// With no host linked.
    pub orphan: Duration,
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        let minutes = |count: u64| Duration::from_secs(60 * count);
        Timeouts { idle: minutes(30), max_lifetime: minutes(4 * 60), orphan: minutes(5) }
    }
}

/// What gives sandboxes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BackendKind {
    /// A container engine where one answers, else this machine's own namespaces.
    #[default]
    Auto,
    /// A container engine.
    Docker,
    /// This machine's own namespaces.
    Namespaces,
}

/// A manager's options.
#[derive(Clone, Default)]
pub struct ManagerOptions {
    /// What gives sandboxes.
    pub backend: BackendKind,
    /// How to reach the engine.
    pub docker: DockerOptions,
    /// Ceilings that no open may pass.
    pub policy: Policy,
    /// When sandboxes end by themselves.
    pub timeouts: Timeouts,
    /// Sandboxes to keep ready.
    pub warm: Vec<WarmRequest>,
    /// Where sandboxes stage from and publish to.
    pub store: Option<StoreOptions>,
}

/// So many sandboxes, ready for an open that asks for the same.
#[derive(Clone)]
pub struct WarmRequest {
    /// What the open would ask for.
    pub open: OpenRequest,
    /// How many.
    pub count: usize,
}

/// What a sandbox may use at most. An absent limit is the default one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Processors.
    pub cpus: Option<f64>,
    /// Memory, with no swap beside it.
    pub memory_mb: Option<u64>,
    /// Processes and threads.
    pub pids: Option<u64>,
    /// Disk space under the workdir.
    pub workspace_mb: Option<u64>,
    /// Open files per process.
    pub open_files: Option<u64>,
}

impl Limits {
    /// Each absent limit from `other`.
    #[must_use]
    pub fn or(self, other: Limits) -> Limits {
        Limits {
            cpus: self.cpus.or(other.cpus),
            memory_mb: self.memory_mb.or(other.memory_mb),
            pids: self.pids.or(other.pids),
            workspace_mb: self.workspace_mb.or(other.workspace_mb),
            open_files: self.open_files.or(other.open_files),
        }
    }

    /// What a sandbox gets unless told.
    pub fn standard() -> Limits {
        Limits { cpus: Some(2.0), memory_mb: Some(2048), pids: Some(512), workspace_mb: None, open_files: None }
    }
}

/// When to pull an image.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PullPolicy {
    /// When the engine does not have it.
    #[default]
    Missing,
    /// Before every new sandbox.
    Always,
    /// Not at all.
    Never,
}

/// A step of a pull.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PullProgress {
    /// Which image.
    pub image: String,
    /// Which of its layers.
    pub layer: Option<String>,
    /// As the engine says it.
    pub status: String,
    /// Of `total_bytes`.
    pub current_bytes: Option<u64>,
    /// Where known.
    pub total_bytes: Option<u64>,
}

/// Told of each step of a pull.
pub type OnPull = Arc<dyn Fn(PullProgress) + Send + Sync>;

/// Which sandbox, and what it shall be if it is made.
#[derive(Clone, Default)]
pub struct OpenRequest {
    /// Who shares it.
    pub scope: Scope,
    /// Which of the scope's sessions.
    pub session: Session,
    /// A shortcut or any image.
    pub image: Option<String>,
    /// Where commands run.
    pub workdir: Option<String>,
    /// For all commands.
    pub env: BTreeMap<String, String>,
    /// Whom commands run as; the image's own user when absent.
    pub user: Option<String>,
    /// What it may use.
    pub limits: Limits,
    /// Whether it may reach the network.
    pub network: bool,
    /// Whether only the workdir and `/tmp` may be written.
    pub read_only_root: bool,
    /// Whether its workspace outlives it.
    pub persist: bool,
    /// For the caller's own use.
    pub labels: BTreeMap<String, String>,
    /// What it has beside what is in the image.
    pub packages: Packages,
    /// Written into a new sandbox.
    pub files: Vec<(String, Bytes)>,
    /// Run once in a new sandbox.
    pub init: Option<Command>,
    /// When to pull.
    pub pull: PullPolicy,
    /// Told of a pull.
    pub on_pull: Option<OnPull>,
    /// How long opening may take.
    pub timeout: Option<Duration>,
    /// Ends the opening early.
    pub cancel: CancellationToken,
}
