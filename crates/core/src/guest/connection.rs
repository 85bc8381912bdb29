//! A guest that is reached again when its link breaks.
//!
//! A link may break (the engine was restarted with live-restore, a remote host hiccuped) while the sandbox lives on. A
//! call that meets a broken link is made once more over a new one; a process has its own number, so that it is joined
//! and never started twice.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use cofferdam_protocol::{Hello, Reply, Request};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::ByteStream;
use super::channel::unexpected;
use super::link::{Attempt, Link, LinkEnd};
use crate::{Error, ErrorCode, Result};

/// How a guest is reached; a backend's box.
#[async_trait]
pub trait Connect: Send + Sync {
    /// A further stream into the box; `SANDBOX_LOST` when there is no box any more.
    async fn connect(&self) -> Result<ByteStream>;

    /// What is really wrong when nobody answers on such a stream: `SANDBOX_LOST` when the box went away meanwhile.
    async fn explain(&self, error: Error) -> Error;
}

/// How long a broken link is tried to be made again before the sandbox is given up. A box that is just dying is there
/// for its engine, and not for us.
const RECONNECT: Duration = Duration::from_secs(3);

/// Between two tries.
const TRY_AGAIN: Duration = Duration::from_millis(50);

/// The guest of one sandbox.
pub struct Guest {
    connect: Box<dyn Connect>,
    client: u128,
    sandbox_id: String,
    link: RwLock<Option<Arc<Link>>>,
    connecting: Mutex<()>,
    closed: RwLock<Option<Error>>,
}

impl Guest {
    /// Shakes hands on a first stream.
    pub async fn open(connect: Box<dyn Connect>, first: ByteStream, client: u128) -> Result<Guest> {
        let link = Link::open(first, client).await?;
        Ok(Guest {
            connect,
            client,
            sandbox_id: link.hello().setup.sandbox_id.clone(),
            link: RwLock::new(Some(Arc::new(link))),
            connecting: Mutex::default(),
            closed: RwLock::default(),
        })
    }

    /// What the guest said of itself.
    pub fn hello(&self) -> Option<Hello> {
        self.current().map(|link| link.hello().clone())
    }

    /// Goes over to a better stream into the same sandbox; calls under way end on the old one.
    pub async fn upgrade(&self, stream: ByteStream) -> Result<()> {
        let link = Arc::new(Link::open(stream, self.client).await?);
        let _one_at_a_time = self.connecting.lock().await;
        // Closed meanwhile, or somebody else's sandbox: then not.
        if self.closed().is_none() && link.hello().setup.sandbox_id == self.sandbox_id {
            *self.link.write().unwrap_or_else(PoisonError::into_inner) = Some(link);
        }
        Ok(())
    }

    /// Ends the link; every call from now on, and every one under way, gives `error`.
    pub fn close(&self, error: Error) {
        self.closed.write().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        if let Some(link) = self.link.write().unwrap_or_else(PoisonError::into_inner).take() {
            link.shut();
        }
    }

    fn closed(&self) -> Option<Error> {
        self.closed.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn current(&self) -> Option<Arc<Link>> {
        self.link.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The live link, made anew if need be.
    pub(crate) async fn link(&self) -> Result<Arc<Link>> {
        if let Some(error) = self.closed() {
            return Err(error);
        }
        if let Some(link) = self.current().filter(|link| link.is_alive()) {
            return Ok(link);
        }
        let _one_at_a_time = self.connecting.lock().await;
        if let Some(link) = self.current().filter(|link| link.is_alive()) {
            return Ok(link);
        }
        let link = Arc::new(self.reconnect().await?);
        *self.link.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&link));
        match self.closed() {
            Some(error) => Err(error),
            None => Ok(link),
        }
    }

    async fn reconnect(&self) -> Result<Link> {
        let deadline = Instant::now() + RECONNECT;
        loop {
            let error = match Link::open(self.connect.connect().await?, self.client).await {
                Ok(link) if link.hello().setup.sandbox_id == self.sandbox_id => return Ok(link),
                Ok(_) => Error::new(ErrorCode::SandboxLost, "another sandbox answers in its place")
                    .with("reason", "replaced"),
                Err(error) => self.connect.explain(error).await,
            };
            let is_final = error.code() == Some(ErrorCode::SandboxLost) && error.detail("reason").is_some();
            if is_final || Instant::now() >= deadline {
                return Err(error);
            }
            tokio::time::sleep(TRY_AGAIN).await;
        }
    }

    /// What a broken link means to a call that cannot be made again.
    pub(crate) async fn explain(&self, end: LinkEnd) -> Error {
        if let Some(error) = self.closed() {
            return error;
        }
        match end {
            LinkEnd::Protocol(_) => end.into(),
            // A box that is gone explains it better than a stream that ended.
            LinkEnd::Broken(_) => match self.link().await {
                Err(error) => error,
                Ok(_) => end.into(),
            },
        }
    }

    /// Runs `attempt` on the live link, and once more on a new one if that broke.
    pub(crate) async fn with_link<T, F>(&self, attempt: impl Fn(Arc<Link>) -> F) -> Result<T>
    where
        F: Future<Output = Attempt<T>>,
    {
        match attempt(self.link().await?).await {
            Ok(outcome) => return outcome,
            Err(LinkEnd::Broken(_)) => {}
            Err(end) => return Err(self.explain(end).await),
        }
        match attempt(self.link().await?).await {
            Ok(outcome) => outcome,
            Err(end) => Err(self.explain(end).await),
        }
    }

    /// A request with one answer.
    pub(crate) async fn call<T>(&self, request: &Request, expect: impl Fn(Reply) -> Option<T>) -> Result<T> {
        let reply = self
            .with_link(|link| async move {
                match link.request(request, 1)? {
                    Ok(mut channel) => channel.reply().await,
                    Err(error) => Ok(Err(error)),
                }
            })
            .await?;
        expect(reply).ok_or_else(unexpected)
    }

    /// A request whose only answer is that it is done.
    pub(crate) async fn perform(&self, request: &Request) -> Result<()> {
        self.call(request, |reply| matches!(reply, Reply::Done).then_some(())).await
    }

    /// A round trip.
    pub async fn ping(&self) -> Result<()> {
        self.perform(&Request::Ping).await
    }
}

/// The error of calls on a sandbox that this program closed.
pub(crate) fn closed_error(id: &str) -> Error {
    Error::new(ErrorCode::SandboxClosed, format!("the sandbox {id} was closed; open() gives a new one"))
}
