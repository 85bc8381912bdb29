//! How containers ended, by the engine's own events: one that removes itself leaves no other trace of its exit code, and
//! an engine that was restarted does not say so.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bollard::Docker as Client;
use bollard::models::EventMessage;
use bollard::query_parameters::EventsOptions;
use futures_util::StreamExt;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::records;

/// Ends that are remembered.
const REMEMBERED: usize = 1024;

/// A container that ends so soon after the kernel killed for memory in it, ended of that.
const OOM: Duration = Duration::from_secs(2);

/// How long the news of an end may be behind the end itself.
const NEWS: Duration = Duration::from_millis(300);

/// Between two tries to hear from an engine that is away.
const TRY_AGAIN: Duration = Duration::from_millis(200);

/// How a container ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Death {
    pub(super) exit_code: i64,
    pub(super) oom: bool,
}

/// What is known of the dead.
#[derive(Default)]
struct Known {
    deaths: HashMap<String, Death>,
    oldest: VecDeque<String>,
    starved: HashMap<String, Instant>,
    /// Which engines we have heard containers of; each restart is another one.
    epoch: u64,
    /// In which epoch each container was first seen by us.
    born: HashMap<String, u64>,
}

impl Known {
    fn take(&mut self, event: EventMessage) {
        let Some((id, attributes)) = event.actor.and_then(|actor| Some((actor.id?, actor.attributes?))) else { return };
        match event.action.as_deref() {
            Some("oom") => {
                self.starved.insert(id, Instant::now());
            }
            Some("die") => {
                let oom = self.starved.remove(&id).is_some_and(|at| at.elapsed() < OOM);
                let exit_code = attributes.get("exitCode").and_then(|code| code.parse().ok()).unwrap_or_default();
                self.remember(id, Death { exit_code, oom });
            }
            _ => {}
        }
    }

    fn remember(&mut self, id: String, death: Death) {
        if self.oldest.len() == REMEMBERED
            && let Some(oldest) = self.oldest.pop_front()
        {
            self.deaths.remove(&oldest);
        }
        self.born.remove(&id);
        self.oldest.push_back(id.clone());
        self.deaths.insert(id, death);
    }
}

#[derive(Default)]
struct Shared {
    known: Mutex<Known>,
    news: Notify,
}

impl Shared {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Listens from the first container on, for as long as it lives.
#[derive(Default)]
pub(super) struct Obituaries {
    shared: Arc<Shared>,
    listening: Mutex<Option<AbortOnDropHandle<()>>>,
}

impl Obituaries {
    /// A container is ours to follow from now on.
    pub(super) fn follow(&self, client: &Client, id: &str) {
        let mut listening = self.listening.lock().unwrap_or_else(PoisonError::into_inner);
        listening.get_or_insert_with(|| {
            AbortOnDropHandle::new(tokio::spawn(listen(client.clone(), Arc::clone(&self.shared))))
        });
        drop(listening);
        let mut known = self.shared.known();
        let epoch = known.epoch;
        known.born.entry(id.to_owned()).or_insert(epoch);
    }

    pub(super) fn forget(&self, id: &str) {
        self.shared.known().born.remove(id);
    }

    /// Whether the engine was restarted since the container was first seen.
    pub(super) fn has_outlived_engine(&self, id: &str) -> bool {
        let known = self.shared.known();
        known.born.get(id).is_some_and(|born| *born != known.epoch)
    }

    /// How a container that is gone ended, where that was heard.
    pub(super) async fn of(&self, id: &str) -> Option<Death> {
        let heard = async {
            loop {
                let news = self.shared.news.notified();
                if let Some(death) = self.shared.known().deaths.get(id) {
                    return *death;
                }
                news.await;
            }
        };
        timeout(NEWS, heard).await.ok()
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
            shared.news.notify_waiters();
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
    async fn the_end_of_a_container_is_remembered_with_its_cause() {
        let mut known = Known::default();
        known.take(event("die", "a", "3"));
        known.take(event("oom", "b", ""));
        known.take(event("die", "b", "137"));
        assert_eq!(known.deaths["a"], Death { exit_code: 3, oom: false });
        assert_eq!(known.deaths["b"], Death { exit_code: 137, oom: true });
        for number in 0..REMEMBERED {
            known.take(event("die", &number.to_string(), "0"));
        }
        assert!(!known.deaths.contains_key("a") && known.deaths.len() == REMEMBERED);
    }
}
