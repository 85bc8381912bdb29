//! What this backend is and can do on this machine.

use std::fs;
use std::sync::atomic::Ordering;

use super::{Found, Ground, boxes};
use crate::Result;
use crate::backend::{Enforcement, EngineInfo};

pub(super) fn info(ground: &Ground, found: &Found) -> Result<EngineInfo> {
    boxes::prove(ground, found)?;
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned();
    let hierarchy = ground.hierarchy(found);
    let is_root = rustix::process::geteuid().is_root();
    let kept = |controller: &str, otherwise: Enforcement| match hierarchy.has(controller) {
        true => Enforcement::Enforced,
        false => otherwise,
    };
    let in_memory = ground.in_memory.load(Ordering::Relaxed);
    let abilities = [
        ("architecture", std::env::consts::ARCH.into()),
        ("cgroupVersion", hierarchy.version().into()),
        ("rootless", (!is_root).into()),
        ("seccomp", true.into()),
        ("userns", true.into()),
        ("network", false.into()),
        ("state", found.state.path().display().to_string().into()),
        ("storage", if in_memory { "memory" } else { "disk" }.into()),
    ];
    Ok(EngineInfo {
        backend: "namespaces",
        version: kernel,
        api_version: None,
        tier: Some("full"),
        abilities: abilities.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        limits: [
            ("cpus", kept("cpu", Enforcement::None)),
            ("memoryMb", kept("memory", Enforcement::Watched)),
            ("pids", Enforcement::Enforced),
            ("workspaceMb", Enforcement::Watched),
            ("openFiles", Enforcement::Enforced),
        ]
        .into(),
        tried: Vec::new(),
    })
}
