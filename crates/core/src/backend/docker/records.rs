//! Sandboxes as the engine records them: labels in, [`BoxRecord`]s out.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, UNIX_EPOCH};

use bollard::models::{
    ContainerInspectResponse, ContainerStateStatusEnum, ContainerSummary, ContainerSummaryStateEnum,
};
use serde::{Deserialize, Serialize};

use super::maker;
use crate::backend::{BoxRecord, BoxSpec, BoxState, Network};
use crate::clock::now_ms;
use crate::options::Limits;

/// Marks a sandbox, with its id.
pub(super) const ID: &str = "cofferdam.id";
/// Marks what belongs to the guest itself.
pub(super) const GUEST: &str = "cofferdam.guest";
/// Marks a persistent workspace, with the box it was created for.
pub(super) const DATA: &str = "cofferdam.data";
/// The program that created it.
pub(super) const MAKER: &str = "cofferdam.maker";
const KEY: &str = "cofferdam.key";
const IMAGE: &str = "cofferdam.image";
const WORKDIR: &str = "cofferdam.workdir";
const VERSION: &str = "cofferdam.version";
const FACTS: &str = "cofferdam.facts";
const CALLERS: &str = "cofferdam.label.";

/// How the names of unclaimed containers begin. A claimed one has the name of its claim.
pub(super) const UNCLAIMED: &str = "cofferdam-warm-";

/// What needs no label of its own. Other versions read it: see `tests`.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Facts {
    created_ms: u64,
    max_lifetime_ms: u64,
    network: Network,
    #[serde(default)]
    persist: bool,
    limits: Limits,
}

pub(super) fn labels(spec: &BoxSpec) -> HashMap<String, String> {
    let facts = Facts {
        created_ms: now_ms(),
        max_lifetime_ms: spec.lease.max_ms,
        network: spec.network,
        persist: spec.persist,
        limits: spec.limits,
    };
    let own = [
        (ID, spec.sandbox_id.clone()),
        (KEY, spec.key_text().to_owned()),
        (IMAGE, spec.image.clone()),
        (WORKDIR, spec.workdir.clone()),
        (VERSION, env!("CARGO_PKG_VERSION").to_owned()),
        (MAKER, maker::this_program()),
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
    let name = container.names.unwrap_or_default().into_iter().next().unwrap_or_default();
    record(container.id?, name, state, container.labels?)
}

pub(super) fn from_inspect(container: ContainerInspectResponse) -> Option<BoxRecord> {
    let state = match container.state?.status? {
        ContainerStateStatusEnum::RUNNING => BoxState::Running,
        ContainerStateStatusEnum::PAUSED => BoxState::Paused,
        ContainerStateStatusEnum::CREATED => BoxState::Starting,
        _ => BoxState::Stopped,
    };
    let mut record = record(container.id?, container.name.unwrap_or_default(), state, container.config?.labels?)?;
    // Limits may have changed while it ran.
    if let Some(now) = container.host_config {
        let positive =
            |value: Option<i64>| value.and_then(|value| u64::try_from(value).ok()).filter(|value| *value > 0);
        record.limits.memory_mb = positive(now.memory).map(|bytes| bytes >> 20).or(record.limits.memory_mb);
        record.limits.cpus = positive(now.nano_cpus).map(|nano| nano as f64 / 1e9).or(record.limits.cpus);
        record.limits.pids = positive(now.pids_limit).or(record.limits.pids);
    }
    Some(record)
}

fn record(handle: String, name: String, state: BoxState, labels: HashMap<String, String>) -> Option<BoxRecord> {
    let label = |name: &str| labels.get(name).cloned();
    let facts: Facts = serde_json::from_str(labels.get(FACTS)?).ok()?;
    let created_at = UNIX_EPOCH + Duration::from_millis(facts.created_ms);
    let callers: BTreeMap<String, String> = labels
        .iter()
        .filter_map(|(name, value)| Some((name.strip_prefix(CALLERS)?.to_owned(), value.clone())))
        .collect();
    let claim = Some(name.trim_start_matches('/').to_owned()).filter(|name| !name.starts_with(UNCLAIMED));
    let key = label(KEY)?;
    let is_unclaimed = key.is_empty() && claim.is_none();
    Some(BoxRecord {
        handle,
        claim,
        id: label(ID)?,
        key,
        image: label(IMAGE)?,
        workdir: label(WORKDIR)?,
        state: if is_unclaimed && state == BoxState::Running { BoxState::Warm } else { state },
        created_at,
        expires_at: (facts.max_lifetime_ms > 0).then(|| created_at + Duration::from_millis(facts.max_lifetime_ms)),
        limits: facts.limits,
        network: facts.network,
        persist: facts.persist,
        labels: callers,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_of_every_release_are_read() {
        let limits = Limits::standard();
        let facts = Facts { created_ms: 7, max_lifetime_ms: 9, network: Network::Open, persist: true, limits };
        let written = serde_json::to_string(&facts).unwrap();
        let limits = r#"{"cpus":2.0,"memory_mb":2048,"pids":512,"workspace_mb":null,"open_files":null}"#;
        let of = |network: &str| {
            format!(r#"{{"created_ms":7,"max_lifetime_ms":9,"network":{network},"persist":true,"limits":{limits}}}"#)
        };
        assert_eq!(written, of("\"open\""));
        for stored in [of("true"), of("\"open\"")] {
            assert_eq!(serde_json::from_str::<Facts>(&stored).unwrap(), facts);
        }
    }
}
