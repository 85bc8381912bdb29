//! Sessions: get or create, one flight per key here, one claim per key on the engine.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cofferdam_protocol::{Lease, Setup};
use futures_util::future::join_all;
use tokio::time::Instant;

use crate::backend::docker::Docker;
use crate::backend::{Backend, BoxRecord, BoxSpec, BoxState, Creation, EngineInfo};
use crate::guest::{check_env, check_path};
use crate::id::{random_id, random_u128};
use crate::key::{Scope, SessionKey, scope_prefix};
use crate::options::{DEFAULT_WORKDIR, Limits, ManagerOptions, OnPull, OpenRequest, Timeouts};
use crate::policy::Policy;
use crate::sandbox::Sandbox;
use crate::{DEFAULT_IMAGE, Error, ErrorCode, Result, resolve_image};

/// How long another process may take from claiming a session to starting its sandbox.
const STARTING: Duration = Duration::from_secs(30);

/// Between two looks at a sandbox that another process is starting.
const LOOK_AGAIN: Duration = Duration::from_millis(25);

/// A sandbox, and whether this call made it.
pub struct Opened {
    /// The sandbox.
    pub sandbox: Arc<Sandbox>,
    /// False when it was there already.
    pub created: bool,
}

impl std::ops::Deref for Opened {
    type Target = Arc<Sandbox>;

    fn deref(&self) -> &Arc<Sandbox> {
        &self.sandbox
    }
}

/// Opens and closes sandboxes. Cheap to clone; connects on first use.
#[derive(Clone)]
pub struct Manager(Arc<Inner>);

struct Inner {
    backend: Arc<dyn Backend>,
    policy: Policy,
    timeouts: Timeouts,
    client: u128,
    owner: String,
    sessions: Mutex<HashMap<String, Arc<Session>>>,
    closed: std::sync::atomic::AtomicBool,
}

/// One key's sandbox here. The lock is held while it is opened.
#[derive(Default)]
struct Session {
    sandbox: tokio::sync::Mutex<Option<(Arc<Sandbox>, Origin)>>,
}

/// Who made a sandbox: only what this manager made is closed with it.
#[derive(Clone, Copy, PartialEq)]
enum Origin {
    Made,
    Adopted,
}

impl Manager {
    /// A manager on a Docker engine. Does not connect yet.
    pub fn new(options: ManagerOptions) -> Manager {
        let backend = Arc::new(Docker::new(options.docker.clone()));
        Manager::with_backend(backend, options)
    }

    /// A manager on any backend.
    pub fn with_backend(backend: Arc<dyn Backend>, options: ManagerOptions) -> Manager {
        Manager(Arc::new(Inner {
            backend,
            policy: options.policy,
            timeouts: options.timeouts,
            client: random_u128(),
            owner: random_id(""),
            sessions: Mutex::default(),
            closed: false.into(),
        }))
    }

    /// Gets or makes the sandbox of a session. Given up, it leaves no sandbox behind that nobody else uses.
    pub async fn open(&self, mut request: OpenRequest) -> Result<Opened> {
        let (cancel, timeout) = (request.cancel.clone(), request.timeout);
        let giving_up = cancel.child_token();
        request.cancel = giving_up.clone();
        let inner = Arc::clone(&self.0);
        let mut opening = tokio::spawn(async move { inner.open(request).await });
        let given_up = tokio::select! {
            outcome = &mut opening => {
                let crashed = |error| Error::new(ErrorCode::Internal, format!("opening a sandbox crashed: {error}"));
                return outcome.map_err(crashed)?;
            }
            () = cancel.cancelled() => Error::Aborted,
            () = tokio::time::sleep(timeout.unwrap_or(Duration::MAX)), if timeout.is_some() => {
                let limit = timeout.unwrap_or_default().as_millis();
                Error::new(ErrorCode::TimedOut, format!("the sandbox was not open after {limit} ms"))
            }
        };
        giving_up.cancel();
        tokio::spawn(async move {
            if let Ok(Ok(opened)) = opening.await
                && opened.created
                && opened.sandbox.opens.load(Ordering::Acquire) == 1
            {
                let _ = opened.sandbox.close().await;
            }
        });
        Err(given_up)
    }

    /// A sandbox by its id, also one that another process opened.
    pub async fn get(&self, id: &str) -> Result<Arc<Sandbox>> {
        self.0.check_open()?;
        let not_found = || {
            let message = format!("there is no sandbox \"{id}\" on this engine; list() gives those there are");
            Error::new(ErrorCode::SandboxNotFound, message).with("id", id)
        };
        let record = self.0.backend.list().await?.into_iter().find(|record| record.id == id).ok_or_else(not_found)?;
        let session = self.0.session(&record.key);
        let mut slot = session.sandbox.lock().await;
        if let Some((sandbox, _)) = &*slot
            && sandbox.id() == id
            && !sandbox.is_closed()
        {
            return Ok(Arc::clone(sandbox));
        }
        let sandbox = self.0.adopt(&record).await?.ok_or_else(not_found)?;
        *slot = Some((Arc::clone(&sandbox), Origin::Adopted));
        Ok(sandbox)
    }

