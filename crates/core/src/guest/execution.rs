//! A command whose output is read while it runs. One request starts it, carries its output, and brings its end.
//!
//! Invariant: every byte of output is given once and in order, over as many links as it takes. A slow reader slows the
//! command.

use std::sync::Arc;
use std::time::Duration;

use cofferdam_protocol::{Output, Reply, Request, Stdin};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::channel::{Channel, unexpected};
use super::command::MAX_RETAINED;
use super::connection::Guest;
use super::exec::{EXIT_TIMEOUT, Ended, ExecRequest, ExecResult, feed, never_ended, result};
use super::link::{Event, LinkEnd};
use super::output::{Chunk, lost_output};
use super::retained::Retained;
use crate::clock::sleep_or_forever;
use crate::id::random_id;
use crate::{Error, ErrorCode, Result};

/// A command that runs while its output is read. It starts with the first read.
pub struct Execution {
    guest: Arc<Guest>,
    exec_id: String,
    request: ExecRequest,
    started: Instant,
    channel: Option<Channel>,
    next: Next,
    /// The request may have reached the guest.
    sent: bool,
    seen: u64,
    /// After a link broke, until the next chunk shows whether any was lost with it.
    rejoined: bool,
    pause: Duration,
    retained: [Retained; 2],
    ended: Option<Ended>,
    feeding: Option<AbortOnDropHandle<()>>,
    /// Kills the command when the call is cancelled.
    killing: Option<AbortOnDropHandle<()>>,
}

/// The request to send on the next link.
#[derive(Clone, Copy, PartialEq)]
enum Next {
    Start,
    Attach,
}

impl Guest {
    /// Prepares a command whose output is read while it runs.
    pub fn exec_streaming(self: &Arc<Self>, request: ExecRequest) -> Execution {
        // The first read rejects a larger limit.
        let limit = request.spawn.max_output.min(MAX_RETAINED);
        Execution {
            guest: Arc::clone(self),
            exec_id: random_id("exec_"),
            request,
            started: Instant::now(),
            channel: None,
            next: Next::Start,
            sent: false,
            seen: 0,
            rejoined: false,
            pause: Duration::ZERO,
            retained: [Retained::new(limit), Retained::new(limit)],
            ended: None,
            feeding: None,
            killing: None,
        }
    }
}

impl Execution {
    /// At least one chunk and at most `max`; none after the end. A cancelled call fails once the whole process tree is gone.
    pub async fn next_many(&mut self, max: usize) -> Result<Vec<Chunk>> {
        self.kill_on_cancel();
        let cancel = self.request.cancel.clone();
        tokio::select! {
            biased;
            () = cancel.cancelled() => {}
            outcome = self.read(max) => return outcome,
        }
        if let Some(killing) = self.killing.take() {
            let _ = killing.await;
        }
        Err(Error::Aborted)
    }

    /// Reads to the end; returns the result with the head and the tail of the output.
    pub async fn result(mut self) -> Result<ExecResult> {
        while !self.next_many(usize::MAX).await?.is_empty() {}
        let ended = self.ended.ok_or_else(unexpected)?;
        let [stdout, stderr] = self.retained;
        result(self.exec_id, ended.with_all_output(), stdout, stderr)
    }

    /// Ends the command and its whole process tree.
    pub async fn kill(&self) {
        self.guest.abandon(&self.exec_id, self.request.spawn.kill_grace).await;
    }

    fn kill_on_cancel(&mut self) {
        if self.killing.is_some() {
            return;
        }
        let (guest, exec_id) = (Arc::clone(&self.guest), self.exec_id.clone());
        let (cancel, grace) = (self.request.cancel.clone(), self.request.spawn.kill_grace);
        // In its own task: the reader may be slow.
        self.killing = Some(AbortOnDropHandle::new(tokio::spawn(async move {
            cancel.cancelled().await;
            guest.abandon(&exec_id, grace).await;
        })));
    }

