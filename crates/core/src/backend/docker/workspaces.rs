//! Persistent workspaces: one named volume per session. Its label stores the box it was created for, so that a sandbox can be listed
//! and started when no container of it is left.

use std::collections::HashMap;
use std::time::{Duration, UNIX_EPOCH};

use bollard::models::{Mount, MountType, MountVolumeOptions, Volume, VolumeCreateRequest};
use bollard::query_parameters::{ListVolumesOptions, RemoveVolumeOptions};

use super::error::status;
use super::{Engine, records};
use crate::backend::{BoxSpec, StoredSpec, Workspace};
use crate::clock::now_ms;
use crate::key::SessionKey;
use crate::{Error, ErrorCode, Result};

/// How long the engine may take to release the volume of a container that was just removed.
const RELEASE: Duration = Duration::from_secs(10);

const CREATED: &str = "cofferdam.created";

/// A workspace, and the volume it is in.
pub(super) struct WorkspaceVolume {
    pub(super) name: String,
    pub(super) workspace: Workspace,
}

impl WorkspaceVolume {
    fn from_engine(volume: Volume) -> Option<WorkspaceVolume> {
        let StoredSpec(spec) = serde_json::from_str(volume.labels.get(records::DATA)?).ok()?;
        let created_ms = volume.labels.get(CREATED).and_then(|ms| ms.parse().ok()).unwrap_or_default();
        let created_at = UNIX_EPOCH + Duration::from_millis(created_ms);
        Some(WorkspaceVolume { name: volume.name, workspace: Workspace { created_at, spec } })
    }
}

/// The volume of a session's workspace.
fn name(key: &SessionKey) -> String {
    key.claim().replacen("cofferdam-", "cofferdam-data-", 1)
}

/// The mount of a box's persistent workspace; `None` when it has none. The engine copies what the image has there into a new volume.
pub(super) fn mount(spec: &BoxSpec) -> Option<Mount> {
    let key = spec.key.as_ref().filter(|_| spec.persist)?;
    Some(Mount {
        target: Some(spec.workdir.clone()),
        source: Some(name(key)),
        typ: Some(MountType::VOLUME),
        // A volume that is removed before the container is created is created again with it.
        volume_options: Some(MountVolumeOptions { labels: Some(labels(spec)), ..Default::default() }),
        ..Default::default()
    })
}

fn labels(spec: &BoxSpec) -> HashMap<String, String> {
    let stored = serde_json::to_string(&StoredSpec(spec.clone())).unwrap_or_default();
    HashMap::from([(records::DATA.to_owned(), stored), (CREATED.to_owned(), now_ms().to_string())])
}

/// Creates it unless it exists. To whoever comes second, the engine returns the existing one with its first labels; after its own
/// restart it returns none until they are asked for.
pub(super) async fn ensure(engine: &Engine, key: &SessionKey, spec: &BoxSpec) -> Result<Workspace> {
    let request = VolumeCreateRequest { name: Some(name(key)), labels: Some(labels(spec)), ..Default::default() };
    let created = engine.client.create_volume(request).await;
    let volume = created.map_err(|error| engine.error("create the persistent workspace", error))?;
    if let Some(volume) = WorkspaceVolume::from_engine(volume) {
        return Ok(volume.workspace);
    }
    find(engine, key).await?.ok_or_else(|| {
        let message =
            format!("the volume {} exists, but is not a workspace of this version or an older one", name(key));
        Error::new(ErrorCode::Internal, message)
    })
}

pub(super) async fn find(engine: &Engine, key: &SessionKey) -> Result<Option<Workspace>> {
    match engine.client.inspect_volume(&name(key)).await {
        Ok(volume) => Ok(WorkspaceVolume::from_engine(volume).map(|volume| volume.workspace)),
        Err(error) if status(&error) == Some(404) => Ok(None),
        Err(error) => Err(engine.error("look for the persistent workspace", error)),
    }
}

pub(super) async fn list(engine: &Engine) -> Result<Vec<WorkspaceVolume>> {
    let filters = HashMap::from([("label".to_owned(), vec![records::DATA.to_owned()])]);
    let found = engine.client.list_volumes(Some(ListVolumesOptions { filters: Some(filters) })).await;
    let found = found.map_err(|error| engine.error("list the persistent workspaces", error))?;
    Ok(found.volumes.unwrap_or_default().into_iter().filter_map(WorkspaceVolume::from_engine).collect())
}

pub(super) async fn remove(engine: &Engine, key: &SessionKey) -> Result<()> {
    let deadline = tokio::time::Instant::now() + RELEASE;
    loop {
        match engine.client.remove_volume(&name(key), None::<RemoveVolumeOptions>).await {
            Ok(()) => return Ok(()),
            Err(error) if status(&error) == Some(404) => return Ok(()),
            // In use by a container that is just going away, or by one that was opened again.
            Err(error) if status(&error) == Some(409) && tokio::time::Instant::now() < deadline => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Err(error) => return Err(engine.error("remove the persistent workspace", error)),
        }
    }
}
