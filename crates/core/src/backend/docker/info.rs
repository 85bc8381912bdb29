//! What an engine is, how it was found, and what it can do.

use super::Engine;
use crate::backend::{Enforcement, EngineInfo};

pub(super) fn info(engine: &Engine) -> EngineInfo {
    let facts = &engine.facts;
    let kept = |flag: Option<bool>| if flag.unwrap_or(false) { Enforcement::Enforced } else { Enforcement::None };
    let security = facts.security_options.clone().unwrap_or_default();
    let has = |word: &str| security.iter().any(|option| option.contains(word));
    let abilities = [
        ("host", engine.host.clone().into()),
        ("foundBy", engine.found_by.clone().into()),
        ("product", engine.product.into()),
        ("operatingSystem", facts.operating_system.clone().into()),
        ("osType", facts.os_type.clone().into()),
        ("kernel", facts.kernel_version.clone().into()),
        ("dataRoot", facts.docker_root_dir.clone().into()),
        ("warnings", facts.warnings.as_ref().map(|all| all.join("\n")).filter(|all| !all.is_empty()).into()),
        ("architecture", engine.arch_name.clone().into()),
        ("cgroupVersion", facts.cgroup_version.as_ref().map(ToString::to_string).into()),
        ("storageDriver", facts.driver.clone().into()),
        ("rootless", has("rootless").into()),
        ("seccomp", has("seccomp").into()),
        ("apparmor", has("apparmor").into()),
        ("userns", has("userns").into()),
        ("runtimes", facts.runtimes.as_ref().map(|all| all.keys().cloned().collect::<Vec<_>>().join(",")).into()),
    ];
    EngineInfo {
        backend: "docker",
        version: engine.version.clone(),
        api_version: Some(engine.api_version.clone()),
        tier: None,
        abilities: abilities.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        limits: [
            ("cpus", kept(facts.cpu_cfs_quota)),
            ("memoryMb", kept(facts.memory_limit)),
            ("pids", kept(facts.pids_limit)),
            ("workspaceMb", Enforcement::Watched),
            ("openFiles", Enforcement::Enforced),
        ]
        .into(),
        tried: engine.tried.clone(),
    }
}