    /// All sandboxes on the engine, or those of one scope.
    pub async fn list(&self, scope: Option<&Scope>) -> Result<Vec<BoxRecord>> {
        self.0.check_open()?;
        let prefix = scope.map(scope_prefix).transpose()?.unwrap_or_default();
        let mut records = self.0.backend.list().await?;
        records.retain(|record| record.key.starts_with(&prefix));
        records.sort_by_key(|record| record.created_at);
        Ok(records)
    }

    /// Pulls an image.
    pub async fn pull(&self, image: &str, on_pull: Option<&OnPull>) -> Result<()> {
        self.0.check_open()?;
        self.0.backend.pull(&resolve_image(image)?, on_pull).await
    }

    /// The backend, and what it can and cannot do here.
    pub async fn info(&self) -> Result<EngineInfo> {
        self.0.check_open()?;
        self.0.backend.info().await
    }

    /// Closes every sandbox that this manager made, side by side; says the first thing that went wrong.
    pub async fn close(&self) -> Result<()> {
        self.0.closed.store(true, Ordering::Release);
        let sessions: Vec<_> = self.0.sessions().drain().map(|(_, session)| session).collect();
        let closing = sessions.iter().map(|session| async move {
            // Waits for one that is just being opened.
            match session.sandbox.lock().await.take() {
                Some((sandbox, Origin::Made)) => sandbox.close().await,
                Some((sandbox, Origin::Adopted)) => {
                    sandbox.leave();
                    Ok(())
                }
                None => Ok(()),
            }
        });
        join_all(closing).await.into_iter().collect()
    }
}

