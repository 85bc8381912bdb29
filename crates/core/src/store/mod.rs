//! The object store of a manager: where sandboxes stage files from and publish them to.
//!
//! All data passes through the host, piece by piece. The store's address and credentials never enter a sandbox. A store
//! connects on first use and is shared by all sandboxes of its manager. It must never expose a partial object under a
//! key, nor leave one behind after a failure.

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
use fault::{Faults, TIMEOUT};
use key::ObjectKey;

pub use options::{NatsOptions, S3Options, Secret, StoreKind, StoreOptions};
pub use transfer::{Published, StageRequest, Staged};

/// A SHA-256.
type Digest = [u8; 32];

/// One kind of store.
#[async_trait]
trait Bucket: Send + Sync {
    /// Starts to read an object.
    async fn download(&self, key: &ObjectKey) -> Result<Download>;

    /// Starts to write an object. It is invisible until it is finished.
    async fn upload(&self, key: &ObjectKey) -> Result<Box<dyn Upload>>;
}

/// An object being read.
struct Download {
    /// The size that the store announced.
    size: u64,
    /// The digest, if the store has one.
    digest: Option<Digest>,
    pieces: BoxStream<'static, Result<Bytes>>,
}

/// An object being written.
#[async_trait]
trait Upload: Send {
    /// Adds content, as fast as the store accepts it.
    async fn write(&mut self, bytes: Bytes) -> Result<()>;

    /// Makes the whole object visible under its key.
    async fn finish(&mut self, size: u64, digest: Digest) -> Result<()>;

    /// Removes everything written so far.
    async fn abandon(&mut self);
}

/// The store of a manager. Connects on first use.
pub(crate) struct Store {
    options: StoreOptions,
    bucket: Mutex<Option<Arc<dyn Bucket>>>,
    /// Transfers and clean-up tasks.
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

    /// Tasks that the store waits for before it closes.
    fn busy(&self) -> TaskTrackerToken {
        self.tasks.token()
    }

    /// Runs a transfer; fails if the store is closed meanwhile.
    async fn unless_closed<T>(&self, transfer: impl Future<Output = Result<T>>) -> Result<T> {
        let _busy = self.busy();
        tokio::select! {
            outcome = transfer => outcome,
            () = self.over.cancelled() => Err(closed()),
        }
    }

    /// Ends all transfers, lets them clean up, and closes the connection.
    pub(crate) async fn close(&self) {
        self.over.cancel();
        self.tasks.close();
        // Clean-up tasks have their own timeout; this one is a safety net.
        let _ = tokio::time::timeout(2 * TIMEOUT, self.tasks.wait()).await;
        self.bucket.lock().await.take();
    }
}

fn closed() -> Error {
    Error::new(ErrorCode::SandboxClosed, "the manager was closed, and its object store with it")
}

/// An upload that cleans up after itself if it is dropped before its end.
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

    /// Runs to its end even if the caller goes away: the object must be complete or absent.
    async fn finish(mut self, size: u64, digest: Digest) -> Result<()> {
        let Some(mut upload) = self.upload.take() else { return Ok(()) };
        let finishing = self.tasks.spawn(async move {
            let finished = upload.finish(size, digest).await;
            if finished.is_err() {
                let _ = tokio::time::timeout(TIMEOUT, upload.abandon()).await;
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
        // Outside a runtime, nothing can be sent to a store.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let cleaning = async move {
                let _ = tokio::time::timeout(TIMEOUT, upload.abandon()).await;
            };
            self.tasks.spawn_on(cleaning, &runtime);
        }
    }
}
