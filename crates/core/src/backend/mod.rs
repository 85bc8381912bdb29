//! Backends: where boxes come from. A backend gives Linux boxes and a byte stream into each. It never sees a command or a file.
//!
//! Every backend implements [`Backend`] (boxes) and [`Claims`] (which box serves a session). Everything else is a capability: a
//! small trait that a backend hands out or does not. Callers ask for one with `require_…` ([`capability`]), the only place where a
//! missing capability becomes `UNSUPPORTED`. Which backend a manager uses is decided once, by [`Resolver`].

mod capability;
pub mod docker;
mod exit;
mod info;
#[cfg(all(target_os = "linux", feature = "namespaces"))]
mod local;
#[cfg(all(target_os = "linux", feature = "namespaces"))]
pub mod namespaces;
mod network;
mod prune;
mod record;
mod resolve;
mod spec;
mod stored;

use async_trait::async_trait;
use cofferdam_protocol::Lease;

pub use capability::{Images, Layers, LiveLimits, Workspaces};
pub use info::{Attempt, Enforcement, EngineInfo};
pub use network::Network;
pub use prune::{PruneReport, PruneRequest};
pub use record::{BoxRecord, BoxState, Workspace};
pub(crate) use resolve::Resolver;
pub use spec::{BoxSpec, CommandUser, ImageFacts};
pub use stored::StoredSpec;

use crate::guest::ByteStream;
use crate::key::SessionKey;
use crate::{Error, Result};

/// The outcome of [`Backend::create`].
pub enum Creation {
    /// The box runs, and this is its first stream.
    New {
        /// The backend's id of the box.
        handle: String,
        /// Its first stream. The guest has received its setup.
        stream: ByteStream,
    },
    /// Another box holds the session's claim.
    Taken,
}

/// Boxes: what every backend provides.
#[async_trait]
pub trait Backend: Claims {
    /// `docker`, `namespaces`: the name in options, errors and `info()`.
    fn name(&self) -> &'static str;

    /// The backend, and what it can do here.
    async fn info(&self) -> Result<EngineInfo>;

    /// Creates and starts a box with the guest as PID 1. A box with a key holds that session's claim from the start; one without is
    /// unclaimed until [`Claims::assign`]. Leaves nothing behind when it fails.
    async fn create(&self, spec: &BoxSpec) -> Result<Creation>;

    /// How many boxes can be created at once before each slows the others down. Part of creating a box is waiting, so that is more
    /// than there are processors.
    fn parallel_creates(&self) -> usize {
        2 * std::thread::available_parallelism().map_or(2, usize::from)
    }

    /// The box with this handle.
    async fn find(&self, handle: &str) -> Result<Option<BoxRecord>>;

    /// All boxes of cofferdam that are starting, running or paused, whoever created them.
    async fn list(&self) -> Result<Vec<BoxRecord>>;

    /// Opens another stream into a box; `SANDBOX_LOST` with the reason when there is none.
    async fn link(&self, handle: &str) -> Result<ByteStream>;

    /// Opens a stream that bypasses the engine, where that is possible.
    async fn direct_link(&self, _handle: &str) -> Option<ByteStream> {
        None
    }

    /// Why a box is gone: `SANDBOX_LOST` with the reason; `None` while it exists.
    async fn fate(&self, handle: &str) -> Option<Error>;

    /// Ends a box and removes everything that belongs to it except a persistent workspace. Idempotent.
    async fn remove(&self, handle: &str) -> Result<()>;

    /// Removes what no running program needs: what dead programs left behind, and what belongs to older versions.
    async fn prune(&self, request: &PruneRequest) -> Result<PruneReport>;

    /// Local images and pulls. Without it, whoever runs the boxes fetches their images.
    fn images(&self) -> Option<&dyn Images> {
        None
    }

    /// Workspaces that outlive their boxes.
    fn workspaces(&self) -> Option<&dyn Workspaces> {
        None
    }

    /// Layers made of what changed in a box.
    fn layers(&self) -> Option<&dyn Layers> {
        None
    }

    /// Limits that change while a box runs.
    fn live_limits(&self) -> Option<&dyn LiveLimits> {
        None
    }
}

/// Claims: which box serves a session. At most one box holds the claim of a key, across all programs. A claim ends with its box.
#[async_trait]
pub trait Claims: Send + Sync {
    /// The box that holds the claim of `key`.
    async fn holder(&self, key: &SessionKey) -> Result<Option<BoxRecord>>;

    /// Gives the claim of `key` to an unclaimed box, if no box holds it: a compare-and-swap. False when another box holds it. From
    /// then on the session's lease holds, for a backend that watches over leases itself.
    async fn assign(&self, handle: &str, key: &SessionKey, lease: Lease) -> Result<bool>;
}