impl Inner {
    fn sessions(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn session(&self, key: &str) -> Arc<Session> {
        let mut sessions = self.sessions();
        // Those of sandboxes that are over would otherwise pile up.
        sessions.retain(|_, session| {
            Arc::strong_count(session) > 1
                || session
                    .sandbox
                    .try_lock()
                    .is_ok_and(|slot| slot.as_ref().is_some_and(|(sandbox, _)| !sandbox.is_closed()))
        });
        Arc::clone(sessions.entry(key.to_owned()).or_default())
    }

    fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::new(ErrorCode::SandboxClosed, "this manager was closed; make a new one"));
        }
        Ok(())
    }

    async fn open(&self, request: OpenRequest) -> Result<Opened> {
        self.check_open()?;
        let key = SessionKey::new(&request.scope, &request.session, &self.owner)?;
        let image = resolve_image(request.image.as_deref().unwrap_or(DEFAULT_IMAGE))?;
        let limits = self.policy.admit(&request, &image)?;
        check_request(&request)?;
        let session = self.session(key.as_str());
        let mut slot = session.sandbox.lock().await;
        self.check_open()?;
        if let Some((sandbox, _)) = &*slot
            && self.is_usable(sandbox).await?
        {
            check_same(&request, &image, sandbox)?;
            return Ok(opened(Arc::clone(sandbox), false));
        }
        *slot = None;
        let (sandbox, created) = self.get_or_create(&request, &key, &image, limits).await?;
        let origin = if created { Origin::Made } else { Origin::Adopted };
        *slot = Some((Arc::clone(&sandbox), origin));
        if created && let Err(error) = furnish(&sandbox, &request).await {
            let _ = sandbox.close().await;
            *slot = None;
            return Err(error);
        }
        if !created {
            check_same(&request, &image, &sandbox)?;
        }
        Ok(opened(sandbox, created))
    }

    /// False when it is gone and must be made anew.
    async fn is_usable(&self, sandbox: &Sandbox) -> Result<bool> {
        if sandbox.is_closed() {
            return Ok(false);
        }
        match sandbox.link().await {
            Ok(_) => Ok(true),
            Err(error) if error.code() == Some(ErrorCode::EngineUnavailable) => Err(error),
            Err(_) => Ok(false),
        }
    }

    async fn get_or_create(
        &self,
        request: &OpenRequest,
        key: &SessionKey,
        image: &str,
        limits: Limits,
    ) -> Result<(Arc<Sandbox>, bool)> {
        let deadline = Instant::now() + STARTING;
        loop {
            let facts = self.backend.prepare_image(image, request.pull, request.on_pull.as_ref()).await?;
            let spec = BoxSpec {
                claim: key.claim(),
                image: image.to_owned(),
                setup: Setup {
                    sandbox_id: random_id("sbx_"),
                    key: key.as_str().to_owned(),
                    workdir: request.workdir.clone().unwrap_or_else(|| DEFAULT_WORKDIR.to_owned()),
                    user: request.user.clone().or(facts.user),
                    lease: lease(self.timeouts),
                },
                env: request.env.clone(),
                limits,
                network: request.network,
                read_only_root: request.read_only_root,
                labels: request.labels.clone(),
            };
            match self.backend.create(&spec).await? {
                Creation::New { handle, stream } => {
                    let made =
                        Sandbox::link(Arc::clone(&self.backend), handle.clone(), stream, self.client, spec.image).await;
                    return match made {
                        Ok(sandbox) => Ok((Arc::new(sandbox), true)),
                        Err(error) => {
                            let _ = self.backend.remove(&handle).await;
                            Err(error)
                        }
                    };
                }
                Creation::Taken => {}
            }
            // Somebody else has it, or it is just going away, or what held it is dead.
            match self.backend.find(&spec.claim).await? {
                None => {}
                Some(record) if record.state == BoxState::Starting && Instant::now() < deadline => {}
                Some(record) if record.state == BoxState::Running || record.state == BoxState::Paused => {
                    if let Some(sandbox) = self.adopt(&record).await? {
                        return Ok((sandbox, false));
                    }
                }
                Some(record) => self.backend.remove(&record.handle).await?,
            }
            if Instant::now() > deadline + STARTING {
                let message = format!(
                    "the name of session {key:?} is taken on this engine, and stays so; remove the container {}",
                    spec.claim
                );
                return Err(Error::new(ErrorCode::Internal, message));
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Links to a box that exists; `None` when it went away meanwhile.
    async fn adopt(&self, record: &BoxRecord) -> Result<Option<Arc<Sandbox>>> {
        let linked = async {
            let stream = self.backend.link(&record.handle).await?;
            let backend = Arc::clone(&self.backend);
            Sandbox::link(backend, record.handle.clone(), stream, self.client, record.image.clone()).await
        };
        match linked.await {
            Ok(sandbox) if sandbox.id() == record.id => Ok(Some(Arc::new(sandbox))),
            Ok(_) => Ok(None),
            Err(error) if error.code() == Some(ErrorCode::SandboxLost) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn opened(sandbox: Arc<Sandbox>, created: bool) -> Opened {
    sandbox.opens.fetch_add(1, Ordering::AcqRel);
    Opened { sandbox, created }
}

fn lease(timeouts: Timeouts) -> Lease {
    let ms = |duration: Duration| duration.as_millis() as u64;
    Lease { idle_ms: ms(timeouts.idle), max_ms: ms(timeouts.max_lifetime), orphan_ms: ms(timeouts.orphan) }
}

fn check_request(request: &OpenRequest) -> Result<()> {
    if let Some(workdir) = &request.workdir {
        check_path(workdir)?;
        if !workdir.starts_with('/') || workdir == "/" {
            return Err(Error::invalid(format!("workdir must be an absolute path below /, not {workdir:?}")));
        }
    }
    if request.user.as_deref() == Some("") {
        return Err(Error::invalid("user is empty; leave it out to run as the image's own user"));
    }
    let env: Vec<_> = request.env.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    check_env(&env)
}

/// A session has one image. A caller that names another one would be surprised by what it finds.
fn check_same(request: &OpenRequest, image: &str, sandbox: &Sandbox) -> Result<()> {
    if request.image.is_none() || sandbox.image() == image {
        return Ok(());
    }
    let message = format!(
        "session {} is open with image \"{}\", not \"{image}\"; close it first, or give this one another session name",
        sandbox.key(),
        sandbox.image()
    );
    Err(Error::invalid(message).with("image", sandbox.image()))
}

/// Puts into a new sandbox what it was ordered with.
async fn furnish(sandbox: &Sandbox, request: &OpenRequest) -> Result<()> {
    // The guest has made it; this is where one that cannot be made, or a user that is not there, is told of.
    sandbox.mkdir(sandbox.workdir(), None).await.map_err(|error| match error.code() {
        Some(ErrorCode::FileExists) => {
            Error::new(ErrorCode::NotADirectory, format!("workdir {:?} is a file in this image", sandbox.workdir()))
        }
        _ => error,
    })?;
    for (path, content) in &request.files {
        let write = crate::WriteRequest { path: path.clone(), ..Default::default() };
        sandbox.write_file(&write, content.clone()).await?;
    }
    if let Some(command) = &request.init {
        let mut exec = crate::ExecRequest::shell("");
        exec.spawn.command = command.clone();
        exec.cancel = request.cancel.clone();
        let result = sandbox.exec(exec).await?;
        if result.exit_code != 0 {
            let errors = String::from_utf8_lossy(&result.stderr);
            let message = format!("init ended with exit code {}: {}", result.exit_code, errors.trim());
            return Err(Error::invalid(message).with("exitCode", result.exit_code));
        }
    }
    Ok(())
}
