//! How containers ended, from the engine's events. A container that removes itself leaves no other trace of its exit code, and an
//! engine does not say that it was restarted.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bollard::Docker as Client;
use bollard::models::EventMessage;
use bollard::query_parameters::EventsOptions;
use futures_util::StreamExt;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::records;
use crate::lock::lock;

/// Exits that are remembered.
const REMEMBERED: usize = 1024;

/// A container that ends this soon after an OOM kill in it ended because of that.
const OOM: Duration = Duration::from_secs(2);

/// How long an event may lag behind the exit.
const LAG: Duration = Duration::from_millis(300);

/// Between two attempts to reach an engine that is down.
const TRY_AGAIN: Duration = Duration::from_millis(200);

/// How a container ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exit {
    pub(super) exit_code: i64,
    pub(super) oom: bool,
}

/// What the events said.
#[derive(Default)]
struct Known {
    exits: HashMap<String, Exit>,
    oldest: VecDeque<String>,
    oom_killed: HashMap<String, Instant>,
    /// Counts restarts of the engine.
    epoch: u64,
    /// The epoch in which each container was first seen.
    first_seen: HashMap<String, u64>,
}

impl Known {
    fn take(&mut self, event: EventMessage) {
        let Some((id, attributes)) = event.actor.and_then(|actor| Some((actor.id?, actor.attributes?))) else { return };
        match event.action.as_deref() {
            Some("oom") => {
                self.oom_killed.insert(id, Instant::now());
            }
            Some("die") => {
                let oom = self.oom_killed.remove(&id).is_some_and(|at| at.elapsed() < OOM);
                let exit_code = attributes.get("exitCode").and_then(|code| code.parse().ok()).unwrap_or_default();
                self.remember(id, Exit { exit_code, oom });
            }
            _ => {}
        }
    }

    fn remember(&mut self, id: String, exit: Exit) {
        if self.oldest.len() == REMEMBERED
            && let Some(oldest) = self.oldest.pop_front()
        {
            self.exits.remove(&oldest);
        }
        self.first_seen.remove(&id);
        self.oldest.push_back(id.clone());
        self.exits.insert(id, exit);
    }
}

#[derive(Default)]
struct Shared {
    known: Mutex<Known>,
    changed: Notify,
}

impl Shared {
    fn known(&self) -> MutexGuard<'_, Known> {
        lock(&self.known)
    }
}

/// Listens from the first container on, until dropped.
#[derive(Default)]
pub(super) struct ExitEvents {
    shared: Arc<Shared>,
    listening: Mutex<Option<AbortOnDropHandle<()>>>,
}

impl ExitEvents {
    /// Starts to follow a container.
    pub(super) fn follow(&self, client: &Client, id: &str) {
        let mut listening = lock(&self.listening);
        listening.get_or_insert_with(|| {
            AbortOnDropHandle::new(tokio::spawn(listen(client.clone(), Arc::clone(&self.shared))))
        });
        drop(listening);
        let mut known = self.shared.known();
        let epoch = known.epoch;
        known.first_seen.entry(id.to_owned()).or_insert(epoch);
    }

    pub(super) fn forget(&self, id: &str) {
        self.shared.known().first_seen.remove(id);
    }

    /// Whether the engine was restarted since the container was first seen.
    pub(super) fn has_outlived_engine(&self, id: &str) -> bool {
        let known = self.shared.known();
        known.first_seen.get(id).is_some_and(|epoch| *epoch != known.epoch)
    }

    /// How a container that is gone ended, if an event said so.
    pub(super) async fn of(&self, id: &str) -> Option<Exit> {
        let known = async {
            loop {
                let changed = self.shared.changed.notified();
                if let Some(exit) = self.shared.known().exits.get(id) {
                    return *exit;
                }
                changed.await;
            }
        };
        timeout(LAG, known).await.ok()
    }
}

async fn listen(client: Client, shared: Arc<Shared>) {
    loop {
        let filters = HashMap::from([
            ("type".to_owned(), vec!["container".to_owned()]),
            ("event".to_owned(), vec!["die".to_owned(), "oom".to_owned()]),
            ("label".to_owned(), vec![records::ID.to_owned()]),
        ]);
        let mut events = client.events(Some(EventsOptions { filters: Some(filters), ..Default::default() }));
        while let Some(Ok(event)) = events.next().await {
            shared.known().take(event);
            shared.changed.notify_waiters();
        }
        shared.known().epoch += 1;
        tokio::time::sleep(TRY_AGAIN).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bollard::models::EventActor;

    fn event(action: &str, id: &str, code: &str) -> EventMessage {
        let attributes = HashMap::from([("exitCode".to_owned(), code.to_owned())]);
        let actor = EventActor { id: Some(id.to_owned()), attributes: Some(attributes) };
        EventMessage { action: Some(action.to_owned()), actor: Some(actor), ..Default::default() }
    }

    #[tokio::test]
    async fn the_exit_of_a_container_is_remembered_with_its_cause() {
        let mut known = Known::default();
        known.take(event("die", "a", "3"));
        known.take(event("oom", "b", ""));
        known.take(event("die", "b", "137"));
        assert_eq!(known.exits["a"], Exit { exit_code: 3, oom: false });
        assert_eq!(known.exits["b"], Exit { exit_code: 137, oom: true });
        for number in 0..REMEMBERED {
            known.take(event("die", &number.to_string(), "0"));
        }
        assert!(!known.exits.contains_key("a") && known.exits.len() == REMEMBERED);
    }
}
