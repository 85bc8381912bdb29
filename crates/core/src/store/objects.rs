//! S3, folders and memory, through the `object_store` crate.

use std::error::Error as StdError;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use object_store::aws::{AmazonS3Builder, Checksum};
use object_store::client::{HttpError, HttpErrorKind};
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    BackoffConfig, MultipartUpload, ObjectStore, ObjectStoreExt, PutPayloadMut, RetryConfig, WriteMultipart,
};
use tokio::task::JoinHandle;

use super::fault::Faults;
use super::http::Wire;
use super::key::ObjectKey;
use super::options::{S3Options, StoreKind};
use super::{Bucket, Digest, Download, Upload};
use crate::{Error, ErrorCode, Result};

/// Larger objects are sent in parts of this size; S3 accepts 10 000 parts, each of at least 5 MiB.
const PART: usize = 8 << 20;

/// Parts in flight. They and the part being filled are all the memory of an upload.
const PARTS_AT_ONCE: usize = 2;

/// Time limit per request: enough for a part on a slow line.
const PART_TIMEOUT: Duration = Duration::from_secs(90);

/// A store of the `object_store` crate.
pub(super) struct Objects {
    store: Arc<dyn ObjectStore>,
    faults: Faults,
}

impl Objects {
    pub(super) fn new(kind: &StoreKind, faults: Faults) -> Result<Objects> {
        let store: Arc<dyn ObjectStore> = match kind {
            StoreKind::S3(options) => {
                let unusable =
                    |error| faults.error(ErrorCode::InvalidArgument, format!("store is not usable: {error}"));
                Arc::new(s3(options).build().map_err(unusable)?)
            }
            StoreKind::Folder(path) => {
                let unusable = |error| {
                    let message = format!("the folder {path:?} of the store cannot be used; make it first: {error}");
                    faults.error(ErrorCode::FileNotFound, message).with("path", path.as_str())
                };
                Arc::new(LocalFileSystem::new_with_prefix(path).map_err(unusable)?)
            }
            StoreKind::Memory | StoreKind::Nats(_) => Arc::new(InMemory::new()),
        };
        Ok(Objects { store, faults })
    }

    fn path(&self, key: &ObjectKey) -> Result<Path> {
        // Not encoded: other clients must find it under the same name.
        let refused = |error| {
            let message = format!("{:?} cannot be a key of {}: {error}", key.as_str(), self.faults.name());
            self.faults.error(ErrorCode::InvalidArgument, message).with("key", key.given())
        };
        Path::parse(key.as_str()).map_err(refused)
    }
}

fn s3(options: &S3Options) -> AmazonS3Builder {
    let is_plain = options.endpoint.as_deref().is_some_and(|endpoint| endpoint.starts_with("http://"));
    let backoff = BackoffConfig { max_backoff: Duration::from_secs(1), ..BackoffConfig::default() };
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(&options.bucket)
        .with_region(&options.region)
        .with_access_key_id(options.access_key_id.reveal())
        .with_secret_access_key(options.secret_access_key.reveal())
        .with_checksum_algorithm(Checksum::SHA256)
        .with_allow_http(is_plain)
        .with_http_connector(if is_plain { Wire::Plain } else { Wire::Tls })
        // A little less than our own timeout, so the last error is still reported.
        .with_retry(RetryConfig { backoff, max_retries: 20, retry_timeout: Duration::from_secs(8) });
    if let Some(endpoint) = &options.endpoint {
        builder = builder.with_endpoint(endpoint);
    }
    if let Some(token) = &options.session_token {
        builder = builder.with_token(token.reveal());
    }
    builder
}

#[async_trait]
impl Bucket for Objects {
    async fn download(&self, key: &ObjectKey) -> Result<Download> {
        let path = self.path(key)?;
        let doing = format!("reading {:?}", key.as_str());
        let explain = |error| explain(&self.faults, &doing, key, &error);
        let found = self.faults.with_timeout(&doing, async { self.store.get(&path).await.map_err(explain) }).await?;
        let size = found.meta.size;
        let (faults, key) = (self.faults.clone(), key.clone());
        let source = (found.into_stream(), faults, key, doing.clone());
        let pieces = futures_util::stream::unfold(Some(source), |source| async move {
            let (mut pieces, faults, key, doing) = source?;
            let next = async {
                pieces.next().await.transpose().map_err(|error| explain_broken(&faults, &doing, &key, &error))
            };
            match faults.with_timeout(&doing, next).await {
                Ok(piece) => piece.map(|piece| (Ok(piece), Some((pieces, faults, key, doing)))),
                Err(error) => Some((Err(error), None)),
            }
        });
        Ok(Download { size, digest: None, pieces: pieces.boxed() })
    }

    async fn upload(&self, key: &ObjectKey) -> Result<Box<dyn Upload>> {
        let path = self.path(key)?;
        let (store, faults) = (Arc::clone(&self.store), self.faults.clone());
        let doing = format!("writing {:?}", key.as_str());
        Ok(Box::new(ObjectUpload {
            store,
            faults,
            key: key.clone(),
            path,
            doing,
            stage: Stage::Small(PutPayloadMut::new()),
        }))
    }
}

type Starting = JoinHandle<object_store::Result<Box<dyn MultipartUpload>>>;

/// The stage of an upload.
enum Stage {
    /// Small enough so far to send in one request.
    Small(PutPayloadMut),
    /// A multipart upload is being created. In its own task: if it were cancelled midway, nobody could abort the upload.
    Starting(PutPayloadMut, Starting),
    Parts(WriteMultipart),
    Over,
}

