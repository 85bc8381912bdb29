//! The manager: sessions in and out.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use cofferdam_core::backend::{Attempt, BoxRecord, BoxState, Enforcement, EngineInfo, PruneReport, PruneRequest};
use cofferdam_core::{
    BackendKind, DockerOptions, FilePolicy, Manager, ManagerOptions, NetworkRule, OnPull, OpenRequest, Policy, Scope,
    Timeouts, TlsFiles, WarmRequest, is_isolated, session_name,
};
use napi::Env;
use napi::bindgen_prelude::{PromiseRaw, within_runtime_if_available};
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi_derive::napi;

use crate::cancel::{Cancel, token};
use crate::convert::{millis, unix_ms};
use crate::events::NativeEvents;
use crate::options::{NativeLimits, NativeManagerOptions, NativeOpen, NativeScope};
use crate::promise::{as_is, promise};
use crate::pull::{NativePull, NativePullProgress};
use crate::run::{NativeRun, NativeRunResult, NativeRunning};
use crate::sandbox::NativeSandbox;

#[napi(object)]
pub struct NativeSandboxInfo {
    pub id: String,
    pub key: String,
    pub session: String,
    pub isolated: bool,
    pub image: String,
    #[napi(ts_type = "'warm' | 'running' | 'paused' | 'stopped'")]
    pub state: String,
    pub workdir: String,
    pub created_at_ms: f64,
    pub expires_at_ms: Option<f64>,
    pub limits: NativeLimits,
    pub network: bool,
    pub labels: HashMap<String, String>,
}

impl From<BoxRecord> for NativeSandboxInfo {
    fn from(record: BoxRecord) -> NativeSandboxInfo {
        let state = match record.state {
            BoxState::Warm => "warm",
            BoxState::Starting | BoxState::Running => "running",
            BoxState::Paused => "paused",
            BoxState::Stopped => "stopped",
        };
        let session = session_name(&record.key);
        NativeSandboxInfo {
            id: record.id,
            isolated: is_isolated(&session),
            session,
            key: record.key,
            image: record.image,
            state: state.to_owned(),
            workdir: record.workdir,
            created_at_ms: unix_ms(record.created_at),
            expires_at_ms: record.expires_at.map(unix_ms),
            limits: record.limits.into(),
            network: record.network.is_on(),
            labels: record.labels.into_iter().collect(),
        }
    }
}

#[napi(object)]
pub struct NativeEngineInfo {
    pub backend: String,
    pub version: String,
    pub api_version: Option<String>,
    pub tier: Option<String>,
    /// JSON
    pub abilities: String,
    #[napi(ts_type = "Record<string, 'enforced' | 'watched' | 'none'>")]
    pub limits: HashMap<String, String>,
    pub tried: Vec<NativeEngineAttempt>,
}

#[napi(object)]
pub struct NativeEngineAttempt {
    pub host: String,
    pub source: String,
    pub reason: String,
    pub problem: String,
}

impl From<Attempt> for NativeEngineAttempt {
    fn from(Attempt { host, source, reason, problem }: Attempt) -> NativeEngineAttempt {
        NativeEngineAttempt { host, source, reason, problem }
    }
}

impl From<EngineInfo> for NativeEngineInfo {
    fn from(info: EngineInfo) -> NativeEngineInfo {
        let kept = |how: Enforcement| match how {
            Enforcement::Enforced => "enforced",
            Enforcement::Watched => "watched",
            Enforcement::None => "none",
        };
        let abilities: BTreeMap<_, _> = info.abilities.into_iter().filter(|(_, value)| !value.is_null()).collect();
        NativeEngineInfo {
            backend: info.backend.to_owned(),
            version: info.version,
            api_version: info.api_version,
            tier: info.tier.map(str::to_owned),
            abilities: serde_json::to_string(&abilities).unwrap_or_default(),
            limits: info.limits.into_iter().map(|(name, how)| (name.to_owned(), kept(how).to_owned())).collect(),
            tried: info.tried.into_iter().map(Into::into).collect(),
        }
    }
}

#[napi(object)]
pub struct NativePrune {
    pub volumes: bool,
    pub packages: bool,
    pub older_than_ms: f64,
    pub dry_run: bool,
}

#[napi(object)]
pub struct NativePruneReport {
    pub sandboxes: Vec<String>,
    pub volumes: Vec<String>,
    pub packages: Vec<String>,
}

impl From<PruneReport> for NativePruneReport {
    fn from(report: PruneReport) -> NativePruneReport {
        NativePruneReport { sandboxes: report.sandboxes, volumes: report.volumes, packages: report.packages }
    }
}

type OnNativePull = ThreadsafeFunction<NativePullProgress, (), NativePullProgress, napi::Status, false, true>;

#[napi]
pub struct NativeManager {
    manager: Manager,
}

#[napi]
impl NativeManager {
    #[napi(constructor)]
    pub fn new(options: NativeManagerOptions) -> NativeManager {
        let tls = options.docker_tls.map(|tls| TlsFiles { ca: tls.ca, cert: tls.cert, key: tls.key });
        let warm = options.warm.into_iter();
        let count = |value: Option<f64>| value.map(|value| value as u64);
        let files = FilePolicy::new(options.blocked_paths, count(options.max_file_bytes), count(options.max_files));
        let options = ManagerOptions {
            backend: match options.backend.as_str() {
                "docker" => BackendKind::Docker,
                "namespaces" => BackendKind::Namespaces,
                _ => BackendKind::Auto,
            },
            warm: warm.map(|warm| WarmRequest { open: warm.open.into(), count: warm.count as usize }).collect(),
            docker: DockerOptions { host: options.docker_host, tls, runtime: options.docker_runtime },
            policy: Policy {
                allowed_images: options.allowed_images,
                max_limits: options.max_limits.into(),
                network: if options.deny_network { NetworkRule::Deny } else { NetworkRule::Allow },
                files: Arc::new(files),
            },
            timeouts: Timeouts {
                idle: millis(options.idle_timeout_ms),
                max_lifetime: millis(options.max_lifetime_ms),
                orphan: millis(options.orphan_timeout_ms),
            },
            store: options.store.map(Into::into),
        };
        NativeManager { manager: Manager::new(options) }
    }

