//! [`BoxSpec`] as it is stored: in the label of a persistent workspace's volume, in `record.json` of the local backends.
//!
//! What is stored outlives the program that wrote it, so its shape has a version of its own. A shape that was released never
//! changes: a new one gets the next version and a snapshot in `tests/stored/`, and all older ones stay readable.

use std::collections::BTreeMap;

use cofferdam_protocol::Lease;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{BoxSpec, CommandUser, Network};
use crate::key::SessionKey;
use crate::options::Limits;

/// The version that is written.
const VERSION: u64 = 1;

/// A [`BoxSpec`] that is written in the current version, and read in any.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(into = "V1", try_from = "Value")]
pub struct StoredSpec(pub BoxSpec);

impl TryFrom<Value> for StoredSpec {
    type Error = String;

    fn try_from(value: Value) -> Result<StoredSpec, String> {
        let version = value.get("version").map_or(Some(0), Value::as_u64);
        let malformed = |error: serde_json::Error| error.to_string();
        Ok(StoredSpec(match version {
            Some(0) => serde_json::from_value::<V0>(value).map_err(malformed)?.into(),
            Some(VERSION) => serde_json::from_value::<V1>(value).map_err(malformed)?.into(),
            _ => return Err(format!("its record has version {}, newer than {VERSION}", value["version"])),
        }))
    }
}

#[derive(Serialize, Deserialize)]
struct V1 {
    version: u64,
    sandbox_id: String,
    /// Empty for an unclaimed box.
    key: String,
    image: String,
    layer: Option<String>,
    workdir: String,
    /// `null` for the image's own.
    user: Option<String>,
    env: BTreeMap<String, String>,
    labels: BTreeMap<String, String>,
    lease: Lease,
    limits: Limits,
    network: Network,
    read_only_root: bool,
    persist: bool,
}

impl From<StoredSpec> for V1 {
    fn from(StoredSpec(spec): StoredSpec) -> V1 {
        V1 {
            version: VERSION,
            key: spec.key_text().to_owned(),
            sandbox_id: spec.sandbox_id,
            image: spec.image,
            layer: spec.layer,
            workdir: spec.workdir,
            user: match spec.user {
                CommandUser::Image => None,
                CommandUser::Named(name) => Some(name),
            },
            env: spec.env,
            labels: spec.labels,
            lease: spec.lease,
            limits: spec.limits,
            network: spec.network,
            read_only_root: spec.read_only_root,
            persist: spec.persist,
        }
    }
}

impl From<V1> for BoxSpec {
    fn from(stored: V1) -> BoxSpec {
        BoxSpec {
            sandbox_id: stored.sandbox_id,
            key: SessionKey::from_text(stored.key),
            image: stored.image,
            layer: stored.layer,
            workdir: stored.workdir,
            user: stored.user.map_or(CommandUser::Image, CommandUser::Named),
            env: stored.env,
            labels: stored.labels,
            lease: stored.lease,
            limits: stored.limits,
            network: stored.network,
            read_only_root: stored.read_only_root,
            persist: stored.persist,
        }
    }
}

/// As release 0.1.0 wrote it, without a version.
#[derive(Deserialize)]
struct V0 {
    setup: V0Setup,
    image: String,
    env: BTreeMap<String, String>,
    limits: Limits,
    network: Network,
    read_only_root: bool,
    persist: bool,
    labels: BTreeMap<String, String>,
    #[serde(default)]
    layer: Option<String>,
}

#[derive(Deserialize)]
struct V0Setup {
    sandbox_id: String,
    key: String,
    workdir: String,
    /// The image's own was filled in, and was absent only where that is root.
    user: Option<String>,
    lease: Lease,
}

impl From<V0> for BoxSpec {
    fn from(stored: V0) -> BoxSpec {
        let setup = stored.setup;
        BoxSpec {
            sandbox_id: setup.sandbox_id,
            key: SessionKey::from_text(setup.key),
            image: stored.image,
            layer: stored.layer,
            workdir: setup.workdir,
            user: setup.user.map_or(CommandUser::Image, CommandUser::Named),
            env: stored.env,
            labels: stored.labels,
            lease: setup.lease,
            limits: stored.limits,
            network: stored.network,
            read_only_root: stored.read_only_root,
            persist: stored.persist,
        }
    }
}
