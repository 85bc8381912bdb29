//! A guest that is reached again when its link breaks.
//!
//! A link may break (a remote host hiccuped, the program that carried it was killed) while the sandbox lives on. A call
//! that meets a broken link is made once more over a new one; a process has its own number, so that it is joined and
//! never started twice.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;

use async_trait::async_trait;
use cofferdam_protocol::{Bounds, Hello, Reply, Request, Setup, Stats, Status};
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::ByteStream;
use super::channel::{Channel, unexpected};
use super::link::{Attempt, Link, LinkEnd, OnNotice};
use super::watch::Beginnings;
use crate::file_policy::FilePolicy;
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

/// Between two tries to keep the link of a sandbox that nobody uses at the moment.
const KEEP_AGAIN: Duration = Duration::from_secs(5);

/// How long a guest may take to say goodbye. One on a busy machine is heard; only one that hangs costs so much.
const FAREWELL: Duration = Duration::from_secs(2);

/// The guest of one sandbox.
pub struct Guest {
    connect: Box<dyn Connect>,
    client: u128,
    sandbox_id: String,
    on_notice: OnNotice,
    link: RwLock<Option<Arc<Link>>>,
    connecting: Mutex<()>,
    /// Why there will be no link any more.
    over: RwLock<Option<Error>>,
    /// Cancelled when that is so.
    lifetime: RwLock<CancellationToken>,
    watched: AtomicBool,
    /// What callers may do with its files.
    pub(super) files: Arc<FilePolicy>,
    pub(super) beginnings: Beginnings,
}

