//! Requests to a guest: retried once on a new link, or sent only once.

use std::sync::Arc;
use std::time::Duration;

use cofferdam_protocol::{Bounds, Reply, Request, Setup, Stats, Status};

use super::Guest;
use crate::guest::channel::unexpected;
use crate::guest::link::{Attempt, Link, LinkEnd};
use crate::{Error, Result};

impl Guest {
    /// Runs `attempt` on the live link; retries once on a new link if that one breaks.
    pub(crate) async fn with_link<T, F>(&self, attempt: impl Fn(Arc<Link>) -> F) -> Result<T>
    where
        F: Future<Output = Attempt<T>>,
    {
        self.pending_watches.wait().await;
        self.with_link_now(attempt).await
    }

    pub(in crate::guest) async fn with_link_now<T, F>(&self, attempt: impl Fn(Arc<Link>) -> F) -> Result<T>
    where
        F: Future<Output = Attempt<T>>,
    {
        match attempt(self.link_now().await.map_err(Error::unsent)?).await {
            Ok(outcome) => outcome,
            Err(LinkEnd::Broken(_)) => match attempt(self.link_now().await?).await {
                Ok(outcome) => outcome,
                Err(end) => Err(self.explain(end).await),
            },
            Err(end) => Err(self.explain(end).await),
        }
    }

    /// Runs `attempt` on the live link, without a retry: for requests that are not idempotent.
    pub(crate) async fn with_link_once<T, F>(&self, attempt: impl FnOnce(Arc<Link>) -> F) -> Result<T>
    where
        F: Future<Output = Attempt<T>>,
    {
        self.pending_watches.wait().await;
        match attempt(self.link_now().await.map_err(Error::unsent)?).await {
            Ok(outcome) => outcome,
            Err(end) => Err(self.explain(end).await),
        }
    }

    /// A request with one answer.
    pub(crate) async fn call<T>(&self, request: &Request, expect: impl Fn(Reply) -> Option<T>) -> Result<T> {
        self.pending_watches.wait().await;
        self.call_now(request, expect).await
    }

    /// As [`Guest::call`], without waiting for pending watches.
    pub(in crate::guest) async fn call_now<T>(
        &self,
        request: &Request,
        expect: impl Fn(Reply) -> Option<T>,
    ) -> Result<T> {
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

    /// A request that is answered with `Done`.
    pub(crate) async fn perform(&self, request: &Request) -> Result<()> {
        self.call(request, |reply| matches!(reply, Reply::Done).then_some(())).await
    }

    /// A round trip.
    pub async fn ping(&self) -> Result<()> {
        self.perform(&Request::Ping).await
    }

    /// The sandbox's status.
    pub async fn status(&self) -> Result<Status> {
        self.call(&Request::Status, |reply| match reply {
            Reply::Status(status) => Some(status),
            _ => None,
        })
        .await
    }

    /// The sandbox's resource usage.
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

    /// Changes the limits that the guest enforces.
    pub(crate) async fn set_bounds(&self, bounds: Bounds) -> Result<()> {
        self.perform(&Request::SetBounds(bounds)).await
    }

    /// Assigns an unclaimed box to a session. False when another session was first. Never retried: after a broken link we
    /// could not tell who was first.
    pub(crate) async fn claim(&self, setup: Setup) -> Result<bool> {
        let link = self.link().await?;
        let mut channel = link.request(&Request::Claim(setup), 1).map_err(Error::from)??;
        match channel.reply().await.map_err(Error::from)?? {
            Reply::Claimed(ours) => Ok(ours),
            _ => Err(unexpected()),
        }
    }
}
