//! The live link: reconnects when it breaks, until the sandbox is gone.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::Instant;

use super::{Guest, replaced};
use crate::guest::link::{Link, LinkEnd};
use crate::lock::write;
use crate::{Error, ErrorCode, Result};

/// How long to try to reconnect before the sandbox counts as lost. The engine still lists a box that is just ending.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Pause between two attempts.
const RETRY: Duration = Duration::from_millis(50);

/// Longest pause between two attempts while nobody uses the sandbox.
const IDLE_RETRY: Duration = Duration::from_secs(5);

impl Guest {
    /// The live link, reconnected if necessary. Waits for pending watches first.
    pub(crate) async fn link(&self) -> Result<Arc<Link>> {
        self.pending_watches.wait().await;
        self.link_now().await
    }

    pub(super) async fn link_now(&self) -> Result<Arc<Link>> {
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
            Some(end @ LinkEnd::GuestEnded(_)) => Err(self.connect.explain(end.into()).await),
            _ => self.reconnect().await,
        };
        match outcome {
            Ok(link) => {
                // Closed in the meantime.
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

    /// Marks the sandbox as gone; returns the first reason recorded.
    fn give_up(&self, error: Error) -> Error {
        let first = write(&self.over).get_or_insert(error).clone();
        self.lifetime().cancel();
        first
    }

    async fn reconnect(&self) -> Result<Arc<Link>> {
        let deadline = Instant::now() + RECONNECT_TIMEOUT;
        loop {
            let error = match self.handshake(self.connect.connect().await?).await {
                Ok(link) if self.is_same(&link) => return Ok(link),
                Ok(_) => replaced(),
                Err(error) => self.connect.explain(error).await,
            };
            if is_final(&error) || Instant::now() >= deadline {
                return Err(error);
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Reconnects whenever the link breaks: a guest without a link starts its orphan timeout. Returns the reason when the
    /// sandbox is gone; `None` when the last `Arc` is dropped or the guest violates the protocol.
    pub(crate) async fn maintain_link(guest: Weak<Guest>) -> Option<Error> {
        let mut pause = RETRY;
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
            pause = if linked.elapsed() > IDLE_RETRY { RETRY } else { (pause * 2).min(IDLE_RETRY) };
            if guest.upgrade()?.current().is_none_or(|link| !link.is_alive()) {
                tokio::time::sleep(pause / 2).await;
            }
        }
    }

    /// The error for a call that a broken link interrupted and that cannot be retried.
    pub(crate) async fn explain(&self, end: LinkEnd) -> Error {
        if let Some(error) = self.over() {
            return error;
        }
        match end {
            LinkEnd::Protocol(_) | LinkEnd::Generation(_) => end.into(),
            // On whichever link it arrived.
            LinkEnd::GuestEnded(_) => {
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
}

/// Whether a sandbox is gone for good.
fn is_final(error: &Error) -> bool {
    error.code() == Some(ErrorCode::SandboxLost) && error.detail("reason").is_some()
}