impl Guest {
    /// Shakes hands on a first stream.
    pub(crate) async fn open(
        connect: Box<dyn Connect>,
        first: ByteStream,
        client: u128,
        on_notice: OnNotice,
        files: Arc<FilePolicy>,
    ) -> Result<Guest> {
        let link = Link::open(first, client, Arc::clone(&on_notice)).await?;
        let guest = Guest::unlinked(connect, client, on_notice, link.hello().setup.sandbox_id.clone(), files);
        *guest.link.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(link));
        Ok(guest)
    }

    /// Of a sandbox that does not run.
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
            beginnings: Beginnings::default(),
        }
    }

    /// What the guest said of itself when it was linked.
    pub fn hello(&self) -> Option<Hello> {
        self.current().map(|link| link.hello().clone())
    }

    /// Goes over to a better stream into the same sandbox; calls under way end on the old one.
    pub async fn upgrade(&self, stream: ByteStream) -> Result<()> {
        let link = self.shake_hands(stream).await?;
        let _one_at_a_time = self.connecting.lock().await;
        // Closed meanwhile, or somebody else's sandbox: then not.
        if self.over().is_none() && self.is_same(&link) {
            self.install(link);
        }
        Ok(())
    }

    /// Ends the link; every call from now on, and every one under way, gives `error`.
    pub fn close(&self, error: Error) {
        *self.over.write().unwrap_or_else(PoisonError::into_inner) = Some(error);
        self.lifetime().cancel();
        if let Some(link) = self.link.write().unwrap_or_else(PoisonError::into_inner).take() {
            link.shut();
        }
    }

    /// As [`Guest::close`], but first the guest itself is told, so that it tells all who are linked; one that does not
    /// listen is left to its backend: false.
    pub(crate) async fn end(&self, error: Error) -> bool {
        let farewell = self.ask_to_end();
        *self.over.write().unwrap_or_else(PoisonError::into_inner) = Some(error.clone());
        let heard = match farewell {
            Some(farewell) => tokio::time::timeout(FAREWELL, farewell.wait()).await.is_ok(),
            None => false,
        };
        self.close(error);
        heard
    }

    /// After [`Guest::close`]: the sandbox runs again, and this is its first stream.
    pub(crate) async fn reopen(&self, stream: ByteStream) -> Result<()> {
        let link = self.shake_hands(stream).await?;
        if !self.is_same(&link) {
            return Err(replaced());
        }
        let _one_at_a_time = self.connecting.lock().await;
        *self.over.write().unwrap_or_else(PoisonError::into_inner) = None;
        *self.lifetime.write().unwrap_or_else(PoisonError::into_inner) = CancellationToken::new();
        self.install(link);
        Ok(())
    }

    /// Cancelled when the sandbox is closed, stopped or gone.
    pub(crate) fn lifetime(&self) -> CancellationToken {
        self.lifetime.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until the sandbox is closed, stopped or gone, and says why.
    pub async fn lost(&self) -> Error {
        self.lifetime().cancelled().await;
        self.over().unwrap_or_else(|| closed_error(&self.sandbox_id))
    }

    /// Why there is no link any more, and will be none.
    pub(crate) fn over(&self) -> Option<Error> {
        self.over.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn current(&self) -> Option<Arc<Link>> {
        self.link.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn shake_hands(&self, stream: ByteStream) -> Result<Arc<Link>> {
        Ok(Arc::new(Link::open(stream, self.client, Arc::clone(&self.on_notice)).await?))
    }

    fn is_same(&self, link: &Link) -> bool {
        link.hello().setup.sandbox_id == self.sandbox_id
    }

    fn install(&self, link: Arc<Link>) {
        if self.watched.load(Ordering::Acquire) {
            watch(&link);
        }
        *self.link.write().unwrap_or_else(PoisonError::into_inner) = Some(link);
    }

    /// From now on, notices tell of commands too.
    pub(crate) fn watch(&self) {
        if !self.watched.swap(true, Ordering::AcqRel)
            && let Some(link) = self.current()
        {
            watch(&link);
        }
    }

    /// The live link, made anew if need be; once every watch that was asked for before is in place.
    pub(crate) async fn link(&self) -> Result<Arc<Link>> {
        self.beginnings.settled().await;
        self.link_now().await
    }

    async fn link_now(&self) -> Result<Arc<Link>> {
        if let Some(error) = self.over() {
            return Err(error);
        }
        if let Some(link) = self.current().filter(|link| link.is_alive()) {
            return Ok(link);
        }
        let _one_at_a_time = self.connecting.lock().await;
        if let Some(error) = self.over() {
            return Err(error);
        }
        if let Some(link) = self.current().filter(|link| link.is_alive()) {
            return Ok(link);
        }
        let outcome = match self.current().map(|link| link.shared.end()) {
            Some(end @ LinkEnd::Farewell(_)) => Err(self.connect.explain(end.into()).await),
            _ => self.reconnect().await,
        };
        match outcome {
            Ok(link) => {
                // Closed meanwhile.
                if let Some(error) = self.over() {
                    return Err(error);
                }
                self.install(Arc::clone(&link));
                Ok(link)
            }
            Err(error) if is_final(&error) => Err(self.give_up(error)),
            Err(error) => Err(error),
        }
    }

    /// The sandbox is gone. Gives the first reason that was found for it.
    fn give_up(&self, error: Error) -> Error {
        let first = self.over.write().unwrap_or_else(PoisonError::into_inner).get_or_insert(error).clone();
        self.lifetime().cancel();
        first
    }

    async fn reconnect(&self) -> Result<Arc<Link>> {
        let deadline = Instant::now() + RECONNECT;
        loop {
            let error = match self.shake_hands(self.connect.connect().await?).await {
                Ok(link) if self.is_same(&link) => return Ok(link),
                Ok(_) => replaced(),
                Err(error) => self.connect.explain(error).await,
            };
            if is_final(&error) || Instant::now() >= deadline {
                return Err(error);
            }
            tokio::time::sleep(TRY_AGAIN).await;
        }
    }

    /// Makes the link again whenever it breaks, because a sandbox without one is an orphan to its guest. Gives the
    /// reason when that is over; `None` when nobody holds the guest any more, or it broke the protocol.
    pub(crate) async fn keep(guest: Weak<Guest>) -> Option<Error> {
        let mut pause = TRY_AGAIN;
        loop {
            let linked = Instant::now();
            let outcome = guest.upgrade()?.link_now().await;
            match outcome {
                Ok(link) => {
                    let (ended, shared) = (link.ended(), Arc::downgrade(&link.shared));
                    drop(link);
                    ended.cancelled().await;
                    if let Some(shared) = shared.upgrade()
                        && matches!(shared.end(), LinkEnd::Protocol(_))
                    {
                        return None;
                    }
                }
                Err(error) if is_final(&error) || error.code() == Some(ErrorCode::SandboxClosed) => return Some(error),
                Err(error) if error.code() == Some(ErrorCode::Protocol) => return None,
                Err(_) => {}
            }
            pause = if linked.elapsed() > KEEP_AGAIN { TRY_AGAIN } else { (pause * 2).min(KEEP_AGAIN) };
            if guest.upgrade()?.current().is_none_or(|link| !link.is_alive()) {
                tokio::time::sleep(pause / 2).await;
            }
        }
    }

    /// Asks PID 1 to end, without waiting for anything; the answer is the end of the link. `None` without a live link.
    pub(crate) fn ask_to_end(&self) -> Option<Farewell> {
        let link = self.current().filter(|link| link.is_alive())?;
        let channel = link.request(&Request::End, 1).ok()?.ok()?;
        Some(Farewell { ended: link.ended(), _channel: channel })
    }

    /// What a broken link means to a call that cannot be made again.
    pub(crate) async fn explain(&self, end: LinkEnd) -> Error {
        if let Some(error) = self.over() {
            return error;
        }
        match end {
            LinkEnd::Protocol(_) | LinkEnd::Generation(_) => end.into(),
            // Whichever link it was said on.
            LinkEnd::Farewell(_) => {
                let error = self.connect.explain(end.into()).await;
                self.give_up(error)
            }
            // A box that is gone explains it better than a stream that ended.
            LinkEnd::Broken(_) => match self.link_now().await {
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
        self.beginnings.settled().await;
        self.with_link_now(attempt).await
    }

    pub(super) async fn with_link_now<T, F>(&self, attempt: impl Fn(Arc<Link>) -> F) -> Result<T>
    where
        F: Future<Output = Attempt<T>>,
    {
        match attempt(self.link_now().await?).await {
            Ok(outcome) => outcome,
            Err(LinkEnd::Broken(_)) => self.once(attempt).await,
            Err(end) => Err(self.explain(end).await),
        }
    }

    /// Runs `attempt` on the live link, and never again: for what must not be done twice.
    pub(crate) async fn with_link_once<T, F>(&self, attempt: impl FnOnce(Arc<Link>) -> F) -> Result<T>
    where
        F: Future<Output = Attempt<T>>,
    {
        self.beginnings.settled().await;
        self.once(attempt).await
    }

    async fn once<T, F>(&self, attempt: impl FnOnce(Arc<Link>) -> F) -> Result<T>
    where
        F: Future<Output = Attempt<T>>,
    {
        match attempt(self.link_now().await?).await {
            Ok(outcome) => outcome,
            Err(end) => Err(self.explain(end).await),
        }
    }

    /// A request with one answer.
    pub(crate) async fn call<T>(&self, request: &Request, expect: impl Fn(Reply) -> Option<T>) -> Result<T> {
        self.beginnings.settled().await;
        self.call_now(request, expect).await
    }

    /// The same without waiting for watches that begin.
    pub(super) async fn call_now<T>(&self, request: &Request, expect: impl Fn(Reply) -> Option<T>) -> Result<T> {
        let reply = self
            .with_link_now(|link| async move {
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

    /// How the sandbox is.
    pub async fn status(&self) -> Result<Status> {
        self.call(&Request::Status, |reply| match reply {
            Reply::Status(status) => Some(status),
            _ => None,
        })
        .await
    }

    /// What the sandbox uses.
    pub async fn stats(&self) -> Result<Stats> {
        self.call(&Request::Stats, |reply| match reply {
            Reply::Stats(stats) => Some(stats),
            _ => None,
        })
        .await
    }

    /// Changes the lease.
    pub(crate) async fn extend(&self, idle: Option<Duration>, max: Option<Duration>) -> Result<()> {
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self.perform(&Request::Extend { idle_ms: idle.map(ms), max_ms: max.map(ms) }).await
    }

    /// Changes the limits that the guest itself keeps.
    pub(crate) async fn set_bounds(&self, bounds: Bounds) -> Result<()> {
        self.perform(&Request::SetBounds(bounds)).await
    }

    /// Gives a box that nobody asked for yet to a session. False when another one was first. Not tried again on a broken
    /// link: nobody could say whether it was we who were first.
    pub(crate) async fn claim(&self, setup: Setup) -> Result<bool> {
        let link = self.link().await?;
        let mut channel = link.request(&Request::Claim(setup), 1).map_err(Error::from)??;
        match channel.reply().await.map_err(Error::from)?? {
            Reply::Claimed(ours) => Ok(ours),
            _ => Err(unexpected()),
        }
    }
}

/// A guest that was asked to end.
pub(crate) struct Farewell {
    ended: CancellationToken,
    // Dropping it would take the request back.
    _channel: Channel,
}

impl Farewell {
    pub(crate) fn is_over(&self) -> bool {
        self.ended.is_cancelled()
    }

    pub(crate) async fn wait(&self) {
        self.ended.cancelled().await;
    }
}

fn watch(link: &Arc<Link>) {
    let Ok(Ok(mut channel)) = link.request(&Request::Watch, 1) else { return };
    // The answer matters to nobody, but a channel that is dropped takes its request back.
    tokio::spawn(async move { channel.reply().await.is_ok() });
}

/// Whether a sandbox is gone for good.
pub(crate) fn is_final(error: &Error) -> bool {
    error.code() == Some(ErrorCode::SandboxLost) && error.detail("reason").is_some()
}

fn replaced() -> Error {
    Error::new(ErrorCode::SandboxLost, "another sandbox answers in its place; open() gives it")
        .with("reason", "replaced")
}

/// The error of calls on a sandbox that this program closed.
pub(crate) fn closed_error(id: &str) -> Error {
    Error::new(ErrorCode::SandboxClosed, format!("the sandbox {id} was closed; open() gives a new one"))
}
