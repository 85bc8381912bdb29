//! One sandbox: a box on a backend and the guest in it.

mod box_ref;
mod event_forwarder;
mod linked;

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use cofferdam_protocol::Bounds;

use crate::backend::{BoxRecord, BoxSpec, BoxState};
use crate::events::{Event, EventKind};
use crate::guest::{Guest, closed_error};
use crate::host::Host;
use crate::key::SessionKey;
use crate::options::Limits;
use crate::sessions::create_or_attach;
use crate::store::Store;
use crate::{Error, ErrorCode, Result};

use box_ref::BoxRef;
pub(crate) use linked::{Linked, Origin};

/// An open sandbox. Commands and files belong to its guest, and can be called on it directly.
pub struct Sandbox {
    id: String,
    key: SessionKey,
    image: String,
    workdir: String,
    persist: bool,
    host: Arc<Host>,
    box_ref: Arc<BoxRef>,
    guest: Arc<Guest>,
    /// How it was created, if this program created it.
    spec: Option<BoxSpec>,
    closed: AtomicBool,
    pub(crate) opens: AtomicUsize,
}

impl Deref for Sandbox {
    type Target = Arc<Guest>;

    fn deref(&self) -> &Arc<Guest> {
        &self.guest
    }
}

impl Sandbox {
    /// A stopped sandbox: only its workspace is left.
    pub(crate) fn stopped(host: &Arc<Host>, key: SessionKey, spec: BoxSpec) -> Arc<Sandbox> {
        let id = &spec.sandbox_id;
        let linked = Linked::stopped(host, key.claim(), id.clone(), stopped_error(id));
        linked.into_sandbox(spec.setup(None), key, Origin::from(spec))
    }

    /// `sbx_…`
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The session's key.
    pub fn key(&self) -> &SessionKey {
        &self.key
    }

    /// Resolved.
    pub fn image(&self) -> &str {
        &self.image
    }

    /// Where commands run.
    pub fn workdir(&self) -> &str {
        &self.workdir
    }

