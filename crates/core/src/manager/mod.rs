//! The manager: what callers ask for, within the policy. Its [`Register`] has what it opened; [`crate::sessions`] finds what exists on
//! the backend.

mod opening;
mod request;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::join_all;

use crate::backend::{Backend, BoxRecord, BoxState, EngineInfo, PruneReport, PruneRequest, Resolver};
use crate::events::{Event, EventKind, EventStream};
use crate::host::{Background, Host};
use crate::id::random_id;
use crate::key::{Scope, SessionKey, scope_prefix};
use crate::lock::lock;
use crate::options::{Limits, ManagerOptions, OnPull, OpenRequest, Timeouts, WarmRequest};
use crate::packages::Layers;
use crate::policy::Policy;
use crate::pool::{Pool, emit_failure};
use crate::register::{Ownership, Register};
use crate::sandbox::Sandbox;
use crate::sessions::{adopt, not_found, peek};
use crate::{DEFAULT_IMAGE, Error, ErrorCode, Result};
use request::{check_request, forward_pulls};

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
    host: Arc<Host>,
    policy: Policy,
    timeouts: Timeouts,
    owner: String,
    pool: Pool,
    register: Register,
    layers: Layers,
    warm: Mutex<Vec<WarmRequest>>,
    reconciled: AtomicBool,
    closed: AtomicBool,
}

impl Manager {
    /// A manager on the backend that the options name. Connects on first use.
    pub fn new(options: ManagerOptions) -> Manager {
        Manager::resolving(Resolver::new(&options), options)
    }

    /// A manager on any backend.
    pub fn with_backend(backend: Arc<dyn Backend>, options: ManagerOptions) -> Manager {
        Manager::resolving(Resolver::fixed(backend), options)
    }

    fn resolving(resolver: Resolver, options: ManagerOptions) -> Manager {
        Manager(Arc::new(Inner {
            host: Host::new(resolver, Arc::clone(&options.policy.files), options.store),
            policy: options.policy,
            timeouts: options.timeouts,
            owner: random_id(""),
            pool: Pool::default(),
            register: Register::default(),
            layers: Layers::default(),
            warm: Mutex::new(options.warm),
            reconciled: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        }))
    }

    /// Work in the background, until the manager is closed.
    pub(crate) fn background(&self) -> &Background {
        &self.0.host.background
    }

    /// Starts to fill the warm pool. Idempotent.
    pub fn warm_up(&self) {
        let warm = std::mem::take(&mut *lock(&self.0.warm));
        if self.0.check_open().is_ok() {
            warm.into_iter().for_each(|warm| self.fill_pool(warm));
        }
    }

    fn fill_pool(&self, warm: WarmRequest) {
        let inner = Arc::clone(&self.0);
        let over = self.0.host.background.over();
        self.0.host.background.spawn(async move {
            let filling = tokio::select! {
                filling = inner.fill_pool(&warm) => filling,
                () = over.cancelled() => Ok(()),
            };
            if let Err(error) = filling {
                let image = warm.open.image.as_deref().unwrap_or(DEFAULT_IMAGE);
                emit_failure(&inner.host, image, warm.count, &error);
            }
        });
    }

    /// Gets or creates the sandbox of a session. An aborted call leaves no sandbox behind that nobody else uses.
    pub async fn open(&self, mut request: OpenRequest) -> Result<Opened> {
        let (cancel, timeout) = (request.cancel.clone(), request.timeout);
        let giving_up = cancel.child_token();
        request.cancel = giving_up.clone();
        let inner = Arc::clone(&self.0);
        let mut opening = tokio::spawn(async move { inner.open(request).await });
        let given_up = tokio::select! {
            outcome = &mut opening => {
                return outcome.map_err(Error::panicked)?;
            }
            () = cancel.cancelled() => Error::Aborted,
            () = tokio::time::sleep(timeout.unwrap_or(Duration::MAX)), if timeout.is_some() => {
                let limit = timeout.unwrap_or_default().as_millis();
                Error::new(ErrorCode::TimedOut, format!("open() timed out after {limit} ms"))
            }
        };
        giving_up.cancel();
        // Closing the manager waits for this, so a program that exits afterwards leaves nothing.
        let inner = Arc::clone(&self.0);
        self.background().spawn(async move {
            let Ok(Ok(Opened { sandbox, created: true })) = opening.await else { return };
            // With the slot locked, nobody opens it in between.
            let slot = inner.register.slot(sandbox.key().as_str());
            let mut slot = slot.lock().await;
            if sandbox.opens.load(Ordering::Acquire) == 1 {
                let _ = sandbox.close().await;
                *slot = None;
            }
        });
        Err(given_up)
    }

