//! Writes an object: first its chunks, then its metadata. Only a window of unconfirmed chunks is in memory.

use std::collections::HashMap;
use std::sync::Arc;

use async_nats::jetstream::context::PublishError;
use async_nats::jetstream::object_store::{InfoErrorKind, ObjectInfo, ObjectOptions};
use async_nats::jetstream::publish::PublishAck;
use async_nats::{HeaderMap, header::NATS_ROLLUP};
use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesOrdered;

use super::super::fault::TIMEOUT;
use super::super::key::ObjectKey;
use super::super::{Digest, Upload};
use super::connection::{Connection, Session};
use super::{CHUNK, WINDOW, chunk_subject, format_digest, meta_subject, stream_name};
use crate::id::random_id;
use crate::{Error, ErrorCode, Result};

type Ack = BoxFuture<'static, std::result::Result<PublishAck, PublishError>>;

/// A new version of an object: its subjects and its metadata.
struct Draft {
    connection: Arc<Connection>,
    session: Session,
    doing: String,
    info: ObjectInfo,
}

impl Draft {
    fn subject(&self) -> String {
        chunk_subject(&self.info.bucket, &self.info.nuid)
    }

    async fn send(&self, chunk: Bytes) -> Result<Ack> {
        let (connection, doing) = (&self.connection, &self.doing);
        let sending = async {
            let sent = self.session.context.publish(self.subject(), chunk).await;
            sent.map_err(|error| connection.explain(doing, &error))
        };
        connection.faults().with_timeout(doing, sending).await.map(IntoFuture::into_future)
    }

    /// The number of chunks on the server: after a reconnect, a chunk may have been sent twice or not at all.
    async fn count_stored(&self) -> Result<usize> {
        let (connection, doing) = (&self.connection, &self.doing);
        let counting = async {
            let stream = self.session.context.get_stream_no_info(stream_name(&self.info.bucket)).await;
            let stream = stream.map_err(|error| connection.explain(doing, &error))?;
            let subjects = stream.info_with_subjects(self.subject()).await;
            let mut subjects = subjects.map_err(|error| connection.explain(doing, &error))?;
            match subjects.next().await {
                Some(Ok((_, count))) => Ok(count),
                Some(Err(error)) => Err(connection.explain(doing, &error)),
                None => Ok(0),
            }
        };
        connection.faults().with_timeout(doing, counting).await
    }

    /// The current object of the key.
    async fn current(&self) -> Result<Option<ObjectInfo>> {
        let (connection, doing) = (&self.connection, &self.doing);
        let looking = async {
            match self.session.bucket.info(&self.info.name).await {
                Ok(info) => Ok(Some(info)),
                Err(error) if error.kind() == InfoErrorKind::NotFound => Ok(None),
                Err(error) => Err(connection.explain(doing, &error)),
            }
        };
        connection.faults().with_timeout(doing, looking).await
    }

    async fn announce(&self) -> Result<()> {
        let (connection, doing) = (&self.connection, &self.doing);
        let broken = |error: serde_json::Error| Error::new(ErrorCode::Internal, error.to_string());
        let info = serde_json::to_vec(&self.info).map_err(broken)?;
        let mut headers = HeaderMap::new();
        headers.insert(NATS_ROLLUP, "sub");
        let announcing = async {
            let context = &self.session.context;
            let sent = context.publish_with_headers(meta_subject(&self.info), headers, info.into()).await;
            let sent = sent.map_err(|error| connection.explain(doing, &error))?;
            sent.await.map_err(|error| connection.explain(doing, &error))
        };
        connection.faults().with_timeout(doing, announcing).await.map(drop)
    }

    fn is_other(&self, current: &Option<ObjectInfo>) -> bool {
        current.as_ref().is_none_or(|current| current.nuid != self.info.nuid)
    }

    fn disturbed(&self, what: &str) -> Error {
        let message = format!("{}: {what}; publish it again", self.doing);
        self.connection.faults().error(ErrorCode::Protocol, message)
    }
}

/// An object being written: first its chunks, then its metadata, which makes it visible.
pub(super) struct ChunkUpload {
    draft: Draft,
    chunk_size: usize,
    buffer: BytesMut,
    acks: FuturesOrdered<Ack>,
    last_sequence: u64,
    /// Whether it may be visible already.
    announced: bool,
}

