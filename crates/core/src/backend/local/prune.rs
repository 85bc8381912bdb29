//! Cleaning up after keepers and programs that were killed: whatever no process holds a lock on.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use super::{Local, State};
use crate::backend::{PruneReport, PruneRequest};

/// How long a program may take from creating a folder to locking it.
const STARTING: Duration = Duration::from_secs(60);

/// How long exit records are kept.
const EXIT_RECORDS: Duration = Duration::from_secs(600);

impl Local {
    pub(in crate::backend) fn prune(&self, request: &PruneRequest) -> io::Result<PruneReport> {
        let state = &self.state;
        let mut report = PruneReport::default();
        for handle in state.handles()? {
            let folder = state.folder(&handle);
            // A folder that is gone since it was listed was cleaned up by its own keeper.
            if State::is_held(&folder) || !folder.exists() || age(&folder) < request.older_than {
                continue;
            }
            // A hidden folder without a lock was just created, unless it is old.
            if handle.starts_with('.') && age(&folder) < STARTING {
                continue;
            }
            if request.dry_run || self.clean_up(&handle).is_ok() {
                report.sandboxes.push(handle);
            }
        }
        if request.volumes {
            report.volumes = self.prune_workspaces(request)?;
        }
        if !request.dry_run {
            self.tidy()?;
        }
        Ok(report)
    }

    fn prune_workspaces(&self, request: &PruneRequest) -> io::Result<Vec<String>> {
        let mut removed = Vec::new();
        for workspace in self.state.list_workspaces()? {
            let Some(key) = workspace.spec.key else { continue };
            let is_old = workspace.created_at.elapsed().unwrap_or_default() >= request.older_than;
            let is_used = self.state.claimed(&key.claim()).is_some();
            if is_old && !is_used && (request.dry_run || self.state.remove_workspace(self.helper, &key).is_ok()) {
                removed.push(key.claim());
            }
        }
        Ok(removed)
    }

    /// Removes everything of a box that no process holds.
    pub(in crate::backend) fn clean_up(&self, handle: &str) -> io::Result<()> {
        let state = &self.state;
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
            Ok(()) => self.helper.sweep(&trash),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Removes what nobody would ask for: trash, claims without a box, old exit records, cgroups without a box.
    fn tidy(&self) -> io::Result<()> {
        let state = &self.state;
        for handle in state.trashed()? {
            let trash = state.trash(&handle);
            if !State::is_held(&trash) {
                let _ = self.helper.sweep(&trash);
            }
        }
        for (claim, handle) in state.claims()? {
            if !state.folder(&handle).exists() {
                state.release(&claim, &handle)?;
            }
        }
        for entry in fs::read_dir(state.exit_records())?.flatten() {
            if age(&entry.path()) >= EXIT_RECORDS {
                let _ = fs::remove_file(entry.path());
            }
        }
        let prefix = self.cgroup_prefix();
        for parent in self.hierarchy.parents() {
            for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
                let name = entry.file_name();
                let handle = name.to_str().and_then(|name| name.strip_prefix(&prefix));
                if handle.is_some_and(|handle| !state.folder(handle).exists()) {
                    // The kernel keeps one that still has processes.
                    let _ = fs::remove_dir(entry.path());
                }
            }
        }
        Ok(())
    }
}

/// Time since its last change.
fn age(path: &Path) -> Duration {
    let changed = fs::symlink_metadata(path).and_then(|metadata| metadata.modified());
    changed.ok().and_then(|changed| changed.elapsed().ok()).unwrap_or_default()
}
