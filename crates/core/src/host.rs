//! This program's side of all its sandboxes: where they run, who we are to them, who listens, and what goes on beside.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::backend::Backend;
use crate::events::Events;
use crate::file_policy::FilePolicy;
use crate::id::random_u128;
use crate::store::{Store, StoreOptions};

/// Shared by a manager, its pool and its sandboxes.
pub(crate) struct Host {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) events: Events,
    /// The same on all links of this manager.
    pub(crate) client: u128,
    pub(crate) background: Background,
    pub(crate) retiring: Retiring,
    /// What callers may do with files, in all sandboxes.
    pub(crate) files: Arc<FilePolicy>,
    /// What files are staged from and published to.
    pub(crate) store: Option<Store>,
}

impl Host {
    pub(crate) fn new(backend: Arc<dyn Backend>, files: Arc<FilePolicy>, store: Option<StoreOptions>) -> Arc<Host> {
        let (events, background) = (Events::default(), Background::default());
        Arc::new(Host {
            backend,
            events,
            client: random_u128(),
            background,
            retiring: Retiring::default(),
            files,
            store: store.map(Store::new),
        })
    }
}

/// Work that goes on when its caller has gone, until the manager is closed.
#[derive(Default)]
pub(crate) struct Background {
    tasks: TaskTracker,
    over: CancellationToken,
}

impl Background {
    /// Runs until it is done, whether or not anybody waits for it by the handle; it sees to it itself that it ends with
    /// [`Background::over`].
    pub(crate) fn spawn<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        self.tasks.spawn(work)
    }

    pub(crate) fn over(&self) -> CancellationToken {
        self.over.clone()
    }

    /// Ends it all, and waits for that.
    pub(crate) async fn end(&self) {
        self.over.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// Sandboxes that are over, while the engine still has what is left of them.
#[derive(Clone, Default)]
pub(crate) struct Retiring(Arc<Mutex<HashSet<String>>>);

impl Retiring {
    /// Until what it gives is dropped.
    pub(crate) fn enter(&self, id: &str) -> impl Drop + Send + 'static {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned());
        Leaving { retiring: self.clone(), id: id.to_owned() }
    }

    pub(crate) fn ids(&self) -> HashSet<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

struct Leaving {
    retiring: Retiring,
    id: String,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        self.retiring.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}
