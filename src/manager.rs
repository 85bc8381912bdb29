//! The manager: sessions in and out.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use cofferdam_core::backend::{BoxRecord, BoxState, Enforcement, EngineInfo};
use cofferdam_core::{
    DockerOptions, Limits, Manager, ManagerOptions, NetworkRule, OnPull, OpenRequest, Policy, PullPolicy, PullProgress,
    Scope, Session, Timeouts, TlsFiles,
};
use napi::Env;
use napi::bindgen_prelude::{Either, PromiseRaw, Uint8Array};
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi_derive::napi;
use tokio::sync::{Mutex, mpsc};

use crate::cancel::{Cancel, token, unless};
use crate::convert::{bytes, command, millis, unix_ms};
use crate::promise::{as_is, promise};
use crate::sandbox::NativeSandbox;

#[napi(object)]
pub struct NativeManagerOptions {
    pub docker_host: Option<String>,
    pub docker_tls: Option<NativeTls>,
    pub docker_runtime: Option<String>,
    pub allowed_images: Option<Vec<String>>,
    pub max_limits: NativeLimits,
    pub deny_network: bool,
    pub idle_timeout_ms: f64,
    pub max_lifetime_ms: f64,
    pub orphan_timeout_ms: f64,
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
    pub open_files: Option<f64>,
}

impl From<NativeLimits> for Limits {
    fn from(limits: NativeLimits) -> Limits {
        let count = |value: Option<f64>| value.map(|value| value as u64);
        Limits {
            cpus: limits.cpus,
            memory_mb: count(limits.memory_mb),
            pids: count(limits.pids),
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
pub struct NativeOpen {
    pub scope: NativeScope,
    pub session: String,
    pub image: Option<String>,
    pub workdir: Option<String>,
    pub env: HashMap<String, String>,
    pub user: Option<String>,
    pub limits: NativeLimits,
    pub network: bool,
    pub read_only_root: bool,
    pub labels: HashMap<String, String>,
    pub files: Vec<NativeFile>,
    pub init: Option<Either<String, Vec<String>>>,
    #[napi(ts_type = "'missing' | 'always' | 'never'")]
    pub pull: String,
    pub timeout_ms: Option<f64>,
}

#[napi(object)]
pub struct NativePullProgress {
    pub image: String,
    pub layer: Option<String>,
    pub status: String,
    pub current_bytes: Option<f64>,
    pub total_bytes: Option<f64>,
}

impl From<PullProgress> for NativePullProgress {
    fn from(progress: PullProgress) -> NativePullProgress {
        NativePullProgress {
            image: progress.image,
            layer: progress.layer,
            status: progress.status,
            current_bytes: progress.current_bytes.map(|count| count as f64),
            total_bytes: progress.total_bytes.map(|count| count as f64),
        }
    }
}

#[napi(object)]
pub struct NativeSandboxInfo {
    pub id: String,
    pub key: String,
    pub image: String,
    #[napi(ts_type = "'running' | 'paused' | 'stopped'")]
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
            BoxState::Starting | BoxState::Running => "running",
            BoxState::Paused => "paused",
            BoxState::Stopped => "stopped",
        };
        NativeSandboxInfo {
            id: record.id,
            key: record.key,
            image: record.image,
            state: state.to_owned(),
            workdir: record.workdir,
            created_at_ms: unix_ms(record.created_at),
            expires_at_ms: record.expires_at.map(unix_ms),
            limits: record.limits.into(),
            network: record.network,
            labels: record.labels.into_iter().collect(),
        }
    }
}

#[napi(object)]
pub struct NativeEngineInfo {
    pub backend: String,
    pub version: String,
    pub api_version: Option<String>,
    /// JSON
    pub abilities: String,
    #[napi(ts_type = "Record<string, 'enforced' | 'none'>")]
    pub limits: HashMap<String, String>,
}

impl From<EngineInfo> for NativeEngineInfo {
    fn from(info: EngineInfo) -> NativeEngineInfo {
        let kept = |how: Enforcement| match how {
            Enforcement::Enforced => "enforced",
            Enforcement::None => "none",
        };
        let abilities: BTreeMap<_, _> = info.abilities.into_iter().filter(|(_, value)| !value.is_null()).collect();
        NativeEngineInfo {
            backend: info.backend.to_owned(),
            version: info.version,
            api_version: info.api_version,
            abilities: serde_json::to_string(&abilities).unwrap_or_default(),
            limits: info.limits.into_iter().map(|(name, how)| (name.to_owned(), kept(how).to_owned())).collect(),
        }
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
        let manager = Manager::new(ManagerOptions {
            docker: DockerOptions { host: options.docker_host, tls, runtime: options.docker_runtime },
            policy: Policy {
                allowed_images: options.allowed_images,
                max_limits: options.max_limits.into(),
                network: if options.deny_network { NetworkRule::Deny } else { NetworkRule::Allow },
            },
            timeouts: Timeouts {
                idle: millis(options.idle_timeout_ms),
                max_lifetime: millis(options.max_lifetime_ms),
                orphan: millis(options.orphan_timeout_ms),
            },
        });
        NativeManager { manager }
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
        let request = OpenRequest {
            scope: options.scope.into(),
            session: Session::parse(&options.session),
            image: options.image,
            workdir: options.workdir,
            env: options.env.into_iter().collect(),
            user: options.user,
            limits: options.limits.into(),
            network: options.network,
            read_only_root: options.read_only_root,
            labels: options.labels.into_iter().collect(),
            files: options.files.iter().map(|file| (file.path.clone(), bytes(&file.data))).collect(),
            init: options.init.map(command),
            pull: match options.pull.as_str() {
                "always" => PullPolicy::Always,
                "never" => PullPolicy::Never,
                _ => PullPolicy::Missing,
            },
            on_pull,
            timeout: options.timeout_ms.map(millis),
            cancel: token(cancel),
        };
        let manager = self.manager.clone();
        promise(env, async move { manager.open(request).await }, |_, opened| {
            Ok(NativeSandbox::new(opened.sandbox, opened.created))
        })
    }