    /// A sandbox by its id, whichever process opened it, running or stopped.
    pub async fn get(&self, id: &str) -> Result<Arc<Sandbox>> {
        self.0.check_open()?;
        if let Some(sandbox) = self.0.register.open().into_iter().find(|sandbox| sandbox.id() == id) {
            return Ok(sandbox);
        }
        let host = &self.0.host;
        let found = host.records().await?.into_iter().find(|record| record.id == id);
        let record = found.filter(|record| record.state != BoxState::Warm).ok_or_else(|| not_found(id))?;
        let sandbox = match record.state {
            BoxState::Stopped => {
                let key = SessionKey::from_text(record.key).ok_or_else(|| not_found(id))?;
                let workspace = host.backend().await?.require_workspaces()?.find(&key).await?;
                Sandbox::stopped(host, key, workspace.ok_or_else(|| not_found(id))?.spec)
            }
            _ => adopt(host, &record).await?.ok_or_else(|| not_found(id))?,
        };
        if !self.0.is_admitted(&sandbox).await? {
            return Err(not_found(id));
        }
        let slot = self.0.register.slot(sandbox.key().as_str());
        let mut slot = slot.lock().await;
        if let Some((there, _)) = &*slot
            && there.id() == id
            && !there.is_closed()
        {
            sandbox.detach();
            return Ok(Arc::clone(there));
        }
        *slot = Some((Arc::clone(&sandbox), Ownership::Adopted));
        host.events.emit(|| Event::new(EventKind::Resumed).of(sandbox.id(), sandbox.key().as_str()));
        Ok(sandbox)
    }

    /// All sandboxes on the backend, or those of one scope, oldest first.
    pub async fn list(&self, scope: Option<&Scope>) -> Result<Vec<BoxRecord>> {
        self.0.check_open()?;
        let prefix = scope.map(scope_prefix).transpose()?.unwrap_or_default();
        let mut records = self.0.records().await?;
        records.retain(|record| record.key.starts_with(&prefix));
        records.sort_by_key(|record| record.created_at);
        Ok(records)
    }

    /// Closes all sessions of a scope concurrently, whoever opened them; returns how many.
    pub async fn end_scope(&self, scope: &Scope) -> Result<usize> {
        let records = self.list(Some(scope)).await?;
        let running: Vec<_> = records.into_iter().filter(|record| record.state != BoxState::Stopped).collect();
        let own = self.0.register.open();
        let closing = running.iter().map(|record| async {
            match own.iter().find(|sandbox| sandbox.id() == record.id) {
                Some(sandbox) => sandbox.end("scope-ended").await,
                None => match adopt(&self.0.host, record).await {
                    Ok(Some(sandbox)) => sandbox.end("scope-ended").await,
                    _ => self.0.host.backend().await?.remove(&record.handle).await,
                },
            }
        });
        join_all(closing).await.into_iter().collect::<Result<Vec<()>>>()?;
        Ok(running.len())
    }

    /// Removes what dead programs and older versions left.
    pub async fn prune(&self, request: &PruneRequest) -> Result<PruneReport> {
        self.0.check_open()?;
        self.0.host.backend().await?.prune(request).await
    }

    /// Changes a sandbox's limits while it runs, within the policy.
    pub async fn set_limits(&self, sandbox: &Sandbox, limits: Limits) -> Result<()> {
        self.0.policy.admit_limits(limits)?;
        sandbox.set_limits(limits).await
    }

    /// What happens from now on.
    pub fn events(&self) -> EventStream {
        let stream = self.0.host.events.listen();
        for sandbox in self.0.register.open() {
            sandbox.watch();
        }
        stream
    }

    /// Pulls an image.
    pub async fn pull(&self, image: &str, on_pull: Option<&OnPull>) -> Result<()> {
        self.0.check_open()?;
        let host = &self.0.host;
        let on_pull = forward_pulls(host, on_pull.cloned());
        let image = host.resolve_image(image).await?;
        host.backend().await?.require_images()?.pull(&image, Some(&on_pull)).await
    }

