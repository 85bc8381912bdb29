//! What `prune()` is asked for, and what it did.

use std::time::Duration;

/// What to clean up beyond dead sandboxes.
#[derive(Debug, Clone, Copy, Default)]
pub struct PruneRequest {
    /// Persistent workspaces that no sandbox uses, too.
    pub volumes: bool,
    /// Layers with packages that no sandbox uses, too.
    pub packages: bool,
    /// Only what is at least this old.
    pub older_than: Duration,
    /// Report only.
    pub dry_run: bool,
}

/// What was cleaned up.
#[derive(Debug, Clone, Default)]
pub struct PruneReport {
    /// Dead sandboxes, by handle.
    pub sandboxes: Vec<String>,
    /// Volumes, by name.
    pub volumes: Vec<String>,
    /// Layers with packages, by name.
    pub packages: Vec<String>,
}