    #[napi(ts_return_type = "Promise<NativeRunResult>")]
    pub fn run<'env>(
        &self,
        env: &'env Env,
        run: NativeRun,
        cancel: Option<&Cancel>,
    ) -> napi::Result<PromiseRaw<'env, NativeRunResult>> {
        let (manager, request) = (self.manager.clone(), run.request(cancel));
        promise(env, async move { manager.run(request).await }, |_, result| Ok(result.into()))
    }

    /// As `run`, but the output can be read while the program runs.
    #[napi(ts_return_type = "Promise<NativeRunning>")]
    pub fn run_streaming<'env>(
        &self,
        env: &'env Env,
        run: NativeRun,
        cancel: Option<&Cancel>,
    ) -> napi::Result<PromiseRaw<'env, NativeRunning>> {
        let (manager, request) = (self.manager.clone(), run.request(cancel));
        promise(env, async move { Ok(manager.run_streaming(request)) }, |_, running| Ok(running.into()))
    }

    #[napi(ts_return_type = "Promise<NativeSandbox>")]
    pub fn open<'env>(
        &self,
        env: &'env Env,
        options: NativeOpen,
        #[napi(ts_arg_type = "((progress: NativePullProgress) => void) | null | undefined")] on_pull: Option<
            OnNativePull,
        >,
        cancel: Option<&Cancel>,
    ) -> napi::Result<PromiseRaw<'env, NativeSandbox>> {
        let on_pull = on_pull.map(|callback| -> OnPull {
            Arc::new(move |progress| {
                callback.call(progress.into(), ThreadsafeFunctionCallMode::NonBlocking);
            })
        });
        let request = OpenRequest { on_pull, cancel: token(cancel), ..options.into() };
        let manager = self.manager.clone();
        let manager_of_sandbox = manager.clone();
        promise(env, async move { manager.open(request).await }, move |_, opened| {
            Ok(NativeSandbox::new(manager_of_sandbox, opened.sandbox, opened.created))
        })
    }

    #[napi(ts_return_type = "Promise<NativeSandbox>")]
    pub fn get<'env>(&self, env: &'env Env, id: String) -> napi::Result<PromiseRaw<'env, NativeSandbox>> {
        let manager = self.manager.clone();
        let manager_of_sandbox = manager.clone();
        promise(env, async move { manager.get(&id).await }, move |_, sandbox| {
            Ok(NativeSandbox::new(manager_of_sandbox, sandbox, false))
        })
    }

    /// Whether a session of this name is never shared.
    #[napi]
    pub fn is_isolated(&self, session: String) -> bool {
        is_isolated(&session)
    }

    #[napi(ts_return_type = "Promise<NativeSandboxInfo[]>")]
    pub fn list<'env>(
        &self,
        env: &'env Env,
        scope: Option<NativeScope>,
    ) -> napi::Result<PromiseRaw<'env, Vec<NativeSandboxInfo>>> {
        let manager = self.manager.clone();
        let scope = scope.map(Scope::from);
        promise(env, async move { manager.list(scope.as_ref()).await }, |_, records| {
            Ok(records.into_iter().map(NativeSandboxInfo::from).collect())
        })
    }

    #[napi(ts_return_type = "Promise<NativeEngineInfo>")]
    pub fn info<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, NativeEngineInfo>> {
        let manager = self.manager.clone();
        promise(env, async move { manager.info().await }, |_, info| Ok(info.into()))
    }

    #[napi(ts_return_type = "Promise<number>")]
    pub fn end_scope<'env>(&self, env: &'env Env, scope: NativeScope) -> napi::Result<PromiseRaw<'env, u32>> {
        let manager = self.manager.clone();
        promise(env, async move { manager.end_scope(&scope.into()).await }, |_, closed| Ok(closed as u32))
    }

    #[napi(ts_return_type = "Promise<NativePruneReport>")]
    pub fn prune<'env>(
        &self,
        env: &'env Env,
        options: NativePrune,
    ) -> napi::Result<PromiseRaw<'env, NativePruneReport>> {
        let manager = self.manager.clone();
        let request = PruneRequest {
            volumes: options.volumes,
            packages: options.packages,
            older_than: millis(options.older_than_ms),
            dry_run: options.dry_run,
        };
        promise(env, async move { manager.prune(&request).await }, |_, report| Ok(report.into()))
    }

    /// Begins to make ready what is to be kept ready.
    #[napi]
    pub fn warm_up(&self) {
        within_runtime_if_available(|| self.manager.warm_up());
    }

    /// What happens from now on.
    #[napi]
    pub fn events(&self) -> NativeEvents {
        NativeEvents::new(within_runtime_if_available(|| self.manager.events()))
    }

    /// For the moment before the program exits: blocks for as long as it takes, but not longer than `patience_ms`.
    #[napi]
    pub fn exit(&self, patience_ms: f64) {
        self.manager.exit(millis(patience_ms));
    }

    /// Starts to pull an image; its progress and its outcome are read from what it gives.
    #[napi]
    pub fn pull(&self, image: String) -> NativePull {
        NativePull::new(self.manager.clone(), image)
    }

    #[napi(ts_return_type = "Promise<void>")]
    pub fn close<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, ()>> {
        let manager = self.manager.clone();
        promise(env, async move { manager.close().await }, as_is)
    }
}
