//! A process's output as it is written, without loss: a slow reader slows the process.

use std::sync::Arc;

use bytes::Bytes;
use cofferdam_protocol::{Output, Reply, Request};

use super::channel::{Channel, unexpected};
use super::connection::Guest;
use super::link::{Event, LinkEnd};
use crate::{Error, ErrorCode, Result};

/// Which of a process's two output streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamName {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A numbered piece of output. UTF-8 output is never split inside a character.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Rises by one per chunk over both streams.
    pub seq: u64,
    /// Which stream.
    pub stream: StreamName,
    /// The bytes, exactly.
    pub data: Bytes,
}

/// Everything a process prints, from a given chunk on until it ends.
pub struct OutputStream {
    guest: Arc<Guest>,
    exec_id: String,
    channel: Option<Channel>,
    seen: u64,
    /// After a link broke, until the next chunk shows whether any was lost with it.
    rejoined: bool,
    done: bool,
}

impl OutputStream {
    pub(super) fn new(guest: Arc<Guest>, exec_id: String, since: u64) -> OutputStream {
        OutputStream { guest, exec_id, channel: None, seen: since, rejoined: false, done: false }
    }

    /// At least one chunk and at most `max`, as available; none after the end.
    pub async fn next_many(&mut self, max: usize) -> Result<Vec<Chunk>> {
        let mut chunks = Vec::new();
        let mut broken = false;
        while !self.done && chunks.len() < max.max(1) {
            let channel = match &mut self.channel {
                Some(channel) if !chunks.is_empty() && !channel.has_more() => break,
                Some(channel) => channel,
                None => match self.attach().await? {
                    Ok(channel) => self.channel.insert(channel),
                    Err(_) if !broken => {
                        broken = true;
                        continue;
                    }
                    Err(end) => return Err(self.guest.explain(end).await),
                },
            };
            match channel.next().await {
                Ok(Event::Output(_, seq, _)) if self.rejoined && seq > self.seen + 1 => {
                    self.done = true;
                    return Err(lost_output(&self.exec_id, self.seen));
                }
                Ok(Event::Output(stream, seq, data)) if seq > self.seen => {
                    self.rejoined = false;
                    self.seen = seq;
                    chunks.push(Chunk { seq, stream, data });
                }
                Ok(Event::Reply(Reply::Exited(..))) => self.done = true,
                Ok(Event::Reply(Reply::Fault(fault))) => return Err(fault.into()),
                Ok(_) => return Err(unexpected()),
                Err(LinkEnd::Broken(_)) if !broken => {
                    broken = true;
                    self.rejoined = true;
                    self.channel = None;
                }
                Err(end) => return Err(self.guest.explain(end).await),
            }
        }
        Ok(chunks)
    }

    async fn attach(&self) -> Result<Result<Channel, LinkEnd>> {
        let request = Request::Attach { exec_id: self.exec_id.clone(), since_seq: self.seen, output: Output::Follow };
        match self.guest.link().await?.request(&request, 1) {
            Ok(channel) => Ok(Ok(channel?)),
            Err(end) => Ok(Err(end)),
        }
    }
}

/// More output was in flight when the link broke than the guest retains.
pub(super) fn lost_output(exec_id: &str, seen: u64) -> Error {
    let message = format!(
        "output of {exec_id} after chunk {seen} was lost when the connection to the sandbox broke; read({{ sinceSeq: {seen} }}) \
         gives what is still kept"
    );
    Error::new(ErrorCode::SandboxLost, message).with("execId", exec_id).with("sinceSeq", seen)
}
