//! What a backend says about itself.

use std::collections::BTreeMap;

/// How a limit is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enforcement {
    /// By the kernel.
    Enforced,
    /// By the guest, which ends what exceeds it.
    Watched,
    /// Not at all.
    None,
}

/// A backend, and what it can do here.
#[derive(Debug, Clone)]
pub struct EngineInfo {
    /// `docker`
    pub backend: &'static str,
    /// The engine's version.
    pub version: String,
    /// The version of its API.
    pub api_version: Option<String>,
    /// How well boxes are isolated, where that depends on the machine.
    pub tier: Option<&'static str>,
    /// Facts by name, for people and for `doctor`.
    pub abilities: BTreeMap<String, serde_json::Value>,
    /// Which limits really apply.
    pub limits: BTreeMap<&'static str, Enforcement>,
    /// Engines that were tried before this one.
    pub tried: Vec<Attempt>,
}

/// An engine that was tried without success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// Its address.
    pub host: String,
    /// Where the address comes from: `option`, `DOCKER_HOST`, `context <name>`, or `default` for a well-known place.
    pub source: String,
    /// For programs: `missing`, `denied`, `refused`, `silent`, `unresolved`, `old-api`, `not-an-engine`, `bad-address`, `other`.
    pub reason: String,
    /// For people.
    pub problem: String,
}
