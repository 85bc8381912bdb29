//! One live connection to a guest: the handshake, a writer that gathers frames, and a reader that hands each frame to
//! the call that waits for it.
//!
//! Invariants: a channel holds at most one window of unread bytes; a guest that sends more, or to a channel that was
//! never opened, or more messages than a request has answers, ends the link. A link that ended stays ended.

use std::collections::HashMap;
use std::io::IoSlice;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use cofferdam_protocol::{Assembler, Decoder, Frame, Hello, Join, Kind, LINK_CHANNEL, Reply, Request, WINDOW, encode};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::task::AbortOnDropHandle;

use super::ByteStream;
use super::channel::Channel;
use super::output::StreamName;
use crate::{Error, ErrorCode, Result};

/// How long a guest may take to say hello once the stream is open.
const HELLO_TIMEOUT: Duration = Duration::from_secs(20);

/// Room for the next read: a frame and more.
const READ_SIZE: usize = 128 * 1024;

/// Frames that leave in one write.
const WRITE_FRAMES: usize = 16;

type Reader = Pin<Box<dyn AsyncRead + Send>>;
type Writer = Pin<Box<dyn AsyncWrite + Send>>;

/// Why a link ended.
#[derive(Debug, Clone)]
pub(crate) enum LinkEnd {
    /// The stream ended or broke: the sandbox may still be there.
    Broken(String),
    /// The guest broke the rules.
    Protocol(String),
}

impl From<LinkEnd> for Error {
    fn from(end: LinkEnd) -> Error {
        match end {
            LinkEnd::Broken(why) => {
                Error::new(ErrorCode::SandboxLost, format!("the connection to the sandbox broke: {why}"))
            }
            LinkEnd::Protocol(what) => Error::new(
                ErrorCode::Protocol,
                format!(
                    "the sandbox's guest broke the protocol ({what}); it may have been tampered with: close the sandbox"
                ),
            ),
        }
    }
}

/// The outer error is the link's, and may be tried again; the inner one is the request's, and may not.
pub(crate) type Attempt<T> = Result<Result<T>, LinkEnd>;

/// What arrives on a channel.
#[derive(Debug)]
pub(crate) enum Event {
    Reply(Reply),
    Data(Bytes),
    Output(StreamName, u64, Bytes),
}

/// Lives as long as anybody uses it, its channels included.
pub(crate) struct Link {
    hello: Hello,
    pub(super) shared: Arc<Shared>,
    _reader: AbortOnDropHandle<()>,
    _writer: AbortOnDropHandle<()>,
}

/// What a link, its channels and its two tasks have in common.
pub(crate) struct Shared {
    pub(crate) outbox: mpsc::UnboundedSender<Frame>,
    channels: Mutex<Channels>,
    end: OnceLock<LinkEnd>,
}

#[derive(Default)]
struct Channels {
    last: u32,
    open: HashMap<u32, Slot>,
}

struct Slot {
    events: mpsc::UnboundedSender<Event>,
    credit: Arc<Semaphore>,
    window: u32,
    answers: u8,
    assembler: Assembler,
}

impl Link {
    /// Shakes hands. `client` is the same for all links of this process.
    pub(crate) async fn open(stream: ByteStream, client: u128) -> Result<Link> {
        let ByteStream { mut reader, writer } = stream;
        let (mut decoder, mut buffer) = (Decoder::default(), BytesMut::new());
        let first = async {
            loop {
                if let Some(frame) = decoder.next(&mut buffer).map_err(|error| LinkEnd::Protocol(error.to_string()))? {
                    return Hello::from_frame(&frame).map_err(|error| LinkEnd::Protocol(error.to_string()));
                }
                match read_more(&mut reader, &mut buffer).await {
                    Ok(0) => return Err(LinkEnd::Broken("it ended before the guest said hello".to_owned())),
                    Ok(_) => {}
                    Err(error) => return Err(LinkEnd::Broken(error.to_string())),
                }
            }
        };
        let silent = || LinkEnd::Broken(format!("the guest said nothing for {} s", HELLO_TIMEOUT.as_secs()));
        let hello = tokio::time::timeout(HELLO_TIMEOUT, first).await.map_err(|_| silent())??;

        let (outbox, frames) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared { outbox, channels: Mutex::default(), end: OnceLock::new() });
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

    /// Ends every call under way.
    pub(crate) fn shut(&self) {
        self.shared.finish(LinkEnd::Broken("it was closed".to_owned()));
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.shared.end.get().is_none()
    }

