//! Writing a file, whole or piece by piece.

use std::sync::Arc;

use bytes::Bytes;
use cofferdam_protocol::{Reply, Request, Write};

use super::access::check_path;
use crate::guest::Guest;
use crate::guest::channel::{Channel, unexpected};
use crate::guest::link::{Attempt, Link, LinkEnd};
use crate::{Error, Result};

/// A file to write.
#[derive(Debug, Clone, Default)]
pub struct WriteRequest {
    /// Absolute, or under the workdir.
    pub path: String,
    /// Permission bits.
    pub mode: Option<u32>,
    /// Fail if the file exists.
    pub keep_existing: bool,
    /// Owner (default: the command user).
    pub user: Option<String>,
    /// Append to an existing file.
    pub append: bool,
}

impl WriteRequest {
    fn to_request(&self) -> Result<Request> {
        check_path(&self.path)?;
        if self.append && self.keep_existing {
            let message =
                "append: true adds to an existing file, and overwrite: false rejects one; leave one of them out";
            return Err(Error::invalid(message));
        }
        Ok(Request::Write(Write {
            path: self.path.clone(),
            mode: self.mode,
            overwrite: !self.keep_existing,
            user: self.user.clone(),
            append: self.append,
        }))
    }
}

impl Guest {
    /// Writes a whole file; returns its absolute path and its size.
    pub async fn write_file(&self, write: &WriteRequest, content: Bytes) -> Result<(String, u64)> {
        let request = write.to_request()?;
        self.admit(&write.path).await?;
        self.files.admit_size(&write.path, content.len() as u64)?;
        let (request, content) = (&request, &[content]);
        let attempt = |link| async move { send_all(link, request, content).await };
        let reply = if write.append { self.with_link_once(attempt).await } else { self.with_link(attempt).await };
        reply.and_then(written)
    }

    /// Starts to write a file piece by piece.
    pub async fn file_writer(self: &Arc<Self>, write: &WriteRequest) -> Result<FileWriter> {
        let request = write.to_request()?;
        self.admit(&write.path).await?;
        let channel = self.with_link(|link| std::future::ready(link.request(&request, 1))).await?;
        Ok(FileWriter { guest: Arc::clone(self), channel, path: write.path.clone(), size: 0 })
    }
}

/// Sends a request with all its data; returns the reply.
pub(in crate::guest) async fn send_all(link: Arc<Link>, request: &Request, contents: &[Bytes]) -> Attempt<Reply> {
    let mut channel = match link.request(request, 1)? {
        Ok(channel) => channel,
        Err(error) => return Ok(Err(error)),
    };
    let sender = channel.sender();
    let sending = async {
        for content in contents {
            sender.send(content.clone()).await?;
        }
        sender.end();
        std::future::pending::<Result<(), LinkEnd>>().await
    };
    tokio::select! {
        // An early reply is a refusal: stop sending.
        reply = channel.reply() => reply,
        Err(end) = sending => Err(end),
    }
}

fn written(reply: Reply) -> Result<(String, u64)> {
    match reply {
        Reply::Written { path, size } => Ok((path, size)),
        _ => Err(unexpected()),
    }
}

/// A file being written. It appears when finished; dropped early, it leaves nothing.
pub struct FileWriter {
    guest: Arc<Guest>,
    channel: Channel,
    path: String,
    size: u64,
}

impl FileWriter {
    /// Adds content, as fast as the sandbox accepts it.
    pub async fn write(&mut self, bytes: Bytes) -> Result<()> {
        self.size += bytes.len() as u64;
        self.guest.files.admit_size(&self.path, self.size)?;
        let sender = self.channel.sender();
        let outcome = tokio::select! {
            biased;
            // It replies before the end only to refuse.
            reply = self.channel.reply() => reply.map(|reply| Err(reply.err().unwrap_or_else(unexpected))),
            sent = sender.send(bytes) => sent.map(Ok),
        };
        match outcome {
            Ok(outcome) => outcome,
            Err(end) => Err(self.guest.explain(end).await),
        }
    }

    /// Makes the file appear; returns its absolute path and its size.
    pub async fn finish(mut self) -> Result<(String, u64)> {
        self.channel.sender().end();
        match self.channel.reply().await {
            Ok(reply) => reply.and_then(written),
            Err(end) => Err(self.guest.explain(end).await),
        }
    }
}
