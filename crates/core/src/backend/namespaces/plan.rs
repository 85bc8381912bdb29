//! From what a session asks for to what a keeper is told.

use cofferdam_protocol::keeper::{Folder, Plan, Storage};
use cofferdam_protocol::{Bounds, Setup};

use super::cgroups::Hierarchy;
use super::images::Prepared;
use crate::backend::BoxSpec;

/// Open files that PID 1 has room for at least: its links, and a few per command.
const GUEST_FILES: u64 = 4096;

/// As engines have it.
const SHARED_MEMORY: u64 = 64 << 20;

/// What a box without a memory limit may keep in memory of what it writes.
const IN_MEMORY: u64 = 1 << 30;

pub(super) struct Planning<'a> {
    pub(super) hierarchy: &'a Hierarchy,
    /// Of the box's cgroups.
    pub(super) cgroup: &'a str,
    pub(super) image: &'a Prepared,
    /// Where its persistent workspace is.
    pub(super) data: Option<String>,
    pub(super) in_memory: bool,
}

impl Planning<'_> {
    pub(super) fn plan(&self, spec: &BoxSpec) -> Plan {
        let memory = spec.limits.memory_mb.map(|mb| mb.saturating_mul(1 << 20));
        // All in memory together stays below the limit: what is written there is memory that nobody can be killed for.
        let share = |bytes: u64| bytes / 5 * 2;
        let mut env = self.image.root.env.clone();
        env.extend(spec.env.clone());
        Plan {
            host: std::process::id(),
            setup: Setup { bounds: self.bounds(spec), ..spec.setup.clone() },
            env: env.into_iter().collect(),
            root: self.image.root.layers.clone(),
            storage: if self.in_memory { Storage::Memory(memory.map_or(IN_MEMORY, share)) } else { Storage::Disk },
            read_only: spec.read_only_root,
            folders: self.folders(spec, memory.map_or(0, share)),
            open_files: spec.limits.open_files.map(|count| count.max(GUEST_FILES)),
            shared_memory: SHARED_MEMORY,
            leases: self.image.leases(),
            cgroups: self.hierarchy.plan(self.cgroup, &spec.limits),
        }
    }

    /// With what the guest keeps, where no cgroup does.
    fn bounds(&self, spec: &BoxSpec) -> Bounds {
        let unless = |controller: &str, limit: Option<u64>| match self.hierarchy.has(controller) {
            true => 0,
            false => limit.unwrap_or(0),
        };
        Bounds {
            memory_bytes: unless("memory", spec.limits.memory_mb.map(|mb| mb << 20)),
            pids: unless("pids", spec.limits.pids),
            ..spec.setup.bounds
        }
    }

    fn folders(&self, spec: &BoxSpec, share: u64) -> Vec<Folder> {
        let workdir = || spec.setup.workdir.clone();
        let in_memory = |at: String, bytes: u64| Folder { at, source: None, bytes };
        let mut folders = Vec::new();
        if let Some(data) = &self.data {
            folders.push(Folder { at: workdir(), source: Some(data.clone()), bytes: 0 });
        }
        if spec.read_only_root {
            folders.push(in_memory("/tmp".to_owned(), share));
            if self.data.is_none() {
                // Here a limit of the workspace is the kernel's to keep.
                let limit = spec.limits.workspace_mb.map(|mb| mb << 20);
                folders.push(in_memory(workdir(), limit.unwrap_or(share)));
            }
        }
        folders
    }
}
