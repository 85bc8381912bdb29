//! Options of callers, and their defaults.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cofferdam_protocol::Command;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::backend::Network;
use crate::key::{Scope, Session};
use crate::packages::Packages;
use crate::policy::Policy;
use crate::store::StoreOptions;

/// Where relative paths start and commands run.
pub const DEFAULT_WORKDIR: &str = "/workspace";

/// How to reach a Docker engine (default: as the docker command finds it).
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

/// When sandboxes expire.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// Time without a request or output.
    pub idle: Duration,
    /// Time since the start.
    pub max_lifetime: Duration,
    /// Time without a linked host.
    pub orphan: Duration,
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        let minutes = |count: u64| Duration::from_secs(60 * count);
        Timeouts { idle: minutes(30), max_lifetime: minutes(4 * 60), orphan: minutes(5) }
    }
}

/// The backend that runs sandboxes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BackendKind {
    /// A container engine if one answers, otherwise Linux namespaces.
    #[default]
    Auto,
    /// A container engine.
    Docker,
    /// Linux namespaces of this machine.
    Namespaces,
}

/// A manager's options.
#[derive(Clone, Default)]
pub struct ManagerOptions {
    /// The backend that runs sandboxes.
    pub backend: BackendKind,
    /// How to reach the engine.
    pub docker: DockerOptions,
    /// Limits on what callers may request.
    pub policy: Policy,
    /// When sandboxes expire.
    pub timeouts: Timeouts,
    /// Warm sandboxes.
    pub warm: Vec<WarmRequest>,
    /// The object store to stage from and publish to.
    pub store: Option<StoreOptions>,
}

/// Warm sandboxes for requests with the same options.
#[derive(Clone)]
pub struct WarmRequest {
    /// The request they serve.
    pub open: OpenRequest,
    /// How many.
    pub count: usize,
}

/// Resource limits of a sandbox. An absent limit means the default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Processors.
    pub cpus: Option<f64>,
    /// Memory, without additional swap.
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

    /// The default limits.
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
    /// Never.
    Never,
}

/// A step of a pull.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PullProgress {
    /// Which image.
    pub image: String,
    /// Which of its layers.
    pub layer: Option<String>,
    /// The engine's own text.
    pub status: String,
    /// Bytes so far, of `total_bytes`.
    pub current_bytes: Option<u64>,
    /// If known.
    pub total_bytes: Option<u64>,
}

/// Called at each step of a pull.
pub type OnPull = Arc<dyn Fn(PullProgress) + Send + Sync>;

/// Which sandbox to open, and its options if it is created.
#[derive(Clone, Default)]
pub struct OpenRequest {
    /// Who shares it.
    pub scope: Scope,
    /// Which of the scope's sessions.
    pub session: Session,
    /// A shortcut or any image.
    pub image: Option<String>,
    /// Where commands run (default: [`DEFAULT_WORKDIR`]).
    pub workdir: Option<String>,
    /// Environment of all commands.
    pub env: BTreeMap<String, String>,
    /// The command user (default: the image's user).
    pub user: Option<String>,
    /// Resource limits.
    pub limits: Limits,
    /// Network access.
    pub network: Network,
    /// Whether only the workdir and `/tmp` may be written.
    pub read_only_root: bool,
    /// Whether its workspace outlives it.
    pub persist: bool,
    /// For the caller's own use.
    pub labels: BTreeMap<String, String>,
    /// Packages to install on top of the image.
    pub packages: Packages,
    /// Written into a new sandbox.
    pub files: Vec<(String, Bytes)>,
    /// Run once in a new sandbox.
    pub init: Option<Command>,
    /// When to pull.
    pub pull: PullPolicy,
    /// Called at each step of a pull.
    pub on_pull: Option<OnPull>,
    /// Time limit for opening.
    pub timeout: Option<Duration>,
    /// Aborts the opening.
    pub cancel: CancellationToken,
}
