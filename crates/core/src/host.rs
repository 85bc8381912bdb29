//! This program's side of all its sandboxes: where they run, who we are to them, who listens, and what goes on beside.

use std::sync::Arc;

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
    /// What callers may do with files, in all sandboxes.
    pub(crate) files: Arc<FilePolicy>,
    /// What files are staged from and published to.
    pub(crate) store: Option<Store>,
}

impl Host {
    pub(crate) fn new(backend: Arc<dyn Backend>, files: Arc<FilePolicy>, store: Option<StoreOptions>) -> Arc<Host> {
        let (events, background) = (Events::default(), Background::default());
        Arc::new(Host { backend, events, client: random_u128(), background, files, store: store.map(Store::new) })
    }
}

/// Work that nobody waits for until the manager is closed.
#[derive(Default)]
pub(crate) struct Background {
    tasks: TaskTracker,
    over: CancellationToken,
}

impl Background {
    /// Runs until it is done; it sees to it itself that it ends with [`Background::over`].
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(work);
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
