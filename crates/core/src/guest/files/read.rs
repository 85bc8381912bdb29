//! Reading a file, whole or piece by piece.

use std::sync::Arc;

use bytes::Bytes;
use cofferdam_protocol::{Reply, Request};

use crate::Result;
use crate::guest::Guest;
use crate::guest::channel::{Channel, unexpected};
use crate::guest::link::Event;

/// The most memory reserved up front for a file, by the size that the guest announces.
const MAX_RESERVE: u64 = 256 * 1024 * 1024;

/// Content read from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileContent {
    /// Starting at the offset.
    pub bytes: Vec<u8>,
    /// The file has more after them.
    pub truncated: bool,
    /// The whole file's size.
    pub size: u64,
}

impl Guest {
    /// Reads at most `limit` bytes, starting at `offset`.
    pub async fn read_file(&self, path: &str, offset: u64, limit: u64) -> Result<FileContent> {
        self.admit(path).await?;
        self.read_content(&Request::ReadFile { path: path.to_owned(), offset, limit }, offset, limit).await
    }

    pub(in crate::guest) async fn read_content(
        &self,
        request: &Request,
        offset: u64,
        limit: u64,
    ) -> Result<FileContent> {
        self.with_link(|link| async move {
            let mut channel = match link.request(request, 2)? {
                Ok(channel) => channel,
                Err(error) => return Ok(Err(error)),
            };
            let mut bytes = Vec::new();
            loop {
                match channel.next().await? {
                    // Only a hint, and from an untrusted guest: cap it.
                    Event::Reply(Reply::Opened { size }) => {
                        bytes.reserve_exact(size.saturating_sub(offset).min(limit).min(MAX_RESERVE) as usize);
                    }
                    Event::Data(data) if bytes.len() as u64 + data.len() as u64 <= limit => {
                        bytes.extend_from_slice(&data);
                    }
                    Event::Reply(Reply::Content { size, truncated }) => {
                        return Ok(Ok(FileContent { bytes, truncated, size }));
                    }
                    Event::Reply(Reply::Fault(fault)) => return Ok(Err(fault.into())),
                    _ => return Ok(Err(unexpected())),
                }
            }
        })
        .await
    }

    /// Starts to read a file piece by piece.
    pub async fn file_reader(self: &Arc<Self>, path: &str, offset: u64, limit: u64) -> Result<FileReader> {
        self.admit(path).await?;
        let request = Request::ReadFile { path: path.to_owned(), offset, limit };
        let channel = self.with_link(|link| std::future::ready(link.request(&request, 2))).await?;
        Ok(FileReader { guest: Arc::clone(self), channel: Some(channel) })
    }
}

/// A file being read.
pub struct FileReader {
    guest: Arc<Guest>,
    channel: Option<Channel>,
}

impl FileReader {
    /// The next piece; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>> {
        let Some(channel) = &mut self.channel else { return Ok(None) };
        let mut event = channel.next().await;
        if let Ok(Event::Reply(Reply::Opened { .. })) = event {
            event = channel.next().await;
        }
        match event {
            Ok(Event::Data(bytes)) => Ok(Some(bytes)),
            Ok(Event::Reply(Reply::Content { .. })) => {
                self.channel = None;
                Ok(None)
            }
            Ok(Event::Reply(Reply::Fault(fault))) => Err(fault.into()),
            Ok(_) => Err(unexpected()),
            Err(end) => Err(self.guest.explain(end).await),
        }
    }
}
