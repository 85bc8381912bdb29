//! Sandbox events for listeners. Without listeners, no event is built.

use std::time::SystemTime;

use serde_json::{Map, Value};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio_util::sync::CancellationToken;

/// Events buffered for a slow listener; the oldest are dropped first.
const BACKLOG: usize = 1024;

/// The most events per read.
const BATCH: usize = 256;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// A sandbox was created.
    Opened,
    /// An existing one was opened.
    Resumed,
    /// A warm sandbox was created, or could not be.
    Warming,
    /// Its lease expires soon.
    Expiring,
    /// It was closed, or its lease expired.
    Closed,
    /// It disappeared unexpectedly.
    Lost,
    /// A command started.
    ExecStarted,
    /// A command ended.
    ExecFinished,
    /// The kernel killed a process for lack of memory.
    Oom,
    /// A step of a pull.
    Pull,
}

impl EventKind {
    /// The public name.
    pub fn as_str(self) -> &'static str {
        match self {
            EventKind::Opened => "opened",
            EventKind::Resumed => "resumed",
            EventKind::Warming => "warming",
            EventKind::Expiring => "expiring",
            EventKind::Closed => "closed",
            EventKind::Lost => "lost",
            EventKind::ExecStarted => "exec-started",
            EventKind::ExecFinished => "exec-finished",
            EventKind::Oom => "oom",
            EventKind::Pull => "pull",
        }
    }
}

/// An event.
#[derive(Debug, Clone)]
pub struct Event {
    /// What.
    pub kind: EventKind,
    /// When.
    pub at: SystemTime,
    /// Which sandbox: its id and its session's key.
    pub sandbox: Option<(String, String)>,
    /// Further details, by name.
    pub details: Map<String, Value>,
}

impl Event {
    /// An event without a sandbox.
    pub(crate) fn new(kind: EventKind) -> Event {
        Event { kind, at: SystemTime::now(), sandbox: None, details: Map::new() }
    }

    pub(crate) fn of(mut self, id: &str, key: &str) -> Event {
        self.sandbox = Some((id.to_owned(), key.to_owned()));
        self
    }

    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Event {
        self.details.insert(name.to_owned(), value.into());
        self
    }
}

/// Sends events to all listeners. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Events {
    sender: broadcast::Sender<Event>,
    over: CancellationToken,
}

impl Default for Events {
    fn default() -> Events {
        Events { sender: broadcast::channel(BACKLOG).0, over: CancellationToken::new() }
    }
}

impl Events {
    pub(crate) fn has_listeners(&self) -> bool {
        self.sender.receiver_count() > 0
    }

    pub(crate) fn emit(&self, event: impl FnOnce() -> Event) {
        if self.has_listeners() {
            let _ = self.sender.send(event());
        }
    }

    pub(crate) fn listen(&self) -> EventStream {
        EventStream { receiver: self.sender.subscribe(), over: self.over.clone() }
    }

    /// Every stream ends after the events sent so far.
    pub(crate) fn end(&self) {
        self.over.cancel();
    }
}

/// Events since its creation.
pub struct EventStream {
    receiver: broadcast::Receiver<Event>,
    over: CancellationToken,
}

impl EventStream {
    /// At least one event; none when there will be no more. Slow listeners lose events; `missed` in the next event counts
    /// them.
    pub async fn next_many(&mut self) -> Vec<Event> {
        let mut missed = 0;
        let first = loop {
            let received = tokio::select! {
                biased;
                received = self.receiver.recv() => received,
                () = self.over.cancelled() => return Vec::new(),
            };
            match received {
                Ok(event) => break event,
                Err(RecvError::Lagged(count)) => missed += count,
                Err(RecvError::Closed) => return Vec::new(),
            }
        };
        let mut batch = vec![if missed > 0 { first.with("missed", missed) } else { first }];
        while batch.len() < BATCH {
            match self.receiver.try_recv() {
                Ok(event) => batch.push(event),
                Err(TryRecvError::Lagged(_) | TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        batch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_listener_hears_what_comes_after_it_and_a_slow_one_is_told_what_it_missed() {
        let events = Events::default();
        events.emit(|| unreachable!("nobody listens"));
        let mut stream = events.listen();
        for number in 0..BACKLOG as u64 + 5 {
            events.emit(|| Event::new(EventKind::Opened).with("number", number));
        }
        let first = stream.next_many().await;
        assert_eq!(first[0].details["missed"], 5);
        assert_eq!(first[0].details["number"], 5);
        let mut count = first.len();
        events.end();
        loop {
            match stream.next_many().await.len() {
                0 => break,
                more => count += more,
            }
        }
        assert_eq!(count, BACKLOG);
    }
}