    /// The backend, and what it can and cannot do here.
    pub async fn info(&self) -> Result<EngineInfo> {
        self.0.check_open()?;
        self.0.host.backend().await?.info().await
    }

    /// Closes every sandbox that this manager created, concurrently; rejects with the first error.
    pub async fn close(&self) -> Result<()> {
        self.0.closed.store(true, Ordering::Release);
        let slots = self.0.register.drain();
        let closing = slots.iter().map(|slot| async move {
            // Waits for one that is just being opened.
            match slot.lock().await.take() {
                Some((sandbox, Ownership::Owned)) => sandbox.end("manager-closed").await,
                Some((sandbox, Ownership::Adopted)) => {
                    sandbox.detach();
                    Ok(())
                }
                None => Ok(()),
            }
        });
        let (closed, ()) = tokio::join!(join_all(closing), self.0.host.background.end());
        if let Some(store) = &self.0.host.store {
            store.close().await;
        }
        self.0.host.events.end();
        closed.into_iter().collect()
    }

    /// For a program that exits without closing: ends, within `patience`, the sandboxes that nobody could find again. Sessions with a
    /// scope live on until their orphan timeout. Blocks.
    pub fn exit(&self, patience: Duration) {
        if self.0.closed.swap(true, Ordering::AcqRel) {
            return;
        }
        let private = self.0.register.owned().into_iter().filter(|sandbox| sandbox.key().is_private());
        let guests = private.map(|sandbox| Arc::clone(&*sandbox)).chain(self.0.pool.guests());
        let ending: Vec<_> = guests.filter_map(|guest| guest.ask_to_end()).collect();
        let deadline = Instant::now() + patience;
        while Instant::now() < deadline && !ending.iter().all(|answer| answer.is_over()) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Inner {
    fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::new(ErrorCode::SandboxClosed, "this manager was closed; make a new one"));
        }
        Ok(())
    }

    /// Cleans up what dead programs left, once per manager, in the background.
    fn reconcile(self: &Arc<Self>) {
        if self.reconciled.swap(true, Ordering::AcqRel) {
            return;
        }
        let inner = Arc::clone(self);
        let over = self.host.background.over();
        self.host.background.spawn(async move {
            let request = PruneRequest::default();
            tokio::select! {
                // What cannot be cleaned up now is left for the next manager.
                _ = async { inner.host.backend().await?.prune(&request).await } => {}
                () = over.cancelled() => {}
            }
        });
    }

    async fn fill_pool(&self, warm: &WarmRequest) -> Result<()> {
        let image = self.host.resolve_image(warm.open.image.as_deref().unwrap_or(DEFAULT_IMAGE)).await?;
        let limits = self.policy.admit(&warm.open, &image)?;
        check_request(&warm.open)?;
        let mut profile = self.specify(&warm.open, None, &image, limits).await?;
        // A guest is told these when a session claims it.
        profile.env.clear();
        profile.labels.clear();
        self.pool.fill(&self.host, profile, warm.count);
        Ok(())
    }

    /// As the backend has them, with what the guest says where we are linked to it, or where only it knows the session.
    async fn records(self: &Arc<Self>) -> Result<Vec<BoxRecord>> {
        let own = self.register.open();
        // Before the backend is asked: a sandbox that is removed meanwhile had ended before.
        let retiring = self.host.retiring.ids();
        let mut listed = self.host.records().await?;
        listed.retain(|record| !retiring.contains(&record.id));
        let asked = listed.into_iter().map(|mut record| {
            let ours = own.iter().find(|sandbox| sandbox.id() == record.id);
            async move {
                if let Some(sandbox) = ours {
                    record.set_claimed(sandbox.key().as_str());
                }
                if record.state != BoxState::Running {
                    return Some(record);
                }
                match ours {
                    Some(sandbox) => record.add_status(&sandbox.status().await.ok()?),
                    None if record.key.is_empty() => {
                        let (linked, _) = peek(&self.host, &record).await.ok().flatten()?;
                        record.add_status(&linked.guest.status().await.ok()?);
                        // A guest that names a session whose claim it does not hold serves none.
                        if record.key.is_empty() {
                            return None;
                        }
                    }
                    None => {}
                }
                Some(record)
            }
        });
        Ok(join_all(asked).await.into_iter().flatten().collect())
    }
}
