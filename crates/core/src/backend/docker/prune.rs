//! Cleans up after programs that died half way, and after older versions. What a live program is creating is left alone: if its
//! creator cannot be seen from here, it gets time to finish.

use std::collections::HashMap;
use std::time::Duration;

use bollard::models::{ContainerSummary, ContainerSummaryStateEnum};
use bollard::query_parameters::{ListVolumesOptions, RemoveVolumeOptions};

use super::error::status;
use super::{Engine, guest_volume, layers, maker, records, workspaces};
use crate::Result;
use crate::backend::{PruneReport, PruneRequest, Workspace};
use crate::clock::now_ms;

/// How long a program on another machine may take from creating a container to starting it.
const STARTING: Duration = Duration::from_secs(120);

pub(super) async fn prune(engine: &Engine, request: &PruneRequest) -> Result<PruneReport> {
    let mut report = PruneReport::default();
    for container in dead_containers(engine, request).await? {
        if request.dry_run || engine.remove(&container).await.is_ok() {
            report.sandboxes.push(container);
        }
    }
    for volume in unneeded_volumes(engine, request).await? {
        if request.dry_run || remove_unused(engine, &volume).await {
            report.volumes.push(volume);
        }
    }
    report.packages = layers::prune(engine, request).await?;
    Ok(report)
}

async fn dead_containers(engine: &Engine, request: &PruneRequest) -> Result<Vec<String>> {
    let mut dead = Vec::new();
    // Sandboxes, and the containers that fill the guest's volume.
    for label in [records::ID, records::GUEST] {
        let found = engine.containers(label, "look for dead sandboxes").await?;
        dead.extend(found.into_iter().filter(|container| is_dead(container, request)).filter_map(|c| c.id));
    }
    Ok(dead)
}

fn is_dead(container: &ContainerSummary, request: &PruneRequest) -> bool {
    let created = u64::try_from(container.created.unwrap_or_default()).unwrap_or_default();
    let age = Duration::from_secs((now_ms() / 1000).saturating_sub(created));
    let maker = container.labels.as_ref().and_then(|labels| labels.get(records::MAKER));
    let is_over = match container.state {
        // Not started yet, or its creator died before that.
        Some(ContainerSummaryStateEnum::CREATED) => {
            maker.and_then(|maker| maker::is_dead(maker)).unwrap_or(age > STARTING)
        }
        // It should have removed itself, but an engine that was killed meanwhile does not do that.
        Some(ContainerSummaryStateEnum::EXITED | ContainerSummaryStateEnum::DEAD) => true,
        _ => false,
    };
    is_over && age >= request.older_than
}

async fn unneeded_volumes(engine: &Engine, request: &PruneRequest) -> Result<Vec<String>> {
    let current = guest_volume::current(engine)?;
    // An older version that still runs somewhere fills its volume again when it needs to.
    let mut unneeded = unused_volumes(engine, records::GUEST).await?;
    unneeded.retain(|name| *name != current);
    if request.volumes {
        let unused = unused_volumes(engine, records::DATA).await?;
        let is_old = |workspace: &Workspace| workspace.created_at.elapsed().unwrap_or_default() >= request.older_than;
        let old = workspaces::list(engine).await?.into_iter().filter(|volume| is_old(&volume.workspace));
        unneeded.extend(old.map(|volume| volume.name).filter(|name| unused.contains(name)));
    }
    Ok(unneeded)
}

/// Volumes that no container uses, running or not.
async fn unused_volumes(engine: &Engine, label: &str) -> Result<Vec<String>> {
    let filters =
        HashMap::from([("label".to_owned(), vec![label.to_owned()]), ("dangling".to_owned(), vec!["true".to_owned()])]);
    let found = engine.client.list_volumes(Some(ListVolumesOptions { filters: Some(filters) })).await;
    let found = found.map_err(|error| engine.error("look for unused volumes", error))?;
    Ok(found.volumes.unwrap_or_default().into_iter().map(|volume| volume.name).collect())
}

/// False when it is in use.
async fn remove_unused(engine: &Engine, volume: &str) -> bool {
    match engine.client.remove_volume(volume, None::<RemoveVolumeOptions>).await {
        Ok(()) => true,
        Err(error) => status(&error) == Some(404),
    }
}
