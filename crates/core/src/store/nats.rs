//! Object stores of NATS JetStream.
//!
//! The `async-nats` crate connects, finds buckets and objects, and carries the messages. Chunks are written and read here,
//! in the layout that all NATS clients share (`$O.<bucket>.C.<nuid>` for chunks, `$O.<bucket>.M.<name>` for metadata),
//! because the crate's own `put` does not reveal the nuid of the chunks that it leaves behind when it fails, and its reader
//! panics when the server disconnects at the start.

mod connection;
mod reader;
mod writer;

use std::sync::Arc;

use async_nats::jetstream::object_store::{GetErrorKind, ObjectInfo};
use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE;

use super::fault::Faults;
use super::key::ObjectKey;
use super::options::NatsOptions;
use super::{Bucket, Digest, Download, Upload};
use crate::Result;
use connection::Connection;
use reader::read_chunks;
use writer::ChunkUpload;

/// The default chunk size of all clients.
const CHUNK: usize = 128 * 1024;

/// The most bytes in flight, in either direction.
const WINDOW: usize = 4 << 20;

/// A NATS bucket. Connects on first use, and reconnects when the connection was lost.
pub(super) struct NatsBucket {
    connection: Arc<Connection>,
}

impl NatsBucket {
    pub(super) fn new(options: NatsOptions, faults: Faults) -> Result<NatsBucket> {
        Ok(NatsBucket { connection: Arc::new(Connection::new(options, faults)?) })
    }
}

#[async_trait]
impl Bucket for NatsBucket {
    async fn download(&self, key: &ObjectKey) -> Result<Download> {
        let session = self.connection.session().await?;
        let faults = self.connection.faults();
        let doing = format!("reading {:?}", key.as_str());
        // Follows links.
        let found = faults.with_timeout(&doing, async {
            session.bucket.get(key.as_str()).await.map_err(|error| match error.kind() {
                GetErrorKind::NotFound => faults.missing(key),
                _ => self.connection.explain(&doing, &error),
            })
        });
        let info = found.await?.info.clone();
        let digest = info.digest.as_deref().map(|text| parse_digest(text).ok_or(text)).transpose();
        let digest = digest.map_err(|text| faults.damaged(key, format!("its digest reads {text:?}")))?;
        let pieces = read_chunks(Arc::clone(&self.connection), session, key.clone(), info.clone());
        Ok(Download { size: info.size as u64, digest, pieces })
    }

    async fn upload(&self, key: &ObjectKey) -> Result<Box<dyn Upload>> {
        Ok(Box::new(ChunkUpload::new(Arc::clone(&self.connection), key.clone()).await?))
    }
}

/// `SHA-256=<base64>`, as all clients write it; with or without padding.
fn parse_digest(text: &str) -> Option<Digest> {
    let base64 = text.strip_prefix("SHA-256=")?.trim_end_matches('=');
    URL_SAFE.decode(format!("{base64}=")).ok()?.try_into().ok()
}

fn format_digest(digest: Digest) -> String {
    format!("SHA-256={}", URL_SAFE.encode(digest))
}

/// The subject of the chunks of one version of an object.
fn chunk_subject(bucket: &str, nuid: &str) -> String {
    format!("$O.{bucket}.C.{nuid}")
}

fn meta_subject(info: &ObjectInfo) -> String {
    format!("$O.{}.M.{}", info.bucket, URL_SAFE.encode(&info.name))
}

/// The stream behind the bucket.
fn stream_name(bucket: &str) -> String {
    format!("OBJ_{bucket}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_read_as_every_client_writes_them() {
        let digest: Digest = std::array::from_fn(|index| 255 - index as u8);
        let written = format_digest(digest);
        assert_eq!(parse_digest(&written), Some(digest));
        assert_eq!(parse_digest(written.trim_end_matches('=')), Some(digest));
        for bad in ["", "MD5=abc", "SHA-256=", "SHA-256=!!", "SHA-256=AAAA"] {
            assert_eq!(parse_digest(bad), None, "{bad}");
        }
    }
}