    /// Opens a channel with a request that has at most `answers` replies.
    pub(crate) fn request(self: &Arc<Self>, request: &Request, answers: u8) -> Attempt<Channel> {
        let (events, mailbox) = mpsc::unbounded_channel();
        let credit = Arc::new(Semaphore::new(WINDOW as usize));
        let id = {
            let mut channels = self.shared.channels();
            // Checked under the lock: `finish` sets the end before it takes the lock to drop all channels.
            if let Some(end) = self.shared.end.get() {
                return Err(end.clone());
            }
            channels.last = channels.last.checked_add(1).unwrap_or(1);
            let id = channels.last;
            let slot =
                Slot { events, credit: Arc::clone(&credit), window: WINDOW, answers, assembler: Assembler::default() };
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

impl Shared {
    fn channels(&self) -> MutexGuard<'_, Channels> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn end(&self) -> LinkEnd {
        self.end.get().cloned().unwrap_or_else(|| LinkEnd::Broken("it was closed".to_owned()))
    }

    pub(crate) fn forget(&self, id: u32) -> bool {
        self.channels().open.remove(&id).is_some()
    }

    /// The receiver has taken `bytes`: the guest may send as many again.
    pub(crate) fn replenish(&self, id: u32, bytes: u32) {
        if let Some(slot) = self.channels().open.get_mut(&id) {
            slot.window += bytes;
        }
        let _ = self.outbox.send(Frame::credit(id, bytes));
    }

    fn finish(&self, end: LinkEnd) {
        let _ = self.end.set(end);
        // Dropping the senders wakes every call under way.
        let open = std::mem::take(&mut self.channels().open);
        for slot in open.values() {
            slot.credit.close();
        }
    }

    fn take(&self, frame: Frame) -> Result<(), String> {
        let mut channels = self.channels();
        if frame.channel == LINK_CHANNEL || frame.channel > channels.last {
            return Err(format!("a frame for channel {}, which was never opened", frame.channel));
        }
        let id = frame.channel;
        // A call that was given up may still be answered.
        let Some(slot) = channels.open.get_mut(&id) else { return Ok(()) };
        if frame.kind.is_flow_controlled() {
            let length = frame.payload.len() as u32;
            if length == 0 {
                return Err("a data frame without data, which would cost nothing".to_owned());
            }
            slot.window = slot.window.checked_sub(length).ok_or("more data than was granted")?;
        }
        let event = match frame.kind {
            Kind::More => return slot.assembler.more(&frame.payload).map_err(|error| error.to_string()),
            Kind::Message => {
                slot.answers = slot.answers.checked_sub(1).ok_or("more answers than a request has")?;
                Event::Reply(slot.assembler.finish(&frame.payload).map_err(|error| error.to_string())?)
            }
            Kind::Data => Event::Data(frame.payload),
            Kind::Stdout | Kind::Stderr => {
                let name = if frame.kind == Kind::Stdout { StreamName::Stdout } else { StreamName::Stderr };
                let (seq, bytes) = frame.into_output().map_err(|error| error.to_string())?;
                Event::Output(name, seq, bytes)
            }
            Kind::Credit => {
                let amount = frame.credit_amount().map_err(|error| error.to_string())? as usize;
                if slot.credit.available_permits() + amount > WINDOW as usize {
                    return Err("more credit than there is".to_owned());
                }
                slot.credit.add_permits(amount);
                return Ok(());
            }
            Kind::End | Kind::Close => return Err("a frame that only hosts send".to_owned()),
        };
        // The call may have been dropped in this very moment.
        let _ = slot.events.send(event);
        Ok(())
    }
}

async fn read_more(reader: &mut Reader, buffer: &mut BytesMut) -> std::io::Result<usize> {
    buffer.reserve(READ_SIZE);
    reader.read_buf(buffer).await
}

async fn read_frames(mut reader: Reader, mut decoder: Decoder, mut buffer: BytesMut, shared: &Shared) -> LinkEnd {
    loop {
        loop {
            match decoder.next(&mut buffer) {
                Ok(Some(frame)) => {
                    if let Err(what) = shared.take(frame) {
                        return LinkEnd::Protocol(what);
                    }
                }
                Ok(None) => break,
                Err(error) => return LinkEnd::Protocol(error.to_string()),
            }
        }
        match read_more(&mut reader, &mut buffer).await {
            Ok(0) => return LinkEnd::Broken("the stream ended".to_owned()),
            Ok(_) => {}
            Err(error) => return LinkEnd::Broken(error.to_string()),
        }
    }
}

async fn write_frames(mut frames: mpsc::UnboundedReceiver<Frame>, mut writer: Writer, shared: Arc<Shared>) {
    let mut batch = Vec::with_capacity(WRITE_FRAMES);
    while frames.recv_many(&mut batch, WRITE_FRAMES).await > 0 {
        let written = match writer.is_write_vectored() {
            true => write_slices(&batch, &mut writer).await,
            false => write_gathered(&batch, &mut writer).await,
        };
        if let Err(error) = written {
            shared.finish(LinkEnd::Broken(error.to_string()));
            return;
        }
        batch.clear();
    }
}

/// Without copying, where the stream takes many pieces at once.
async fn write_slices(frames: &[Frame], writer: &mut Writer) -> std::io::Result<()> {
    let headers: Vec<_> = frames.iter().map(Frame::header).collect();
    let mut slices = Vec::with_capacity(frames.len() * 2);
    for (frame, header) in frames.iter().zip(&headers) {
        slices.push(IoSlice::new(header));
        if !frame.payload.is_empty() {
            slices.push(IoSlice::new(&frame.payload));
        }
    }
    let mut rest = &mut slices[..];
    while !rest.is_empty() {
        let written = writer.write_vectored(rest).await?;
        if written == 0 {
            return Err(std::io::ErrorKind::WriteZero.into());
        }
        IoSlice::advance_slices(&mut rest, written);
    }
    writer.flush().await
}

async fn write_gathered(frames: &[Frame], writer: &mut Writer) -> std::io::Result<()> {
    let mut buffer = BytesMut::new();
    for frame in frames {
        frame.encode(&mut buffer);
    }
    writer.write_all(&buffer).await?;
    writer.flush().await
}
