//! Cleaning up after keepers and programs that were killed: what nobody holds a lock on any more goes.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use super::cgroups::Hierarchy;
use super::helper::Helper;
use super::state::State;
use super::{cgroup_prefix, data};
use crate::backend::now_ms;
use crate::backend::{PruneReport, PruneRequest};

/// How long a program may take from making a folder to locking it, and how long the news of an end are kept.
const STARTING: Duration = Duration::from_secs(60);
const NEWS: Duration = Duration::from_secs(600);

/// Blocks.
pub(super) fn prune(
    state: &State,
    helper: &Helper,
    hierarchy: &Hierarchy,
    request: &PruneRequest,
) -> io::Result<PruneReport> {
    let mut report = PruneReport::default();
    for handle in state.handles()? {
        let folder = state.folder(&handle);
        // One that is gone since it was listed was just buried by its own.
        if State::is_held(&folder) || !folder.exists() || age(&folder) < request.older_than {
            continue;
        }
        // One without a lock has just been made, unless it is old.
        if handle.starts_with('.') && age(&folder) < STARTING {
            continue;
        }
        if request.dry_run || bury(state, helper, &handle).is_ok() {
            report.sandboxes.push(handle);
        }
    }
    if request.volumes {
        let now = now_ms();
        for kept in data::list(state)? {
            let old = u128::from(now.saturating_sub(kept.created_ms)) >= request.older_than.as_millis();
            let is_used = state.claimed(&kept.spec.claim).is_some();
            if old && !is_used && (request.dry_run || data::remove(state, helper, &kept.spec.claim).is_ok()) {
                report.volumes.push(kept.spec.claim);
            }
        }
    }
    if !request.dry_run {
        tidy(state, helper, hierarchy)?;
    }
    Ok(report)
}

/// Removes all of a box that nobody holds.
pub(super) fn bury(state: &State, helper: &Helper, handle: &str) -> io::Result<()> {
    for cgroup in state.record(handle).map(|record| record.cgroups).unwrap_or_default() {
        let _ = fs::remove_dir(cgroup);
    }
    for (claim, target) in state.claims()? {
        if target == handle {
            state.release(&claim, handle)?;
        }
    }
    let trash = state.trash(handle);
    match fs::rename(state.folder(handle), &trash) {
        Ok(()) => helper.sweep(&trash),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// What is of no use to anybody, and nobody would ask for.
fn tidy(state: &State, helper: &Helper, hierarchy: &Hierarchy) -> io::Result<()> {
    for handle in state.trashed()? {
        let trash = state.trash(&handle);
        if !State::is_held(&trash) {
            let _ = helper.sweep(&trash);
        }
    }
    for (claim, handle) in state.claims()? {
        if !state.folder(&handle).exists() {
            state.release(&claim, &handle)?;
        }
    }
    for entry in fs::read_dir(state.obituaries())?.flatten() {
        if age(&entry.path()) >= NEWS {
            let _ = fs::remove_file(entry.path());
        }
    }
    let prefix = cgroup_prefix(state);
    for parent in hierarchy.parents() {
        for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let handle = name.to_str().and_then(|name| name.strip_prefix(&prefix));
            if handle.is_some_and(|handle| !state.folder(handle).exists()) {
                // One that somebody is in stays.
                let _ = fs::remove_dir(entry.path());
            }
        }
    }
    Ok(())
}

/// Since it was last changed.
fn age(path: &Path) -> Duration {
    let changed = fs::symlink_metadata(path).and_then(|metadata| metadata.modified());
    changed.ok().and_then(|changed| changed.elapsed().ok()).unwrap_or_default()
}
