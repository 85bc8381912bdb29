//! The namespaces backend: sandboxes without an engine, and without root where the kernel lets ordinary users have namespaces.
//!
//! A box is a folder in the state folder, a keeper process that creates it and supervises it, and the guest as PID 1 in namespaces
//! of its own.

mod advice;
mod create;
mod images;
mod info;
mod plan;
mod roots;
mod setup;

use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use cofferdam_protocol::Lease;

use super::local::{Hierarchy, Local, state_error};
use super::{
    Backend, BoxRecord, BoxSpec, Claims, Creation, EngineInfo, ImageFacts, Images, LiveLimits, PruneReport,
    PruneRequest, Workspace, Workspaces,
};
use crate::guest::ByteStream;
use crate::key::SessionKey;
use crate::options::{Limits, OnPull, PullPolicy};
use crate::{Error, ErrorCode, Result};
use images::ImageRoots;

pub(super) use setup::installed as installed_helper;
pub use setup::{SetupReport, setup};

/// Boxes of this machine's own kernel, created by this user.
#[derive(Default)]
pub struct Namespaces(Arc<Machine>);

/// What is known of this machine; found out on first use.
#[derive(Default)]
struct Machine {
    local: OnceLock<Local>,
    /// The state folder's file system cannot be the upper layer of an overlay.
    in_memory: AtomicBool,
    /// This program may not create cgroups, although it seemed so.
    without_cgroups: AtomicBool,
    images: ImageRoots,
    /// A box was created here.
    is_proven: AtomicBool,
}

impl Machine {
    /// Where the cgroups of new boxes are.
    fn hierarchy<'a>(&self, local: &'a Local) -> &'a Hierarchy {
        if self.without_cgroups.load(Ordering::Relaxed) { &Hierarchy::Absent } else { &local.hierarchy }
    }

    fn local(&self) -> Result<&Local> {
        if let Some(local) = self.local.get() {
            return Ok(local);
        }
        let local = Local::open()?;
        Ok(self.local.get_or_init(|| local))
    }
}

impl Namespaces {
    /// Does nothing yet.
    pub fn new() -> Namespaces {
        Namespaces::default()
    }

    /// Runs blocking work on a thread of its own.
    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Machine, &Local) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let machine = Arc::clone(&self.0);
        let outcome = tokio::task::spawn_blocking(move || work(&machine, machine.local()?)).await;
        outcome.map_err(Error::panicked)?
    }

    /// As [`Namespaces::work`], on one box.
    async fn on_box<T: Send + 'static>(
        &self,
        handle: &str,
        work: impl FnOnce(&Local, &str) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let handle = handle.to_owned();
        self.work(move |_, local| work(local, &handle)).await
    }

    /// As [`Namespaces::work`], on one session.
    async fn on_session<T: Send + 'static>(
        &self,
        key: &SessionKey,
        work: impl FnOnce(&Local, &SessionKey) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let key = key.clone();
        self.work(move |_, local| work(local, &key)).await
    }
}

fn byte_stream(socket: UnixStream) -> Result<ByteStream> {
    let stream = socket.set_nonblocking(true).and_then(|()| tokio::net::UnixStream::from_std(socket));
    let (reader, writer) = stream.map_err(state_error("open a sandbox's stream"))?.into_split();
    Ok(ByteStream { reader: Box::pin(reader), writer: Box::pin(writer) })
}

