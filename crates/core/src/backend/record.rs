//! Boxes and workspaces that exist.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use cofferdam_protocol::Status;

use super::{BoxSpec, Network};
use crate::key::claim;
use crate::options::Limits;

/// What a box is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoxState {
    /// Created, not yet running.
    Starting,
    /// Running and unclaimed.
    Warm,
    /// Running.
    Running,
    /// Frozen.
    Paused,
    /// Ended; only its workspace may be left.
    Stopped,
}

/// A box that exists.
#[derive(Debug, Clone)]
pub struct BoxRecord {
    /// The backend's id of the box.
    pub handle: String,
    /// The claim it holds, by name.
    pub claim: Option<String>,
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
    /// When it was created.
    pub created_at: SystemTime,
    /// When it ends at the latest.
    pub expires_at: Option<SystemTime>,
    /// What it may use.
    pub limits: Limits,
    /// What it may reach.
    pub network: Network,
    /// Whether its workspace outlives it.
    pub persist: bool,
    /// The caller's labels.
    pub labels: BTreeMap<String, String>,
}

impl BoxRecord {
    /// A box that was created for `spec`.
    pub(crate) fn new(handle: String, state: BoxState, created_at: SystemTime, spec: BoxSpec) -> BoxRecord {
        let max = Duration::from_millis(spec.lease.max_ms);
        BoxRecord {
            handle,
            claim: spec.key.as_ref().map(|key| key.claim()),
            id: spec.sandbox_id,
            key: spec.key.map(|key| key.as_str().to_owned()).unwrap_or_default(),
            image: spec.image,
            workdir: spec.workdir,
            state,
            created_at,
            expires_at: (!max.is_zero()).then(|| created_at + max),
            limits: spec.limits,
            network: spec.network,
            persist: spec.persist,
            labels: spec.labels,
        }
    }

    /// Marks a box that this program has just claimed: its claim may still be on its way to the backend.
    pub(crate) fn set_claimed(&mut self, key: &str) {
        if self.state == BoxState::Warm {
            self.state = BoxState::Running;
            self.claim = Some(claim(key));
        }
    }

    /// Whether the box holds the claim of `key`.
    pub(crate) fn serves(&self, key: &str) -> bool {
        self.claim.as_deref() == Some(claim(key).as_str())
    }

    /// Adds what the guest knows better than the backend. A guest's word on whose it is counts only if the claim agrees.
    pub(crate) fn add_status(&mut self, status: &Status) {
        let setup = &status.setup;
        if self.key.is_empty() && self.serves(&setup.key) {
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

/// A persistent workspace.
#[derive(Debug, Clone)]
pub struct Workspace {
    /// When it was created.
    pub created_at: SystemTime,
    /// The box it was created for.
    pub spec: BoxSpec,
}

impl Workspace {
    /// The workspace as a stopped sandbox.
    pub(crate) fn stopped(self) -> BoxRecord {
        let handle = self.spec.key.as_ref().map(|key| key.claim()).unwrap_or_default();
        BoxRecord { expires_at: None, ..BoxRecord::new(handle, BoxState::Stopped, self.created_at, self.spec) }
    }
}
