//! What this backend is, and what it can do on this machine.

use std::fs;
use std::sync::atomic::Ordering;

use super::{Machine, create};
use crate::Result;
use crate::backend::local::Local;
use crate::backend::{Enforcement, EngineInfo};

pub(super) fn info(machine: &Machine, local: &Local) -> Result<EngineInfo> {
    create::prove(machine, local)?;
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned();
    let hierarchy = machine.hierarchy(local);
    let is_root = rustix::process::geteuid().is_root();
    let enforced = |controller: &str, otherwise: Enforcement| match hierarchy.has(controller) {
        true => Enforcement::Enforced,
        false => otherwise,
    };
    let in_memory = machine.in_memory.load(Ordering::Relaxed);
    let abilities = [
        ("architecture", std::env::consts::ARCH.into()),
        ("cgroupVersion", hierarchy.version().into()),
        ("rootless", (!is_root).into()),
        ("seccomp", true.into()),
        ("userns", true.into()),
        ("network", false.into()),
        ("state", local.state.path().display().to_string().into()),
        ("storage", if in_memory { "memory" } else { "disk" }.into()),
    ];
    Ok(EngineInfo {
        backend: "namespaces",
        version: kernel,
        api_version: None,
        tier: Some("full"),
        abilities: abilities.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        limits: [
            ("cpus", enforced("cpu", Enforcement::None)),
            ("memoryMb", enforced("memory", Enforcement::Watched)),
            ("pids", Enforcement::Enforced),
            ("workspaceMb", Enforcement::Watched),
            ("openFiles", Enforcement::Enforced),
        ]
        .into(),
        tried: Vec::new(),
    })
}