struct ObjectUpload {
    store: Arc<dyn ObjectStore>,
    faults: Faults,
    key: ObjectKey,
    path: Path,
    doing: String,
    stage: Stage,
}

impl ObjectUpload {
    /// Creates a multipart upload once there is more than one part.
    async fn begin_parts(&mut self) -> Result<()> {
        if let Stage::Small(payload) = &mut self.stage
            && payload.content_length() >= PART
        {
            let (store, path) = (Arc::clone(&self.store), self.path.clone());
            let starting = tokio::spawn(async move { store.put_multipart(&path).await });
            self.stage = Stage::Starting(std::mem::take(payload), starting);
        }
        let Stage::Starting(payload, starting) = &mut self.stage else { return Ok(()) };
        let begun = async {
            let begun = starting.await.map_err(|error| Error::new(ErrorCode::Internal, error.to_string()))?;
            begun.map_err(|error| explain(&self.faults, &self.doing, &self.key, &error))
        };
        let mut parts = WriteMultipart::new_with_chunk_size(self.faults.with_timeout(&self.doing, begun).await?, PART);
        for piece in std::mem::take(payload).freeze() {
            parts.put(piece);
        }
        self.stage = Stage::Parts(parts);
        Ok(())
    }
}

#[async_trait]
impl Upload for ObjectUpload {
    async fn write(&mut self, bytes: Bytes) -> Result<()> {
        if let Stage::Small(payload) = &mut self.stage {
            payload.push(bytes);
            return self.begin_parts().await;
        }
        self.begin_parts().await?;
        if let Stage::Parts(parts) = &mut self.stage {
            let room = async {
                let room = parts.wait_for_capacity(PARTS_AT_ONCE).await;
                room.map_err(|error| explain(&self.faults, &self.doing, &self.key, &error))
            };
            self.faults.within(PART_TIMEOUT, &self.doing, room).await?;
            parts.put(bytes);
        }
        Ok(())
    }

    async fn finish(&mut self, _: u64, _: Digest) -> Result<()> {
        // Every request has its own timeout; one around them all would prevent the clean-up of a failure.
        let stored = match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Small(payload) => self.store.put(&self.path, payload.freeze()).await,
            // On failure it aborts the upload itself.
            Stage::Parts(parts) => parts.finish().await,
            Stage::Starting(..) | Stage::Over => return Ok(()),
        };
        stored.map(drop).map_err(|error| explain(&self.faults, &self.doing, &self.key, &error))
    }

    async fn abandon(&mut self) {
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Small(_) | Stage::Over => {}
            Stage::Starting(_, starting) => {
                if let Ok(Ok(mut upload)) = starting.await {
                    let _ = upload.abort().await;
                }
            }
            Stage::Parts(parts) => {
                let _ = parts.abort().await;
            }
        }
    }
}

/// The error for an object that was found but could not be read to its end.
fn explain_broken(faults: &Faults, doing: &str, key: &ObjectKey, error: &object_store::Error) -> Error {
    match error {
        object_store::Error::NotFound { .. } | object_store::Error::Precondition { .. } => {
            faults.damaged(key, "it was replaced or removed while it was read")
        }
        error => explain(faults, doing, key, error),
    }
}

fn explain(faults: &Faults, doing: &str, key: &ObjectKey, error: &object_store::Error) -> Error {
    use object_store::Error as Cause;
    let text = error.to_string();
    let error = match error {
        Cause::NotFound { .. } if text.contains("NoSuchBucket") => {
            faults.error(ErrorCode::FileNotFound, format!("{doing}: the bucket does not exist in {}", faults.name()))
        }
        Cause::NotFound { .. } => faults.missing(key),
        Cause::PermissionDenied { .. } | Cause::Unauthenticated { .. } => faults.refused(doing, &text),
        error => match cause(error) {
            Some(FoundCause::Unreachable) => faults.unreachable(doing, &text),
            Some(FoundCause::Io(ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)) => {
                faults.full(doing, &text)
            }
            Some(FoundCause::Io(ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem)) => {
                faults.refused(doing, &text)
            }
            Some(FoundCause::Io(ErrorKind::IsADirectory)) => faults.error(ErrorCode::IsADirectory, &text),
            Some(FoundCause::Io(ErrorKind::NotADirectory)) => faults.error(ErrorCode::NotADirectory, &text),
            Some(FoundCause::Io(ErrorKind::InvalidFilename)) => faults.error(ErrorCode::InvalidArgument, &text),
            _ if FULL.iter().any(|word| text.contains(word)) => faults.full(doing, &text),
            _ if text.contains("Filenames containing trailing '/#") => faults.error(ErrorCode::InvalidArgument, &text),
            _ => faults.error(ErrorCode::Protocol, format!("{doing}: {} answered: {text}", faults.name())),
        },
    };
    error.with("key", key.given())
}

/// How S3 and compatible stores report that they are full.
const FULL: &[&str] = &["QuotaExceeded", "EntityTooLarge", "StorageFull", "507 Insufficient Storage"];

enum FoundCause {
    Unreachable,
    Io(ErrorKind),
}

fn cause(error: &(dyn StdError + 'static)) -> Option<FoundCause> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(http) = error.downcast_ref::<HttpError>() {
            return (http.kind() != HttpErrorKind::Decode).then_some(FoundCause::Unreachable);
        }
        if let Some(io) = error.downcast_ref::<std::io::Error>() {
            return Some(FoundCause::Io(io.kind()));
        }
        cause = error.source();
    }
    None
}
