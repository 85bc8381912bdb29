//! From a box to create to the keeper's instructions.

use cofferdam_protocol::keeper::{Folder, Plan, Storage};
use cofferdam_protocol::{Bounds, GUEST_OPEN_FILES, Setup, memory_share};

use super::images::Prepared;
use crate::backend::BoxSpec;
use crate::backend::local::Hierarchy;

/// The size of `/dev/shm`, as on engines.
const SHARED_MEMORY: u64 = 64 << 20;

/// How much a box without a memory limit may write where its files are kept in memory.
const IN_MEMORY: u64 = 1 << 30;

pub(super) struct Planning<'a> {
    pub(super) hierarchy: &'a Hierarchy,
    /// The name of the box's cgroups.
    pub(super) cgroup: &'a str,
    pub(super) image: &'a Prepared,
    /// Where the files of its persistent workspace are.
    pub(super) workspace: Option<String>,
    pub(super) in_memory: bool,
}

impl Planning<'_> {
    pub(super) fn plan(&self, spec: &BoxSpec) -> Plan {
        let memory = spec.limits.memory_mb.map(|mb| mb.saturating_mul(1 << 20));
        let mut env = self.image.root.env.clone();
        env.extend(spec.env.clone());
        Plan {
            host: std::process::id(),
            orphan_ms: spec.lease.orphan_ms,
            watched_memory: self.setup(spec).bounds.memory_bytes,
            env: env.into_iter().collect(),
            root: self.image.root.layers.clone(),
            storage: if self.in_memory {
                Storage::Memory(memory.map_or(IN_MEMORY, memory_share))
            } else {
                Storage::Disk
            },
            read_only: spec.read_only_root,
            folders: self.folders(spec, memory.map_or(0, memory_share)),
            open_files: spec.limits.open_files.map(|count| count.max(GUEST_OPEN_FILES)),
            shared_memory: SHARED_MEMORY,
            leases: self.image.leases(),
            cgroups: self.hierarchy.plan(self.cgroup, &spec.limits),
        }
    }

    /// What PID 1 is told: with the limits that the guest enforces where no cgroup does.
    pub(super) fn setup(&self, spec: &BoxSpec) -> Setup {
        let setup = spec.setup(self.image.root.user.clone());
        let unless = |controller: &str, limit: Option<u64>| match self.hierarchy.has(controller) {
            true => 0,
            false => limit.unwrap_or(0),
        };
        let bounds = Bounds {
            memory_bytes: unless("memory", spec.limits.memory_mb.map(|mb| mb << 20)),
            pids: unless("pids", spec.limits.pids),
            ..setup.bounds
        };
        Setup { bounds, ..setup }
    }

    fn folders(&self, spec: &BoxSpec, share: u64) -> Vec<Folder> {
        let workdir = || spec.workdir.clone();
        let in_memory = |at: String, bytes: u64| Folder { at, source: None, bytes };
        let mut folders = Vec::new();
        if let Some(files) = &self.workspace {
            folders.push(Folder { at: workdir(), source: Some(files.clone()), bytes: 0 });
        }
        if spec.read_only_root {
            folders.push(in_memory("/tmp".to_owned(), share));
            if self.workspace.is_none() {
                // The kernel enforces the workspace limit here.
                let limit = spec.limits.workspace_mb.map(|mb| mb << 20);
                folders.push(in_memory(workdir(), limit.unwrap_or(share)));
            }
        }
        folders
    }
}
