//! Sandboxes as the engine records them: labels in, [`BoxRecord`]s out.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bollard::models::{
    ContainerInspectResponse, ContainerStateStatusEnum, ContainerSummary, ContainerSummaryStateEnum,
};
use serde::{Deserialize, Serialize};

use crate::backend::{BoxRecord, BoxSpec, BoxState};
use crate::options::Limits;

/// Marks a sandbox, with its id.
pub(super) const ID: &str = "cofferdam.id";
/// Marks what belongs to the guest itself.
pub(super) const GUEST: &str = "cofferdam.guest";
const KEY: &str = "cofferdam.key";
const IMAGE: &str = "cofferdam.image";
const WORKDIR: &str = "cofferdam.workdir";
const VERSION: &str = "cofferdam.version";
const FACTS: &str = "cofferdam.facts";
const CALLERS: &str = "cofferdam.label.";

/// What needs no label of its own.
#[derive(Serialize, Deserialize)]
struct Facts {
    created_ms: u64,
    max_lifetime_ms: u64,
    network: bool,
    limits: Limits,
}

pub(super) fn labels(spec: &BoxSpec) -> HashMap<String, String> {
    let facts = Facts {
        created_ms: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64),
        max_lifetime_ms: spec.setup.lease.max_ms,
        network: spec.network,
        limits: spec.limits,
    };
    let own = [
        (ID, spec.setup.sandbox_id.clone()),
        (KEY, spec.setup.key.clone()),
        (IMAGE, spec.image.clone()),
        (WORKDIR, spec.setup.workdir.clone()),
        (VERSION, env!("CARGO_PKG_VERSION").to_owned()),
        (FACTS, serde_json::to_string(&facts).unwrap_or_default()),
    ];
    let callers = spec.labels.iter().map(|(name, value)| (format!("{CALLERS}{name}"), value.clone()));
    own.into_iter().map(|(name, value)| (name.to_owned(), value)).chain(callers).collect()
}

pub(super) fn from_summary(container: ContainerSummary) -> Option<BoxRecord> {
    let state = match container.state? {
        ContainerSummaryStateEnum::RUNNING => BoxState::Running,
        ContainerSummaryStateEnum::PAUSED => BoxState::Paused,
        ContainerSummaryStateEnum::CREATED => BoxState::Starting,
        _ => BoxState::Stopped,
    };
    record(container.id?, state, container.labels?)
}

pub(super) fn from_inspect(container: ContainerInspectResponse) -> Option<BoxRecord> {
    let state = match container.state?.status? {
        ContainerStateStatusEnum::RUNNING => BoxState::Running,
        ContainerStateStatusEnum::PAUSED => BoxState::Paused,
        ContainerStateStatusEnum::CREATED => BoxState::Starting,
        _ => BoxState::Stopped,
    };
    record(container.id?, state, container.config?.labels?)
}

fn record(handle: String, state: BoxState, labels: HashMap<String, String>) -> Option<BoxRecord> {
    let label = |name: &str| labels.get(name).cloned();
    let facts: Facts = serde_json::from_str(labels.get(FACTS)?).ok()?;
    let created_at = UNIX_EPOCH + Duration::from_millis(facts.created_ms);
    let callers: BTreeMap<String, String> = labels
        .iter()
        .filter_map(|(name, value)| Some((name.strip_prefix(CALLERS)?.to_owned(), value.clone())))
        .collect();
    Some(BoxRecord {
        handle,
        id: label(ID)?,
        key: label(KEY)?,
        image: label(IMAGE)?,
        workdir: label(WORKDIR)?,
        state,
        created_at,
        expires_at: (facts.max_lifetime_ms > 0).then(|| created_at + Duration::from_millis(facts.max_lifetime_ms)),
        limits: facts.limits,
        network: facts.network,
        labels: callers,
    })
}
