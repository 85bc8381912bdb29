//! One live connection to a guest: the handshake, a writer that batches frames, and a reader that passes each frame to
//! the call that waits for it.
//!
//! Invariants: a channel holds at most one window of unread bytes; a guest that sends more, uses a
//! channel that was never opened, or sends more replies than its request has, ends the link. An ended link stays ended.

mod demux;
mod end;
mod frames;
mod handshake;

pub(crate) use demux::Shared;
pub(crate) use end::{LinkEnd, ending_reason};
pub(crate) use handshake::HELLO_TIMEOUT;

use std::sync::{Arc, Mutex, OnceLock};

use bytes::Bytes;
use cofferdam_protocol::{Assembler, Hello, Join, LINK_CHANNEL, Notice, Reply, Request, WINDOW, encode};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::ByteStream;
use super::channel::Channel;
use super::output::StreamName;
use crate::{Error, Result};
use demux::Slot;
use frames::{read_frames, write_frames};
use handshake::{Handshake, read_hello};

/// Called with each notice of the guest.
pub(crate) type OnNotice = Arc<dyn Fn(&Notice) + Send + Sync>;

/// The outer error is the link's: the call may be retried. The inner error is the request's: it must not be.
pub(crate) type Attempt<T> = Result<Result<T>, LinkEnd>;

/// An event on a channel.
#[derive(Debug)]
pub(crate) enum Event {
    Reply(Reply),
    Data(Bytes),
    /// No more data; replies may follow.
    End,
    Output(StreamName, u64, Bytes),
}

/// Stays open as long as it or one of its channels is in use.
pub(crate) struct Link {
    hello: Hello,
    pub(super) shared: Arc<Shared>,
    _reader: AbortOnDropHandle<()>,
    _writer: AbortOnDropHandle<()>,
}

impl Link {
    /// Does the handshake. `client` is the same for all links of this process.
    pub(crate) async fn open(stream: ByteStream, client: u128, on_notice: OnNotice) -> Result<Link> {
        let ByteStream { mut reader, writer } = stream;
        let Handshake { hello, decoder, buffer } = read_hello(&mut reader).await?;

        let (outbox, frames) = mpsc::unbounded_channel();
        let (end, ended) = (OnceLock::new(), CancellationToken::new());
        let shared = Arc::new(Shared { outbox, channels: Mutex::default(), end, ended, on_notice });
        for frame in encode(LINK_CHANNEL, &Join { client }).unwrap_or_default() {
            let _ = shared.outbox.send(frame);
        }
        let writing = tokio::spawn(write_frames(frames, writer, Arc::clone(&shared)));
        let reading = {
            let shared = Arc::clone(&shared);
            tokio::spawn(async move {
                let end = read_frames(reader, decoder, buffer, &shared).await;
                shared.finish(end);
            })
        };
        Ok(Link { hello, shared, _reader: AbortOnDropHandle::new(reading), _writer: AbortOnDropHandle::new(writing) })
    }

    pub(crate) fn hello(&self) -> &Hello {
        &self.hello
    }

    /// Ends every pending call.
    pub(crate) fn shut(&self) {
        self.shared.finish(LinkEnd::Broken("it was closed".to_owned()));
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.shared.end.get().is_none()
    }

    /// Cancelled when the link has ended or is no longer in use.
    pub(crate) fn ended(&self) -> CancellationToken {
        self.shared.ended.clone()
    }

    /// Opens a channel with a request that has at most `answers` replies.
    pub(crate) fn request(self: &Arc<Self>, request: &Request, answers: u8) -> Attempt<Channel> {
        let (events, mailbox) = mpsc::unbounded_channel();
        let may_end = matches!(request, Request::Connect { .. });
        let credit = Arc::new(Semaphore::new(WINDOW as usize));
        let id = {
            let mut channels = self.shared.channels();
            // Checked under the lock: `finish` sets the end before it takes the lock to drop all channels.
            if let Some(end) = self.shared.end.get() {
                return Err(end.clone());
            }
            channels.last = channels.last.checked_add(1).unwrap_or(1);
            let id = channels.last;
            let slot = Slot {
                events,
                credit: Arc::clone(&credit),
                window: WINDOW,
                answers,
                may_end,
                assembler: Assembler::default(),
            };
            channels.open.insert(id, slot);
            id
        };
        let channel = Channel::new(id, Arc::clone(self), mailbox, credit);
        let Ok(frames) = encode(id, request) else {
            let message = "the command, its arguments and its environment are too long; write them to a file first";
            return Ok(Err(Error::invalid(message)));
        };
        for frame in frames {
            channel.send(frame);
        }
        Ok(Ok(channel))
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.shut();
    }
}
