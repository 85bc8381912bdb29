//! What a guest says unasked, as events.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use cofferdam_protocol::{Ending, Exit, Notice, signal_name};

use crate::events::{Event, EventKind, Events};
use crate::guest::{OnNotice, ending_reason};

/// Turns what a guest says unasked into events, once it is known whose it is.
pub(crate) struct Herald {
    events: Events,
    identity: OnceLock<(String, String)>,
    /// What was told last: while a better link takes over, both say the same.
    told: Mutex<VecDeque<String>>,
    /// Ends of commands whose beginning is still on its way, by the slower of two links.
    early: Mutex<HashMap<String, Exit>>,
}

/// Commands that may begin or end while two links are up.
const TWICE: usize = 256;

/// How long the slower of two links may be behind the other. After that, nobody heard the command begin.
const STRAGGLER: Duration = Duration::from_secs(2);

impl Herald {
    pub(crate) fn new(events: Events) -> Arc<Herald> {
        Arc::new(Herald { events, identity: OnceLock::new(), told: Mutex::default(), early: Mutex::default() })
    }

    pub(crate) fn on_notice(self: &Arc<Self>) -> OnNotice {
        let herald = Arc::clone(self);
        Arc::new(move |notice| herald.take(notice))
    }

    pub(super) fn identify(&self, id: &str, key: &str) {
        let _ = self.identity.set((id.to_owned(), key.to_owned()));
    }

    fn emit(&self, kind: EventKind, fill: impl FnOnce(Event) -> Event) {
        if let Some((id, key)) = self.identity.get() {
            self.events.emit(|| fill(Event::new(kind).of(id, key)));
        }
    }

    fn is_told(&self, what: String) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.contains(&what) {
            return true;
        }
        if told.len() == TWICE {
            told.pop_front();
        }
        told.push_back(what);
        false
    }

    /// Whether its beginning was told; if not, its end is, a little later.
    fn began(self: &Arc<Self>, exec_id: &str, exit: Exit) -> bool {
        let beginning = format!("started {exec_id}");
        if self.told.lock().unwrap_or_else(PoisonError::into_inner).contains(&beginning) {
            return true;
        }
        let mut early = self.early.lock().unwrap_or_else(PoisonError::into_inner);
        if early.len() >= TWICE {
            return true;
        }
        early.insert(exec_id.to_owned(), exit);
        let (herald, exec_id) = (Arc::clone(self), exec_id.to_owned());
        tokio::spawn(async move {
            tokio::time::sleep(STRAGGLER).await;
            herald.finish_early(&exec_id);
        });
        false
    }

    fn finish_early(&self, exec_id: &str) {
        let exit = self.early.lock().unwrap_or_else(PoisonError::into_inner).remove(exec_id);
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
        let is_told = match notice {
            // To the second: both links are told of the same moment.
            Notice::Expiring { term, in_ms } => {
                let at = SystemTime::now() + Duration::from_millis((*in_ms).min(u32::MAX.into()));
                let seconds = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis() / 1000;
                self.is_told(format!("{term:?} {seconds}"))
            }
            Notice::Started { exec_id, .. } => self.is_told(format!("started {}", short(exec_id))),
            Notice::Finished { exec_id, .. } => self.is_told(format!("finished {}", short(exec_id))),
            Notice::Ending(_) => true,
        };
        if is_told {
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
                if self.began(&exec_id, *exit) {
                    self.finish(&exec_id, *exit);
                }
            }
            Notice::Ending(_) => {}
        }
    }
}
