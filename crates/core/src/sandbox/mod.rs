//! One sandbox: a box on a backend and the guest in it.

mod body;
mod herald;
mod linked;

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use cofferdam_protocol::{Bounds, Setup};

use crate::backend::{BoxRecord, BoxSpec, BoxState};
use crate::events::{Event, EventKind};
use crate::guest::{Guest, closed_error};
use crate::host::Host;
use crate::options::Limits;
use crate::sessions::raise;
use crate::store::Store;
use crate::{Error, ErrorCode, Result};

use body::Body;
pub(crate) use linked::{Linked, Make};

/// A sandbox that was opened. Commands and files are its guest's: they can be called on it directly.
pub struct Sandbox {
    id: String,
    key: String,
    image: String,
    workdir: String,
    persist: bool,
    host: Arc<Host>,
    body: Arc<Body>,
    guest: Arc<Guest>,
    /// What it was made of, where this program made it.
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
    /// One that is stopped: only its workspace is there.
    pub(crate) fn stopped(host: &Arc<Host>, record: &BoxRecord, spec: BoxSpec) -> Arc<Sandbox> {
        let linked = Linked::stopped(host, record.handle.clone(), record.id.clone(), stopped_error(&record.id));
        let setup = Setup { sandbox_id: record.id.clone(), ..spec.setup.clone() };
        linked.into_sandbox(setup, Make::from(spec))
    }

    /// `sbx_…`
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The session's key.
    pub fn key(&self) -> &str {
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
        if self.is_closed() { Err(closed_error(&self.id)) } else { Ok(()) }
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

    /// Keeps the link, so that the guest knows that it has a host, and tells when the sandbox is gone.
    fn keep_link(&self) {
        let (guest, events) = (Arc::downgrade(&self.guest), self.host.events.clone());
        let (id, key) = (self.id.clone(), self.key.clone());
        tokio::spawn(async move {
            let Some(error) = Guest::keep(guest).await else { return };
            if error.code() != Some(ErrorCode::SandboxLost) {
                return;
            }
            let reason = error.detail("reason").and_then(|reason| reason.as_str()).unwrap_or("removed").to_owned();
            let is_its_time = ["idle", "max-lifetime", "orphaned", "closed"].contains(&reason.as_str());
            let kind = if is_its_time { EventKind::Closed } else { EventKind::Lost };
            events.emit(|| {
                let event = Event::new(kind).of(&id, &key).with("reason", reason);
                event.with("exitCode", error.detail("exitCode").cloned())
            });
        });
    }

    /// What the backend records of it, with what only its guest knows.
    pub async fn info(&self) -> Result<BoxRecord> {
        self.check_open()?;
        let backend = &self.host.backend;
        let found = match backend.find(&self.body.handle()).await? {
            None if self.persist => backend.list().await?.into_iter().find(|record| record.id == self.id),
            found => found,
        };
        let mut record = found.ok_or_else(|| {
            let message = format!("the sandbox {} is gone: its container was removed, or its lease ran out", self.id);
            Error::new(ErrorCode::SandboxLost, message).with("reason", "removed")
        })?;
        record.named_for(&self.key);
        if record.state == BoxState::Running {
            record.take_status(&self.guest.status().await?);
        }
        record.key.clone_from(&self.key);
        record.workdir.clone_from(&self.workdir);
        Ok(record)
    }

    /// Puts its end off: the idle timeout is the new one from now on, and the maximum lifetime ends so long from now.
    pub async fn extend(&self, idle: Option<Duration>, max_lifetime: Option<Duration>) -> Result<()> {
        self.guest.extend(idle, max_lifetime).await
    }

    /// Changes its limits while it runs; absent ones stay. They were checked against the policy.
    pub(crate) async fn set_limits(&self, limits: Limits) -> Result<()> {
        self.check_open()?;
        let status = self.guest.status().await?;
        let now = status.setup.bounds;
        // What the guest does not keep already is somebody else's to keep.
        let kept = |now: u64, limit: Option<u64>| limit.filter(|_| now > 0).unwrap_or(now);
        let bounds = Bounds {
            workspace_bytes: limits.workspace_mb.map_or(now.workspace_bytes, |mb| mb << 20),
            open_files: limits.open_files.unwrap_or(now.open_files),
            memory_bytes: kept(now.memory_bytes, limits.memory_mb.map(|mb| mb << 20)),
            pids: kept(now.pids, limits.pids),
        };
        if limits.cpus.is_some() || limits.memory_mb.is_some() || limits.pids.is_some() {
            self.host.backend.set_limits(&self.body.handle(), limits).await?;
        }
        if bounds != status.setup.bounds {
            self.guest.set_bounds(bounds).await?;
        }
        Ok(())
    }

    /// Ends its processes and keeps its workspace, which must be a persistent one.
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
        self.host.backend.remove(&self.body.handle()).await?;
        self.tell_closed("stopped");
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        self.guest.over().is_some_and(|error| error.detail("state").is_some())
    }

