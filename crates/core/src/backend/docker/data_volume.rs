//! Persistent workspaces: one named volume per claim. Its label holds what it was first made for, so that a sandbox can
//! be listed and started when no container of it is left.

use std::collections::HashMap;
use std::time::{Duration, UNIX_EPOCH};

use bollard::models::{Mount, MountType, MountVolumeOptions, Volume, VolumeCreateRequest};
use bollard::query_parameters::{ListVolumesOptions, RemoveVolumeOptions};

use super::error::status;
use super::{Engine, records};
use crate::backend::{BoxRecord, BoxSpec, BoxState, now_ms};
use crate::{Error, ErrorCode, Result};

/// How long the engine may take to let go of a volume whose container was just removed.
const RELEASE: Duration = Duration::from_secs(10);

const CREATED: &str = "cofferdam.created";

/// A persistent workspace.
pub(super) struct DataVolume {
    pub(super) name: String,
    pub(super) created_ms: u64,
    spec: BoxSpec,
}

impl DataVolume {
    fn from_engine(volume: Volume) -> Option<DataVolume> {
        let spec = serde_json::from_str(volume.labels.get(records::DATA)?).ok()?;
        let created_ms = volume.labels.get(CREATED).and_then(|ms| ms.parse().ok()).unwrap_or_default();
        Some(DataVolume { name: volume.name, created_ms, spec })
    }

    /// As a sandbox that does not run.
    pub(super) fn record(self) -> BoxRecord {
        let BoxSpec { claim, setup, image, limits, network, persist, labels, .. } = self.spec;
        BoxRecord {
            handle: self.name,
            name: claim,
            id: setup.sandbox_id,
            key: setup.key,
            image,
            workdir: setup.workdir,
            state: BoxState::Stopped,
            created_at: UNIX_EPOCH + Duration::from_millis(self.created_ms),
            expires_at: None,
            limits,
            network,
            persist,
            labels,
        }
    }
}

fn name(claim: &str) -> String {
    claim.replacen("cofferdam-", "cofferdam-data-", 1)
}

/// The mount that brings the workspace into its sandbox. What the image has at that place is copied into a new one.
pub(super) fn mount(spec: &BoxSpec) -> Mount {
    Mount {
        target: Some(spec.setup.workdir.clone()),
        source: Some(name(&spec.claim)),
        typ: Some(MountType::VOLUME),
        // One that is removed before the sandbox is made is made anew with it.
        volume_options: Some(MountVolumeOptions { labels: Some(labels(spec)), ..Default::default() }),
        ..Default::default()
    }
}

fn labels(spec: &BoxSpec) -> HashMap<String, String> {
    HashMap::from([
        (records::DATA.to_owned(), serde_json::to_string(spec).unwrap_or_default()),
        (CREATED.to_owned(), now_ms().to_string()),
    ])
}

/// Makes it unless it is there. The engine gives the one there is, with its first labels, to whoever comes second; but not
/// its labels when it was itself started again since, until somebody asks for them.
pub(super) async fn ensure(engine: &Engine, spec: &BoxSpec) -> Result<BoxSpec> {
    let request =
        VolumeCreateRequest { name: Some(name(&spec.claim)), labels: Some(labels(spec)), ..Default::default() };
    let made = engine.client.create_volume(request).await;
    let volume = made.map_err(|error| engine.error("make the persistent workspace", error))?;
    if let Some(volume) = DataVolume::from_engine(volume) {
        return Ok(volume.spec);
    }
    find(engine, &spec.claim).await?.ok_or_else(|| {
        let message = format!("the volume {} is there, and is not a workspace of this version", name(&spec.claim));
        Error::new(ErrorCode::Internal, message)
    })
}

pub(super) async fn find(engine: &Engine, claim: &str) -> Result<Option<BoxSpec>> {
    match engine.client.inspect_volume(&name(claim)).await {
        Ok(volume) => Ok(DataVolume::from_engine(volume).map(|volume| volume.spec)),
        Err(error) if status(&error) == Some(404) => Ok(None),
        Err(error) => Err(engine.error("look for the persistent workspace", error)),
    }
}

pub(super) async fn list(engine: &Engine) -> Result<Vec<DataVolume>> {
    let filters = HashMap::from([("label".to_owned(), vec![records::DATA.to_owned()])]);
    let found = engine.client.list_volumes(Some(ListVolumesOptions { filters: Some(filters) })).await;
    let found = found.map_err(|error| engine.error("list the persistent workspaces", error))?;
    Ok(found.volumes.unwrap_or_default().into_iter().filter_map(DataVolume::from_engine).collect())
}

pub(super) async fn remove(engine: &Engine, claim: &str) -> Result<()> {
    let deadline = tokio::time::Instant::now() + RELEASE;
    loop {
        match engine.client.remove_volume(&name(claim), None::<RemoveVolumeOptions>).await {
            Ok(()) => return Ok(()),
            Err(error) if status(&error) == Some(404) => return Ok(()),
            // In use: by a container that is just going away, or by one that somebody has opened anew.
            Err(error) if status(&error) == Some(409) && tokio::time::Instant::now() < deadline => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Err(error) => return Err(engine.error("remove the persistent workspace", error)),
        }
    }
}
