//! Reads an object in small batches of chunks. Only one batch is in memory.

use std::sync::Arc;
use std::time::Duration;

use async_nats::connection::State;
use async_nats::jetstream::consumer::{AckPolicy, Consumer, pull};
use async_nats::jetstream::object_store::ObjectInfo;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;

use super::super::key::ObjectKey;
use super::connection::{Connection, Session};
use super::{CHUNK, WINDOW, chunk_subject, stream_name};
use crate::Result;

/// After this time the server drops a reader that is gone. Long enough for a sandbox that writes slowly.
const READER_TIMEOUT: Duration = Duration::from_secs(300);

/// An object being read.
struct Reader {
    connection: Arc<Connection>,
    session: Session,
    key: ObjectKey,
    doing: String,
    info: ObjectInfo,
    consumer: Option<Consumer<pull::Config>>,
    batch: Option<pull::Batch>,
    /// Whether the current batch has delivered anything.
    delivered: bool,
    left: usize,
}

/// The content of an object, chunk by chunk.
pub(super) fn read_chunks(
    connection: Arc<Connection>,
    session: Session,
    key: ObjectKey,
    info: ObjectInfo,
) -> BoxStream<'static, Result<Bytes>> {
    let doing = format!("reading {:?}", key.as_str());
    let left = info.size;
    let reader = Reader { connection, session, key, doing, info, consumer: None, batch: None, delivered: true, left };
    futures_util::stream::unfold(Some(reader), |reader| async move {
        let mut reader = reader?;
        match reader.next().await {
            Ok(Some(chunk)) => Some((Ok(chunk), Some(reader))),
            Ok(None) => None,
            Err(error) => Some((Err(error), None)),
        }
    })
    .boxed()
}

impl Reader {
    async fn next(&mut self) -> Result<Option<Bytes>> {
        while self.left > 0 {
            if self.batch.is_none() {
                self.ask().await?;
            }
            let Some(batch) = &mut self.batch else { continue };
            let (connection, doing) = (&self.connection, &self.doing);
            let next =
                async { batch.next().await.transpose().map_err(|error| connection.faults().unreachable(doing, error)) };
            let Some(message) = connection.faults().with_timeout(doing, next).await? else {
                self.batch = None;
                if self.session.client.connection_state() != State::Connected {
                    return Err(self.connection.faults().unreachable(&self.doing, "the connection broke"));
                }
                if !self.delivered {
                    return Err(self.connection.faults().damaged(&self.key, "a part of it is missing"));
                }
                continue;
            };
            self.delivered = true;
            let chunk = message.message.payload;
            if chunk.len() > self.left {
                return Err(self.connection.faults().damaged(&self.key, "it is longer than the store says"));
            }
            self.left -= chunk.len();
            return Ok(Some(chunk));
        }
        self.leave().await;
        Ok(None)
    }

    /// Requests the next few chunks: all of them exist already, or never will.
    async fn ask(&mut self) -> Result<()> {
        let (connection, doing) = (Arc::clone(&self.connection), self.doing.clone());
        let chunk_size = self.info.options.as_ref().and_then(|options| options.max_chunk_size).unwrap_or(CHUNK);
        let asking = async {
            if self.consumer.is_none() {
                self.consumer = Some(self.consume().await?);
            }
            let Some(consumer) = &self.consumer else { return Ok(()) };
            let batch = consumer.fetch().max_messages((WINDOW / chunk_size.max(1)).clamp(1, 256)).messages().await;
            self.batch = Some(batch.map_err(|error| connection.explain(&doing, &error))?);
            self.delivered = false;
            Ok(())
        };
        connection.faults().with_timeout(&doing, asking).await
    }

    async fn consume(&self) -> Result<Consumer<pull::Config>> {
        let stream = self.session.context.get_stream_no_info(stream_name(&self.info.bucket)).await;
        let stream = stream.map_err(|error| self.connection.explain(&self.doing, &error))?;
        let config = pull::Config {
            filter_subject: chunk_subject(&self.info.bucket, &self.info.nuid),
            ack_policy: AckPolicy::None,
            inactive_threshold: READER_TIMEOUT,
            memory_storage: true,
            num_replicas: 1,
            ..pull::Config::default()
        };
        stream.create_consumer(config).await.map_err(|error| self.connection.explain(&self.doing, &error))
    }

    /// Removes the consumer now instead of after its timeout.
    async fn leave(&mut self) {
        if let Some(consumer) = self.consumer.take() {
            let name = &consumer.cached_info().name;
            let stream = stream_name(&self.info.bucket);
            let leaving = self.session.context.delete_consumer_from_stream(name, stream);
            let _ = tokio::time::timeout(Duration::from_secs(1), leaving).await;
        }
    }
}
