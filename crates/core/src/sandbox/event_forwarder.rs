//! A guest's notices, as events.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, SystemTime};

use cofferdam_protocol::{Ending, Exit, Notice, signal_name};

use crate::events::{Event, EventKind, Events};
use crate::guest::{OnNotice, ending_reason};
use crate::lock::lock;

/// Turns a guest's notices into events, once the sandbox is known.
pub(crate) struct EventForwarder {
    events: Events,
    identity: OnceLock<(String, String)>,
    /// The latest notices: while a faster link takes over, both links deliver the same.
    seen: Mutex<VecDeque<String>>,
    /// Exits of commands whose start is still on its way over the slower of two links.
    early: Mutex<HashMap<String, Exit>>,
}

/// Notices that may arrive while two links are up.
const RECENT: usize = 256;

/// How far the slower of two links may lag. After that, the start was never seen.
const STRAGGLER: Duration = Duration::from_secs(2);

impl EventForwarder {
    pub(crate) fn new(events: Events) -> Arc<EventForwarder> {
        Arc::new(EventForwarder { events, identity: OnceLock::new(), seen: Mutex::default(), early: Mutex::default() })
    }

    pub(crate) fn on_notice(self: &Arc<Self>) -> OnNotice {
        let forwarder = Arc::clone(self);
        Arc::new(move |notice| forwarder.take(notice))
    }

    pub(super) fn identify(&self, id: &str, key: &str) {
        let _ = self.identity.set((id.to_owned(), key.to_owned()));
    }

    fn emit(&self, kind: EventKind, fill: impl FnOnce(Event) -> Event) {
        if let Some((id, key)) = self.identity.get() {
            self.events.emit(|| fill(Event::new(kind).of(id, key)));
        }
    }

    fn is_duplicate(&self, what: String) -> bool {
        let mut seen = lock(&self.seen);
        if seen.contains(&what) {
            return true;
        }
        if seen.len() == RECENT {
            seen.pop_front();
        }
        seen.push_back(what);
        false
    }

    /// Whether the start of a command was seen; if not, its exit is told a little later.
    fn has_started(self: &Arc<Self>, exec_id: &str, exit: Exit) -> bool {
        let start = format!("started {exec_id}");
        if lock(&self.seen).contains(&start) {
            return true;
        }
        let mut early = lock(&self.early);
        if early.len() >= RECENT {
            return true;
        }
        early.insert(exec_id.to_owned(), exit);
        let (forwarder, exec_id) = (Arc::clone(self), exec_id.to_owned());
        tokio::spawn(async move {
            tokio::time::sleep(STRAGGLER).await;
            forwarder.finish_early(&exec_id);
        });
        false
    }

    fn finish_early(&self, exec_id: &str) {
        let exit = lock(&self.early).remove(exec_id);
        if let Some(exit) = exit {
            self.finish(exec_id, exit);
        }
    }

    fn finish(&self, exec_id: &str, exit: Exit) {
        self.emit(EventKind::ExecFinished, |event| {
            event
                .with("execId", exec_id)
                .with("exitCode", exit.code)
                .with("signal", exit.signal.map(signal_name))
                .with("timedOut", exit.timed_out)
                .with("oomKilled", exit.oom_killed)
                .with("durationMs", exit.duration_us as f64 / 1000.0)
        });
        if exit.oom_killed {
            self.emit(EventKind::Oom, |event| event.with("execId", exec_id));
        }
    }

    fn take(self: &Arc<Self>, notice: &Notice) {
        if !self.events.has_listeners() {
            return;
        }
        // A hostile guest may send megabytes.
        let short = |text: &String| text.chars().take(200).collect::<String>();
        let is_duplicate = match notice {
            // To the second: both links deliver the same moment.
            Notice::Expiring { term, in_ms } => {
                let at = SystemTime::now() + Duration::from_millis((*in_ms).min(u32::MAX.into()));
                let seconds = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis() / 1000;
                self.is_duplicate(format!("{term:?} {seconds}"))
            }
            Notice::Started { exec_id, .. } => self.is_duplicate(format!("started {}", short(exec_id))),
            Notice::Finished { exec_id, .. } => self.is_duplicate(format!("finished {}", short(exec_id))),
            Notice::Ending(_) => true,
        };
        if is_duplicate {
            return;
        }
        match notice {
            Notice::Expiring { term, in_ms } => self.emit(EventKind::Expiring, |event| {
                let at = SystemTime::now().checked_add(Duration::from_millis(*in_ms));
                let at_ms = at.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
                let reason = ending_reason(Ending::Expired(*term)).0;
                event
                    .with("reason", reason)
                    .with("inMs", *in_ms)
                    .with("expiresAtMs", at_ms.map(|at| at.as_millis() as u64))
            }),
            Notice::Started { exec_id, command } => {
                self.emit(EventKind::ExecStarted, |event| {
                    event.with("execId", short(exec_id)).with("command", short(command))
                });
                self.finish_early(&short(exec_id));
            }
            Notice::Finished { exec_id, exit } => {
                let exec_id = short(exec_id);
                if self.has_started(&exec_id, *exit) {
                    self.finish(&exec_id, *exit);
                }
            }
            Notice::Ending(_) => {}
        }
    }
}