impl ChunkUpload {
    pub(super) async fn new(connection: Arc<Connection>, key: ObjectKey) -> Result<ChunkUpload> {
        let session = connection.session().await?;
        let chunk_size = CHUNK.min(session.client.max_payload()).max(1);
        let info = ObjectInfo {
            name: key.as_str().to_owned(),
            description: None,
            metadata: HashMap::new(),
            headers: None,
            options: Some(ObjectOptions { link: None, max_chunk_size: Some(chunk_size) }),
            bucket: connection.bucket_name().to_owned(),
            nuid: random_id(""),
            size: 0,
            chunks: 0,
            modified: None,
            digest: None,
            deleted: false,
        };
        let doing = format!("writing {:?}", key.as_str());
        Ok(ChunkUpload {
            draft: Draft { connection, session, doing, info },
            chunk_size,
            buffer: BytesMut::new(),
            acks: FuturesOrdered::new(),
            last_sequence: 0,
            announced: false,
        })
    }

    async fn send(&mut self, chunk: Bytes) -> Result<()> {
        while self.acks.len() >= (WINDOW / self.chunk_size).max(1) {
            self.confirm().await?;
        }
        self.draft.info.chunks += 1;
        self.draft.info.size += chunk.len();
        self.acks.push_back(self.draft.send(chunk).await?);
        Ok(())
    }

    /// Waits until the oldest chunk is stored. Chunks must be stored in the order they were sent.
    async fn confirm(&mut self) -> Result<()> {
        let Some(ack) = self.acks.next().await else { return Ok(()) };
        let ack = ack.map_err(|error| self.draft.connection.explain(&self.draft.doing, &error))?;
        if ack.duplicate || ack.sequence <= self.last_sequence {
            return Err(self.draft.disturbed("its chunks were stored out of order"));
        }
        self.last_sequence = ack.sequence;
        Ok(())
    }
}

#[async_trait]
impl Upload for ChunkUpload {
    async fn write(&mut self, bytes: Bytes) -> Result<()> {
        self.buffer.extend_from_slice(&bytes);
        while self.buffer.len() >= self.chunk_size {
            let chunk = self.buffer.split_to(self.chunk_size).freeze();
            self.send(chunk).await?;
        }
        Ok(())
    }

    async fn finish(&mut self, size: u64, digest: Digest) -> Result<()> {
        let rest = self.buffer.split().freeze();
        if !rest.is_empty() {
            self.send(rest).await?;
        }
        while !self.acks.is_empty() {
            self.confirm().await?;
        }
        let draft = &mut self.draft;
        if draft.info.size as u64 != size || draft.count_stored().await? != draft.info.chunks {
            return Err(draft.disturbed("not all of its chunks were stored"));
        }
        draft.info.digest = Some(format_digest(digest));
        draft.info.modified = Some(time::OffsetDateTime::now_utc());
        let replaced = draft.current().await?;
        self.announced = true;
        let announced = draft.announce().await;
        // Ask the store: metadata without a confirmation may have arrived.
        match draft.current().await {
            Ok(Some(stored)) if stored.nuid == draft.info.nuid => {
                if stored.digest != draft.info.digest || stored.size != draft.info.size {
                    return Err(draft.disturbed("the store holds another digest than was sent"));
                }
            }
            // If the metadata arrived, another writer has replaced it in the meantime.
            _ => announced?,
        }
        if let Some(replaced) = replaced.filter(|replaced| !replaced.nuid.is_empty() && !replaced.deleted) {
            // The new object is stored: failing to remove old chunks is not an error.
            let _ = draft.connection.purge(&draft.session, &replaced.nuid).await;
        }
        Ok(())
    }

    async fn abandon(&mut self) {
        let draft = &self.draft;
        if draft.info.chunks == 0 {
            return;
        }
        // Keep the chunks of an object that may be visible: orphaned chunks are better than a broken object.
        if self.announced && !matches!(draft.current().await, Ok(current) if draft.is_other(&current)) {
            return;
        }
        // If the removal does not finish, the next connection does it.
        draft.connection.remember_orphan(&draft.info.nuid);
        // Chunks in flight would arrive after the removal.
        let landed = async { while self.acks.next().await.is_some() {} };
        let _ = tokio::time::timeout(TIMEOUT / 2, landed).await;
        if let Ok(session) = draft.connection.session().await {
            let _ = draft.connection.purge(&session, &draft.info.nuid).await;
        }
    }
}
