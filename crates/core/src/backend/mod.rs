//! What a backend is: something that gives Linux boxes and a byte stream into each. It never sees a command or a file.

pub mod docker;

use std::collections::BTreeMap;
use std::time::SystemTime;

use async_trait::async_trait;
use cofferdam_protocol::Setup;

use crate::guest::ByteStream;
use crate::options::{Limits, OnPull, PullPolicy};
use crate::{Error, Result};

/// A box to make.
#[derive(Debug, Clone)]
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
    /// The caller's own.
    pub labels: BTreeMap<String, String>,
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
    /// `sbx_…`
    pub id: String,
    /// The session's key.
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
    /// The caller's own.
    pub labels: BTreeMap<String, String>,
}

/// What an image says of itself.
#[derive(Debug, Clone, Default)]
pub struct ImageFacts {
    /// Whom commands run as.
    pub user: Option<String>,
}

/// How a limit is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enforcement {
    /// By the kernel.
    Enforced,
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
    /// Facts by name, for people and for `doctor`.
    pub abilities: BTreeMap<String, serde_json::Value>,
    /// Which limits really apply.
    pub limits: BTreeMap<&'static str, Enforcement>,
}

/// Gives boxes.
#[async_trait]
pub trait Backend: Send + Sync {
    /// What it is and can do here.
    async fn info(&self) -> Result<EngineInfo>;

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

    /// Ends a box and removes all that belongs to it. One that is gone already is fine.
    async fn remove(&self, handle: &str) -> Result<()>;
}
