//! A guest connection that survives broken links.
//!
//! A link may break (network failure, a killed tunnel process) while the sandbox lives on. A call that finds its link
//! broken is retried once on a new one. Every process has an id: a retry attaches to it and never starts it twice.

mod calls;
mod ending;
mod reconnect;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};

use async_trait::async_trait;
use cofferdam_protocol::{Hello, Request};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::ByteStream;
use super::link::{Link, OnNotice};
use super::watch::PendingWatches;
use crate::file_policy::FilePolicy;
use crate::lock::{read, write};
use crate::{Error, ErrorCode, Result};

/// Opens streams to the guest of one box.
#[async_trait]
pub trait Connect: Send + Sync {
    /// Opens another stream; `SANDBOX_LOST` when the box no longer exists.
    async fn connect(&self) -> Result<ByteStream>;

    /// The cause of an error on such a stream: `SANDBOX_LOST` when the box no longer exists.
    async fn explain(&self, error: Error) -> Error;
}

/// The guest of one sandbox.
pub struct Guest {
    connect: Box<dyn Connect>,
    client: u128,
    sandbox_id: String,
    on_notice: OnNotice,
    link: RwLock<Option<Arc<Link>>>,
    connecting: Mutex<()>,
    /// Why there will be no further link.
    over: RwLock<Option<Error>>,
    /// Cancelled when `over` is set.
    lifetime: RwLock<CancellationToken>,
    watched: AtomicBool,
    /// What callers may do with files.
    pub(super) files: Arc<FilePolicy>,
    pub(super) pending_watches: PendingWatches,
}

impl Guest {
    /// Does the handshake on the first stream.
    pub(crate) async fn open(
        connect: Box<dyn Connect>,
        first: ByteStream,
        client: u128,
        on_notice: OnNotice,
        files: Arc<FilePolicy>,
    ) -> Result<Guest> {
        let link = Link::open(first, client, Arc::clone(&on_notice)).await?;
        let guest = Guest::unlinked(connect, client, on_notice, link.hello().setup.sandbox_id.clone(), files);
        *write(&guest.link) = Some(Arc::new(link));
        Ok(guest)
    }

    /// For a sandbox that is not running.
    pub(crate) fn unlinked(
        connect: Box<dyn Connect>,
        client: u128,
        on_notice: OnNotice,
        sandbox_id: String,
        files: Arc<FilePolicy>,
    ) -> Guest {
        Guest {
            connect,
            client,
            sandbox_id,
            on_notice,
            link: RwLock::default(),
            connecting: Mutex::default(),
            over: RwLock::default(),
            lifetime: RwLock::default(),
            watched: AtomicBool::new(false),
            files,
            pending_watches: PendingWatches::default(),
        }
    }

    /// The guest's hello on the current link.
    pub fn hello(&self) -> Option<Hello> {
        self.current().map(|link| link.hello().clone())
    }

    /// Switches to a better stream into the same sandbox; pending calls finish on the old one.
    pub async fn upgrade(&self, stream: ByteStream) -> Result<()> {
        let link = self.handshake(stream).await?;
        let _one_at_a_time = self.connecting.lock().await;
        // Skipped if closed meanwhile, or if another sandbox answered.
        if self.over().is_none() && self.is_same(&link) {
            self.install(link);
        }
        Ok(())
    }

    /// Ends the link; every pending and future call fails with `error`.
    pub fn close(&self, error: Error) {
        *write(&self.over) = Some(error);
        self.lifetime().cancel();
        if let Some(link) = write(&self.link).take() {
            link.shut();
        }
    }

    /// After [`Guest::close`]: the sandbox was started again, and `stream` is its first one.
    pub(crate) async fn reopen(&self, stream: ByteStream) -> Result<()> {
        let link = self.handshake(stream).await?;
        if !self.is_same(&link) {
            return Err(replaced());
        }
        let _one_at_a_time = self.connecting.lock().await;
        *write(&self.over) = None;
        *write(&self.lifetime) = CancellationToken::new();
        self.install(link);
        Ok(())
    }

    /// Cancelled when the sandbox is closed, stopped or gone.
    pub(crate) fn lifetime(&self) -> CancellationToken {
        read(&self.lifetime).clone()
    }

    /// Waits until the sandbox is closed, stopped or gone; returns the reason.
    pub async fn lost(&self) -> Error {
        self.lifetime().cancelled().await;
        self.over().unwrap_or_else(|| closed_error(&self.sandbox_id))
    }

    /// Why there is no link, and will be none.
    pub(crate) fn over(&self) -> Option<Error> {
        read(&self.over).clone()
    }

    fn current(&self) -> Option<Arc<Link>> {
        read(&self.link).clone()
    }

    async fn handshake(&self, stream: ByteStream) -> Result<Arc<Link>> {
        Ok(Arc::new(Link::open(stream, self.client, Arc::clone(&self.on_notice)).await?))
    }

    fn is_same(&self, link: &Link) -> bool {
        link.hello().setup.sandbox_id == self.sandbox_id
    }

    fn install(&self, link: Arc<Link>) {
        if self.watched.load(Ordering::Acquire) {
            watch(&link);
        }
        *write(&self.link) = Some(link);
    }

    /// From now on, notices include commands.
    pub(crate) fn watch(&self) {
        if !self.watched.swap(true, Ordering::AcqRel)
            && let Some(link) = self.current()
        {
            watch(&link);
        }
    }
}

fn watch(link: &Arc<Link>) {
    let Ok(Ok(mut channel)) = link.request(&Request::Watch, 1) else { return };
    // Nobody needs the answer, but dropping the channel would cancel the request.
    tokio::spawn(async move { channel.reply().await.is_ok() });
}

fn replaced() -> Error {
    Error::new(ErrorCode::SandboxLost, "another sandbox has taken its place; open() returns it")
        .with("reason", "replaced")
}

/// The error of a call on a sandbox that this program closed.
pub(crate) fn closed_error(id: &str) -> Error {
    Error::new(ErrorCode::SandboxClosed, format!("the sandbox {id} was closed; open() gives a new one"))
}
