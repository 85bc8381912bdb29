//! What managers and opens are asked for.

use std::collections::HashMap;

use cofferdam_core::{Limits, Network, OpenRequest, Packages, PullPolicy, Scope, Session};
use napi::bindgen_prelude::{Either, Uint8Array};
use napi_derive::napi;

use crate::convert::{bytes, command, millis};
use crate::store::NativeStore;

#[napi(object)]
pub struct NativeManagerOptions {
    #[napi(ts_type = "'auto' | 'docker' | 'namespaces'")]
    pub backend: String,
    pub docker_host: Option<String>,
    pub docker_tls: Option<NativeTls>,
    pub docker_runtime: Option<String>,
    pub allowed_images: Option<Vec<String>>,
    pub max_limits: NativeLimits,
    pub deny_network: bool,
    pub blocked_paths: Vec<String>,
    pub max_file_bytes: Option<f64>,
    pub max_files: Option<f64>,
    pub idle_timeout_ms: f64,
    pub max_lifetime_ms: f64,
    pub orphan_timeout_ms: f64,
    pub warm: Vec<NativeWarm>,
    pub store: Option<NativeStore>,
}

#[napi(object)]
pub struct NativeWarm {
    pub open: NativeOpen,
    pub count: u32,
}

#[napi(object)]
pub struct NativeTls {
    pub ca: String,
    pub cert: String,
    pub key: String,
}

#[napi(object)]
#[derive(Default)]
pub struct NativeLimits {
    pub cpus: Option<f64>,
    pub memory_mb: Option<f64>,
    pub pids: Option<f64>,
    pub workspace_mb: Option<f64>,
    pub open_files: Option<f64>,
}

impl From<NativeLimits> for Limits {
    fn from(limits: NativeLimits) -> Limits {
        let count = |value: Option<f64>| value.map(|value| value as u64);
        Limits {
            cpus: limits.cpus,
            memory_mb: count(limits.memory_mb),
            pids: count(limits.pids),
            workspace_mb: count(limits.workspace_mb),
            open_files: count(limits.open_files),
        }
    }
}

impl From<Limits> for NativeLimits {
    fn from(limits: Limits) -> NativeLimits {
        let number = |value: Option<u64>| value.map(|value| value as f64);
        NativeLimits {
            cpus: limits.cpus,
            memory_mb: number(limits.memory_mb),
            pids: number(limits.pids),
            workspace_mb: number(limits.workspace_mb),
            open_files: number(limits.open_files),
        }
    }
}

#[napi(object)]
#[derive(Default)]
pub struct NativeScope {
    pub workflow: Option<String>,
    pub agent: Option<String>,
    pub user: Option<String>,
}

impl From<NativeScope> for Scope {
    fn from(scope: NativeScope) -> Scope {
        Scope { workflow: scope.workflow, agent: scope.agent, user: scope.user }
    }
}

#[napi(object)]
pub struct NativeFile {
    pub path: String,
    pub data: Uint8Array,
}

#[napi(object)]
pub struct NativePackages {
    pub pip: Vec<String>,
    pub npm: Vec<String>,
    pub apt: Vec<String>,
}

impl From<NativePackages> for Packages {
    fn from(packages: NativePackages) -> Packages {
        Packages { pip: packages.pip, npm: packages.npm, apt: packages.apt }
    }
}

#[napi(object)]
pub struct NativeOpen {
    pub scope: NativeScope,
    pub session: String,
    pub image: Option<String>,
    pub workdir: Option<String>,
    pub env: HashMap<String, String>,
    pub user: Option<String>,
    pub limits: NativeLimits,
    #[napi(ts_type = "'off' | 'open'")]
    pub network: String,
    pub read_only_root: bool,
    pub persist: bool,
    pub labels: HashMap<String, String>,
    pub packages: NativePackages,
    pub files: Vec<NativeFile>,
    pub init: Option<Either<String, Vec<String>>>,
    #[napi(ts_type = "'missing' | 'always' | 'never'")]
    pub pull: String,
    pub timeout_ms: Option<f64>,
}

impl From<NativeOpen> for OpenRequest {
    fn from(options: NativeOpen) -> OpenRequest {
        OpenRequest {
            scope: options.scope.into(),
            session: Session::parse(&options.session),
            image: options.image,
            workdir: options.workdir,
            env: options.env.into_iter().collect(),
            user: options.user,
            limits: options.limits.into(),
            network: if options.network == "open" { Network::Open } else { Network::Off },
            read_only_root: options.read_only_root,
            persist: options.persist,
            labels: options.labels.into_iter().collect(),
            packages: options.packages.into(),
            files: options.files.iter().map(|file| (file.path.clone(), bytes(&file.data))).collect(),
            init: options.init.map(command),
            pull: match options.pull.as_str() {
                "always" => PullPolicy::Always,
                "never" => PullPolicy::Never,
                _ => PullPolicy::Missing,
            },
            timeout: options.timeout_ms.map(millis),
            ..OpenRequest::default()
        }
    }
}