    async fn read(&mut self, max: usize) -> Result<Vec<Chunk>> {
        let mut chunks = Vec::new();
        while self.ended.is_none() && chunks.len() < max.max(1) {
            let must_wait = self.channel.as_ref().is_none_or(|channel| !channel.has_more());
            if must_wait && !chunks.is_empty() {
                break;
            }
            let time_left = self.time_left();
            let Some(channel) = &mut self.channel else {
                self.join().await?;
                continue;
            };
            let event = tokio::select! {
                event = channel.next() => event,
                () = sleep_or_forever(time_left) => return Err(never_ended()),
            };
            match event {
                Ok(Event::Output(_, seq, _)) if self.rejoined && seq > self.seen + 1 => {
                    self.kill().await;
                    return Err(lost_output(&self.exec_id, self.seen));
                }
                Ok(Event::Output(stream, seq, data)) if seq > self.seen => {
                    (self.rejoined, self.seen) = (false, seq);
                    self.retained[stream as usize].push(&data);
                    chunks.push(Chunk { seq, stream, data });
                }
                Ok(Event::Reply(Reply::Exited(exit, killed))) => self.ended = Some(Ended { exit, killed }),
                Ok(Event::Reply(Reply::Fault(fault))) => {
                    let error = Error::from(fault);
                    let start_was_lost =
                        error.code() == Some(ErrorCode::ProcessNotFound) && self.next == Next::Attach && self.seen == 0;
                    if !start_was_lost {
                        return Err(error);
                    }
                    (self.next, self.channel) = (Next::Start, None);
                }
                Ok(_) => return Err(unexpected()),
                Err(end) => self.take_end(end).await?,
            }
        }
        Ok(chunks)
    }

    async fn join(&mut self) -> Result<()> {
        let request = match self.next {
            Next::Start => {
                self.request.spawn.check()?;
                let input = if self.request.stdin.is_some() { Stdin::Channel } else { Stdin::Empty };
                Request::Start(self.request.spawn.start(&self.exec_id, input, Output::Follow))
            }
            Next::Attach => {
                let exec_id = self.exec_id.clone();
                Request::Attach { exec_id, since_seq: self.seen, output: Output::Follow }
            }
        };
        let link = self.guest.link().await.map_err(|error| self.marked(error))?;
        match link.request(&request, 1) {
            Ok(channel) => {
                let channel = channel?;
                self.sent = true;
                if let Some(bytes) = self.request.stdin.clone() {
                    let feeding = feed(channel.sender(), Some(bytes));
                    self.feeding = Some(AbortOnDropHandle::new(tokio::spawn(async move {
                        // The reader reports the end of the link.
                        let _ = feeding.await;
                    })));
                }
                self.channel = Some(channel);
                Ok(())
            }
            Err(end) => self.take_end(end).await,
        }
    }

    /// Prepares the next link; fails if the command cannot be attached to again.
    async fn take_end(&mut self, end: LinkEnd) -> Result<()> {
        self.channel = None;
        // How much input it has read is unknown.
        let is_fed = self.sent && self.request.stdin.is_some();
        if is_fed || !matches!(end, LinkEnd::Broken(_)) {
            return Err(self.marked(self.guest.explain(end).await));
        }
        if self.sent {
            (self.next, self.rejoined) = (Next::Attach, true);
        }
        // Avoid a busy loop when links keep breaking.
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).clamp(Duration::from_millis(10), Duration::from_secs(1));
        Ok(())
    }

    fn marked(&self, error: Error) -> Error {
        if self.sent { error } else { error.unsent() }
    }

    /// How long a guest may stay silent from now on: the rest of the command's time limit, and `EXIT_TIMEOUT`.
    fn time_left(&self) -> Option<Duration> {
        let limit = self.request.spawn.timeout?;
        let over = self.started.checked_add(limit + self.request.spawn.kill_grace)?;
        Some(over.saturating_duration_since(Instant::now()) + EXIT_TIMEOUT)
    }
}
