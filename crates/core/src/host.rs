//! This program's side of all its sandboxes: where they run, our identity towards them, event listeners, background work.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, OnceLock};

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::backend::{Backend, BoxRecord, Resolver, Workspace};
use crate::events::Events;
use crate::file_policy::FilePolicy;
use crate::id::random_u128;
use crate::lock::lock;
use crate::store::{Store, StoreOptions};
use crate::{Error, ErrorCode, Result};

/// Shared by a manager, its pool and its sandboxes.
pub(crate) struct Host {
    resolver: Resolver,
    admission: OnceLock<Semaphore>,
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
    pub(crate) fn new(resolver: Resolver, files: Arc<FilePolicy>, store: Option<StoreOptions>) -> Arc<Host> {
        let (events, background) = (Events::default(), Background::default());
        Arc::new(Host {
            resolver,
            admission: OnceLock::new(),
            events,
            client: random_u128(),
            background,
            retiring: Retiring::default(),
            files,
            store: store.map(Store::new),
        })
    }

    /// Where its sandboxes run; decided on first use.
    pub(crate) async fn backend(&self) -> Result<&Arc<dyn Backend>> {
        self.resolver.backend().await
    }

    /// Waits for a turn to create a box, first come, first served. More at once than the backend can serve would all be ready late,
    /// instead of one after the other.
    pub(crate) async fn admit(&self) -> Result<SemaphorePermit<'_>> {
        let backend = self.backend().await?;
        let admission = self.admission.get_or_init(|| Semaphore::new(backend.parallel_creates().max(1)));
        admission.acquire().await.map_err(|error| Error::new(ErrorCode::Internal, error.to_string()))
    }

    /// The image that a shortcut or any other name stands for.
    pub(crate) async fn resolve_image(&self, name: &str) -> Result<String> {
        match self.backend().await?.images() {
            Some(images) => images.resolve(name).await,
            None => crate::resolve_image(name),
        }
    }

    /// All boxes, and the stopped sandboxes of which only a persistent workspace is left.
    pub(crate) async fn records(&self) -> Result<Vec<BoxRecord>> {
        let backend = self.backend().await?;
        let mut records = backend.list().await?;
        if let Some(workspaces) = backend.workspaces() {
            let running: HashSet<String> = records.iter().map(|record| record.id.clone()).collect();
            let stopped = workspaces.list().await?.into_iter().map(Workspace::stopped);
            records.extend(stopped.filter(|record| !running.contains(&record.id)));
        }
        Ok(records)
    }
}

/// Work that continues when its caller is gone, until the manager is closed.
#[derive(Default)]
pub(crate) struct Background {
    tasks: TaskTracker,
    over: CancellationToken,
}

impl Background {
    /// Runs to completion, whether or not the handle is awaited. Long work must watch [`Background::over`].
    pub(crate) fn spawn<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        self.tasks.spawn(work)
    }

    pub(crate) fn over(&self) -> CancellationToken {
        self.over.clone()
    }

    /// Tells all work to end, and waits for it.
    pub(crate) async fn end(&self) {
        self.over.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// Sandboxes that have ended while the backend still removes them.
#[derive(Clone, Default)]
pub(crate) struct Retiring(Arc<Mutex<HashSet<String>>>);

impl Retiring {
    /// Until the returned guard is dropped.
    pub(crate) fn enter(&self, id: &str) -> impl Drop + Send + 'static {
        lock(&self.0).insert(id.to_owned());
        Leaving { retiring: self.clone(), id: id.to_owned() }
    }

    pub(crate) fn ids(&self) -> HashSet<String> {
        lock(&self.0).clone()
    }
}

struct Leaving {
    retiring: Retiring,
    id: String,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        lock(&self.retiring.0).remove(&self.id);
    }
}