    /// Whether this program closed it.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    fn check_open(&self) -> Result<()> {
        if self.is_closed() { Err(closed_error(&self.id).unsent()) } else { Ok(()) }
    }

    /// The manager's object store.
    pub(crate) fn store(&self) -> Result<&Store> {
        self.check_open()?;
        let missing = || {
            let message = "this manager has no object store to stage from or publish to; set store in its options";
            Error::invalid(message)
        };
        self.host.store.as_ref().ok_or_else(missing)
    }

    /// Keeps the link up, so that the guest knows that it has a host, and emits an event when the sandbox is gone.
    fn watch_link(&self) {
        let (guest, events) = (Arc::downgrade(&self.guest), self.host.events.clone());
        let (id, key) = (self.id.clone(), self.key.clone());
        tokio::spawn(async move {
            let Some(error) = Guest::maintain_link(guest).await else { return };
            if error.code() != Some(ErrorCode::SandboxLost) {
                return;
            }
            let reason = error.detail("reason").and_then(|reason| reason.as_str()).unwrap_or("removed").to_owned();
            let is_its_time = ["idle", "max-lifetime", "orphaned", "closed"].contains(&reason.as_str());
            let kind = if is_its_time { EventKind::Closed } else { EventKind::Lost };
            events.emit(|| {
                let event = Event::new(kind).of(&id, key.as_str()).with("reason", reason);
                event.with("exitCode", error.detail("exitCode").cloned())
            });
        });
    }

    /// The backend's record of it, with what only its guest knows.
    pub async fn info(&self) -> Result<BoxRecord> {
        self.check_open()?;
        let backend = self.host.backend().await?;
        let found = match backend.find(&self.box_ref.handle()).await? {
            None if self.persist => self.host.records().await?.into_iter().find(|record| record.id == self.id),
            found => found,
        };
        let mut record = found.ok_or_else(|| {
            let message = format!("the sandbox {} is gone: its container was removed, or its lease ran out", self.id);
            Error::new(ErrorCode::SandboxLost, message).with("reason", "removed")
        })?;
        record.set_claimed(self.key.as_str());
        if record.state == BoxState::Running {
            record.add_status(&self.guest.status().await?);
        }
        record.key = self.key.as_str().to_owned();
        record.workdir.clone_from(&self.workdir);
        Ok(record)
    }

    /// Postpones its end: replaces the idle timeout, and restarts the maximum lifetime from now.
    pub async fn extend(&self, idle: Option<Duration>, max_lifetime: Option<Duration>) -> Result<()> {
        self.guest.extend(idle, max_lifetime).await
    }

    /// Changes its limits while it runs; absent ones stay. The caller has checked them against the policy.
    pub(crate) async fn set_limits(&self, limits: Limits) -> Result<()> {
        self.check_open()?;
        let status = self.guest.status().await?;
        let now = status.setup.bounds;
        // A bound that the guest does not enforce now is enforced elsewhere.
        let enforced = |now: u64, limit: Option<u64>| limit.filter(|_| now > 0).unwrap_or(now);
        let bounds = Bounds {
            workspace_bytes: limits.workspace_mb.map_or(now.workspace_bytes, |mb| mb << 20),
            open_files: limits.open_files.unwrap_or(now.open_files),
            memory_bytes: enforced(now.memory_bytes, limits.memory_mb.map(|mb| mb << 20)),
            pids: enforced(now.pids, limits.pids),
        };
        if limits.cpus.is_some() || limits.memory_mb.is_some() || limits.pids.is_some() {
            let backend = self.host.backend().await?;
            backend.require_live_limits()?.set(&self.box_ref.handle(), limits).await?;
        }
        if bounds != status.setup.bounds {
            self.guest.set_bounds(bounds).await?;
        }
        Ok(())
    }

    /// Ends its processes and keeps its workspace, which must be persistent.
    pub async fn stop(&self) -> Result<()> {
        self.check_open()?;
        if !self.persist {
            let message =
                "only a sandbox with a persistent workspace can be stopped and started; open it with persist: true";
            return Err(Error::new(ErrorCode::Unsupported, message));
        }
        if self.is_stopped() {
            return Ok(());
        }
        self.guest.close(stopped_error(&self.id));
        self.box_ref.remove().await?;
        self.emit_closed("stopped");
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        self.guest.over().is_some_and(|error| error.detail("state").is_some())
    }

    /// Starts it again with its workspace. Everything else is as the image has it.
    pub async fn start(&self) -> Result<()> {
        self.check_open()?;
        if !self.is_stopped() {
            // It runs, or the link says that it is lost.
            return self.guest.link().await.map(drop);
        }
        let workspace = self.host.backend().await?.require_workspaces()?.find(&self.key).await?;
        let spec = match (&self.spec, workspace) {
            (_, None) => {
                let message = format!("the workspace of {} was removed; open() gives a new sandbox", self.id);
                return Err(Error::new(ErrorCode::SandboxLost, message).with("reason", "removed"));
            }
            (Some(own), Some(_)) => own.clone(),
            (None, Some(workspace)) => workspace.spec,
        };
        let attached = create_or_attach(&self.host, spec).await?;
        self.box_ref.set_handle(attached.handle);
        self.guest.reopen(attached.stream).await?;
        self.watch_link();
        self.host.events.emit(|| Event::new(EventKind::Resumed).of(&self.id, self.key.as_str()));
        Ok(())
    }

    fn emit_closed(&self, reason: &str) {
        self.host.events.emit(|| Event::new(EventKind::Closed).of(&self.id, self.key.as_str()).with("reason", reason));
    }

    /// Closes this program's link; the sandbox runs on for those that have another.
    pub(crate) fn detach(&self) {
        if !self.closed.swap(true, Ordering::AcqRel) {
            self.guest.close(closed_error(&self.id));
        }
    }

    /// Ends it, with everything in it except a persistent workspace. Idempotent.
    pub async fn close(&self) -> Result<()> {
        self.end("closed").await
    }

    /// As [`Sandbox::close`]; keeps or removes a persistent workspace.
    pub async fn close_data(&self, keep: bool) -> Result<()> {
        if keep && !self.persist {
            let message =
                "this sandbox has nothing to keep: open it with persist: true to have a workspace that outlives it";
            return Err(Error::invalid(message));
        }
        self.end("closed").await?;
        if !keep && self.persist {
            self.host.backend().await?.require_workspaces()?.remove(&self.key).await?;
        }
        Ok(())
    }

    pub(crate) async fn end(&self, reason: &str) -> Result<()> {
        match self.ask_to_end(reason).await {
            EndAnswer::Ended => Ok(()),
            // An owned guest may lie about that.
            EndAnswer::Acknowledged | EndAnswer::None => self.box_ref.remove().await,
        }
    }

    /// As [`Sandbox::end`], but when the guest has acknowledged, the box is removed in the background. It is not listed any more.
    pub(crate) async fn retire(self: &Arc<Self>, reason: &str) -> Result<()> {
        match self.ask_to_end(reason).await {
            EndAnswer::Ended => Ok(()),
            EndAnswer::None => self.box_ref.remove().await,
            EndAnswer::Acknowledged => {
                let sandbox = Arc::clone(self);
                let retiring = self.host.retiring.enter(&self.id);
                self.host.background.spawn(async move {
                    // A box that cannot be removed now removes itself, or the next prune does.
                    let _ = sandbox.box_ref.remove().await;
                    drop(retiring);
                });
                Ok(())
            }
        }
    }

    async fn ask_to_end(&self, reason: &str) -> EndAnswer {
        if self.closed.swap(true, Ordering::AcqRel) {
            return EndAnswer::Ended;
        }
        let over = self.guest.over();
        let is_acknowledged = self.guest.end(closed_error(&self.id)).await;
        if over.is_none() {
            self.emit_closed(reason);
        }
        match over.and_then(|error| error.code()) {
            Some(ErrorCode::SandboxClosed) => EndAnswer::Ended,
            _ if is_acknowledged => EndAnswer::Acknowledged,
            _ => EndAnswer::None,
        }
    }
}

/// What a guest answered when it was asked to end.
enum EndAnswer {
    /// It was asked before.
    Ended,
    /// It ends.
    Acknowledged,
    /// Nothing.
    None,
}

fn stopped_error(id: &str) -> Error {
    Error::new(ErrorCode::SandboxClosed, format!("the sandbox {id} is stopped; start() brings it back"))
        .with("state", "stopped")
}