    #[napi(ts_return_type = "Promise<NativeSandbox>")]
    pub fn get<'env>(&self, env: &'env Env, id: String) -> napi::Result<PromiseRaw<'env, NativeSandbox>> {
        let manager = self.manager.clone();
        promise(env, async move { manager.get(&id).await }, |_, sandbox| Ok(NativeSandbox::new(sandbox, false)))
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

    /// Starts to pull an image; its progress and its outcome are read from what it gives.
    #[napi]
    pub fn pull(&self, image: String) -> NativePull {
        let (sender, steps) = mpsc::unbounded_channel();
        NativePull {
            manager: self.manager.clone(),
            image,
            sender: Some(sender).into(),
            steps: Arc::new(Mutex::new(steps)),
        }
    }

    #[napi(ts_return_type = "Promise<void>")]
    pub fn close<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, ()>> {
        let manager = self.manager.clone();
        promise(env, async move { manager.close().await }, as_is)
    }
}

type Step = cofferdam_core::Result<PullProgress>;

/// A pull under way.
#[napi]
pub struct NativePull {
    manager: Manager,
    image: String,
    sender: std::sync::Mutex<Option<mpsc::UnboundedSender<Step>>>,
    steps: Arc<Mutex<mpsc::UnboundedReceiver<Step>>>,
}

#[napi]
impl NativePull {
    /// At least one step; none when the image is there.
    #[napi(ts_return_type = "Promise<NativePullProgress[]>")]
    pub fn next_many<'env>(
        &self,
        env: &'env Env,
        cancel: Option<&Cancel>,
    ) -> napi::Result<PromiseRaw<'env, Vec<NativePullProgress>>> {
        let start = self.sender.lock().ok().and_then(|mut sender| sender.take());
        let (manager, image, steps) = (self.manager.clone(), self.image.clone(), Arc::clone(&self.steps));
        let next = async move {
            if let Some(sender) = start {
                let progress = sender.clone();
                let on_pull: OnPull = Arc::new(move |step| {
                    let _ = progress.send(Ok(step));
                });
                tokio::spawn(async move {
                    tokio::select! {
                        outcome = manager.pull(&image, Some(&on_pull)) => if let Err(error) = outcome {
                            let _ = sender.send(Err(error));
                        },
                        // Nobody listens any more: the engine gives up a pull whose client is gone.
                        () = sender.closed() => {}
                    }
                });
            }
            let mut batch = Vec::new();
            steps.lock().await.recv_many(&mut batch, 256).await;
            batch.into_iter().collect::<cofferdam_core::Result<Vec<_>>>()
        };
        promise(env, unless(token(cancel), next), |_, steps| Ok(steps.into_iter().map(Into::into).collect()))
    }
}