#[async_trait]
impl Backend for Namespaces {
    fn name(&self) -> &'static str {
        "namespaces"
    }

    async fn info(&self) -> Result<EngineInfo> {
        self.work(info::info).await
    }

    async fn create(&self, spec: &BoxSpec) -> Result<Creation> {
        if spec.network.is_on() {
            let message = "sandboxes of the namespaces backend have no network but their own loopback device; open without \
                           network: true, or use a container engine";
            return Err(Error::new(ErrorCode::Unsupported, message));
        }
        // Missing only when another program's workspace is started again.
        let prepared = self.0.images.prepare(&spec.image, PullPolicy::Missing, None).await?;
        let spec = spec.clone();
        match self.work(move |machine, local| create::create(machine, local, &spec, &prepared)).await? {
            Some((handle, socket)) => Ok(Creation::New { handle, stream: byte_stream(socket)? }),
            None => Ok(Creation::Taken),
        }
    }

    async fn find(&self, handle: &str) -> Result<Option<BoxRecord>> {
        self.on_box(handle, Local::find).await
    }

    async fn list(&self) -> Result<Vec<BoxRecord>> {
        self.work(|_, local| local.list()).await
    }

    async fn link(&self, handle: &str) -> Result<ByteStream> {
        byte_stream(self.on_box(handle, Local::link).await?)
    }

    async fn fate(&self, handle: &str) -> Option<Error> {
        self.on_box(handle, |local, handle| Ok(local.fate(handle))).await.ok()?
    }

    async fn remove(&self, handle: &str) -> Result<()> {
        self.on_box(handle, Local::remove).await
    }

    async fn prune(&self, request: &PruneRequest) -> Result<PruneReport> {
        let request = *request;
        self.work(move |_, local| local.prune(&request).map_err(state_error("clean up"))).await
    }

    fn images(&self) -> Option<&dyn Images> {
        Some(self)
    }

    fn workspaces(&self) -> Option<&dyn Workspaces> {
        Some(self)
    }

    fn live_limits(&self) -> Option<&dyn LiveLimits> {
        Some(self)
    }
}

#[async_trait]
impl Claims for Namespaces {
    async fn holder(&self, key: &SessionKey) -> Result<Option<BoxRecord>> {
        self.on_session(key, Local::holder).await
    }

    async fn assign(&self, handle: &str, key: &SessionKey, lease: Lease) -> Result<bool> {
        let key = key.clone();
        self.on_box(handle, move |local, handle| local.assign(handle, &key, lease)).await
    }
}

#[async_trait]
impl Images for Namespaces {
    async fn resolve(&self, name: &str) -> Result<String> {
        self.0.images.resolve_name(name).await
    }

    async fn prepare(&self, image: &str, pull: PullPolicy, on_pull: Option<&OnPull>) -> Result<ImageFacts> {
        let prepared = self.0.images.prepare(image, pull, on_pull).await?;
        Ok(ImageFacts { id: prepared.id.clone(), user: prepared.root.user.clone() })
    }

    async fn pull(&self, image: &str, on_pull: Option<&OnPull>) -> Result<()> {
        self.0.images.prepare(image, PullPolicy::Always, on_pull).await.map(drop)
    }
}

#[async_trait]
impl Workspaces for Namespaces {
    async fn ensure(&self, spec: &BoxSpec) -> Result<Workspace> {
        let spec = spec.clone();
        self.work(move |_, local| {
            let key = spec.key.as_ref().ok_or_else(|| Error::invalid("an unclaimed box has no workspace"))?;
            local.state.ensure_workspace(key, &spec).map_err(state_error("create a persistent workspace"))
        })
        .await
    }

    async fn find(&self, key: &SessionKey) -> Result<Option<Workspace>> {
        self.on_session(key, |local, key| Ok(local.state.find_workspace(key))).await
    }

    async fn list(&self) -> Result<Vec<Workspace>> {
        self.work(|_, local| local.state.list_workspaces().map_err(state_error("list the persistent workspaces"))).await
    }

    async fn remove(&self, key: &SessionKey) -> Result<()> {
        let removed = |local: &Local, key: &SessionKey| local.state.remove_workspace(local.helper, key);
        self.on_session(key, move |local, key| {
            removed(local, key).map_err(state_error("remove a persistent workspace"))
        })
        .await
    }
}

#[async_trait]
impl LiveLimits for Namespaces {
    async fn set(&self, handle: &str, limits: Limits) -> Result<()> {
        self.on_box(handle, move |local, handle| local.set_limits(handle, limits)).await
    }
}
