//! The object store of a manager: where sandboxes stage files from and publish them to.
//!
//! Everything passes through the host, piece by piece, and nothing of the store (its address, its credentials) ever enters
//! a sandbox. A store is reached on first use and shared by all sandboxes of its manager. It must never show a half object
//! under a key, and never keep one after a failure.

mod fault;
mod http;
mod key;
mod nats;
mod objects;
mod options;
mod transfer;

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::{Error, ErrorCode, Result};
use fault::{Faults, PATIENCE};
use key::ObjectKey;

pub use options::{NatsOptions, S3Options, Secret, StoreKind, StoreOptions};
pub use transfer::{Published, StageRequest, Staged};

/// A SHA-256.
type Digest = [u8; 32];

/// One kind of store.
#[async_trait]
trait Bucket: Send + Sync {
    /// Begins to read an object.
    async fn download(&self, key: &ObjectKey) -> Result<Download>;

    /// Begins to write one. Nothing is to be seen of it before it is finished.
    async fn upload(&self, key: &ObjectKey) -> Result<Box<dyn Upload>>;
}

/// An object that is being read.
struct Download {
    /// As the store announced it.
    size: u64,
    /// Where the store keeps one.
    digest: Option<Digest>,
    pieces: BoxStream<'static, Result<Bytes>>,
}

/// An object that is being written.
#[async_trait]
trait Upload: Send {
    /// Adds to it, as fast as the store takes it.
    async fn write(&mut self, bytes: Bytes) -> Result<()>;

    /// Makes it appear under its key, whole.
    async fn finish(&mut self, size: u64, digest: Digest) -> Result<()>;

    /// Removes what there is of it.
    async fn abandon(&mut self);
}

/// The store of a manager. Connects on first use.
pub(crate) struct Store {
    options: StoreOptions,
    bucket: Mutex<Option<Arc<dyn Bucket>>>,
    /// Transfers, and what cleans up after them.
    tasks: TaskTracker,
    over: CancellationToken,
}

impl Store {
    pub(crate) fn new(options: StoreOptions) -> Store {
        let (tasks, over) = (TaskTracker::new(), CancellationToken::new());
        Store { options, bucket: Mutex::new(None), tasks, over }
    }

    fn key(&self, key: &str) -> Result<ObjectKey> {
        ObjectKey::new(&self.options.prefix, key)
    }

    async fn bucket(&self) -> Result<Arc<dyn Bucket>> {
        let mut bucket = self.bucket.lock().await;
        if self.over.is_cancelled() {
            return Err(closed());
        }
        if let Some(bucket) = &*bucket {
            return Ok(Arc::clone(bucket));
        }
        let faults = Faults::new(&self.options);
        let made: Arc<dyn Bucket> = match &self.options.kind {
            StoreKind::Nats(options) => Arc::new(nats::NatsBucket::new(options.clone(), faults)?),
            kind => Arc::new(objects::Objects::new(kind, faults)?),
        };
        Ok(Arc::clone(bucket.insert(made)))
    }

    /// What the store waits for before it ends.
    fn busy(&self) -> TaskTrackerToken {
        self.tasks.token()
    }

    /// Runs a transfer unless the store is closed meanwhile.
    async fn unless_over<T>(&self, transfer: impl Future<Output = Result<T>>) -> Result<T> {
        let _busy = self.busy();
        tokio::select! {
            outcome = transfer => outcome,
            () = self.over.cancelled() => Err(closed()),
        }
    }

    /// Ends its transfers, lets them clean up, and ends the connection.
    pub(crate) async fn close(&self) {
        self.over.cancel();
        self.tasks.close();
        // What cleans up has its own bound; this one is for what we have not thought of.
        let _ = tokio::time::timeout(2 * PATIENCE, self.tasks.wait()).await;
        self.bucket.lock().await.take();
    }
}

fn closed() -> Error {
    Error::new(ErrorCode::SandboxClosed, "the manager was closed, and its object store with it")
}

/// An upload that cleans up after itself when it is dropped before its end, whatever the reason.
struct Unfinished {
    upload: Option<Box<dyn Upload>>,
    tasks: TaskTracker,
}

impl Unfinished {
    fn new(upload: Box<dyn Upload>, store: &Store) -> Unfinished {
        Unfinished { upload: Some(upload), tasks: store.tasks.clone() }
    }

    async fn write(&mut self, bytes: Bytes) -> Result<()> {
        match &mut self.upload {
            Some(upload) => upload.write(bytes).await,
            None => Ok(()),
        }
    }

    /// Goes on to its end even when nobody waits for it any more: between whole and nothing there must be no third.
    async fn finish(mut self, size: u64, digest: Digest) -> Result<()> {
        let Some(mut upload) = self.upload.take() else { return Ok(()) };
        let finishing = self.tasks.spawn(async move {
            let finished = upload.finish(size, digest).await;
            if finished.is_err() {
                let _ = tokio::time::timeout(PATIENCE, upload.abandon()).await;
            }
            finished
        });
        finishing
            .await
            .map_err(|error| Error::new(ErrorCode::Internal, format!("finishing an object crashed: {error}")))?
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let Some(mut upload) = self.upload.take() else { return };
        // Outside of a runtime nothing can be sent to a store any more.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let cleaning = async move {
                let _ = tokio::time::timeout(PATIENCE, upload.abandon()).await;
            };
            self.tasks.spawn_on(cleaning, &runtime);
        }
    }
}