    /// Makes it run again with the workspace it had. What was outside of that is as the image has it.
    pub async fn start(&self) -> Result<()> {
        self.check_open()?;
        if !self.is_stopped() {
            // It runs, or it is lost, and says so.
            return self.guest.link().await.map(drop);
        }
        let kept = self.host.backend.kept(&crate::key::claim(&self.key)).await?;
        let spec = match (&self.spec, kept) {
            (_, None) => {
                let message = format!("the workspace of {} was removed; open() gives a new sandbox", self.id);
                return Err(Error::new(ErrorCode::SandboxLost, message).with("reason", "removed"));
            }
            (Some(own), Some(_)) => own.clone(),
            (None, Some(kept)) => kept,
        };
        let raised = raise(&self.host, spec).await?;
        self.body.set_handle(raised.handle);
        self.guest.reopen(raised.stream).await?;
        self.keep_link();
        self.host.events.emit(|| Event::new(EventKind::Resumed).of(&self.id, &self.key));
        Ok(())
    }

    fn tell_closed(&self, reason: &str) {
        self.host.events.emit(|| Event::new(EventKind::Closed).of(&self.id, &self.key).with("reason", reason));
    }

    /// Gives up this program's link and leaves the sandbox to those who have another.
    pub(crate) fn leave(&self) {
        if !self.closed.swap(true, Ordering::AcqRel) {
            self.guest.close(closed_error(&self.id));
        }
    }

    /// Ends it, with everything in it but a persistent workspace. Twice is fine.
    pub async fn close(&self) -> Result<()> {
        self.end("closed").await
    }

    /// As [`Sandbox::close`], and says what shall become of a persistent workspace.
    pub async fn close_data(&self, keep: bool) -> Result<()> {
        if keep && !self.persist {
            let message =
                "this sandbox has nothing to keep: open it with persist: true to have a workspace that outlives it";
            return Err(Error::invalid(message));
        }
        self.end("closed").await?;
        if !keep && self.persist {
            self.host.backend.remove_data(&crate::key::claim(&self.key)).await?;
        }
        Ok(())
    }

    pub(crate) async fn end(&self, reason: &str) -> Result<()> {
        match self.say_farewell(reason).await {
            Farewell::Over => Ok(()),
            // A guest that said it ends may have lied.
            Farewell::Said | Farewell::Unheard => self.host.backend.remove(&self.body.handle()).await,
        }
    }

    /// As [`Sandbox::end`], but where its guest has said that it ends, and with it all there is in the sandbox, the engine
    /// clears away the rest beside. Until then, it is not listed.
    pub(crate) async fn retire(self: &Arc<Self>, reason: &str) -> Result<()> {
        match self.say_farewell(reason).await {
            Farewell::Over => Ok(()),
            Farewell::Unheard => self.host.backend.remove(&self.body.handle()).await,
            Farewell::Said => {
                let sandbox = Arc::clone(self);
                let retiring = self.host.retiring.enter(&self.id);
                self.host.background.spawn(async move {
                    // What cannot be removed now removes itself, or is there for the next prune.
                    let _ = sandbox.host.backend.remove(&sandbox.body.handle()).await;
                    drop(retiring);
                });
                Ok(())
            }
        }
    }

    async fn say_farewell(&self, reason: &str) -> Farewell {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Farewell::Over;
        }
        let over = self.guest.over();
        let heard = self.guest.end(closed_error(&self.id)).await;
        if over.is_none() {
            self.tell_closed(reason);
        }
        match over.and_then(|error| error.code()) {
            Some(ErrorCode::SandboxClosed) => Farewell::Over,
            _ if heard => Farewell::Said,
            _ => Farewell::Unheard,
        }
    }
}

/// How a guest took it that it shall end.
enum Farewell {
    /// It was told before.
    Over,
    /// It said that it does.
    Said,
    /// It said nothing.
    Unheard,
}

fn stopped_error(id: &str) -> Error {
    Error::new(ErrorCode::SandboxClosed, format!("the sandbox {id} is stopped; start() brings it back"))
        .with("state", "stopped")
}
