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
use cofferdam_protocol::{
    Assembler, Decoder, Ending, Frame, GENERATION, Hello, Join, Kind, LINK_CHANNEL, MessageError, Notice, Reply,
    Request, Term, WINDOW, decode, encode, io_slices,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::ByteStream;
use super::channel::Channel;
use super::output::StreamName;
use crate::{Error, ErrorCode, Result};

/// How long a guest may take to say hello once the stream is open.
pub(crate) const HELLO_TIMEOUT: Duration = Duration::from_secs(20);

/// How much is told of what was said by somebody who is no guest.
const SAID: usize = 300;

/// Room for the next read: a frame and more.
const READ_SIZE: usize = 128 * 1024;

/// How long the reader may take to see the end that the writer has met.
const LAST_WORDS: Duration = Duration::from_millis(500);

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
    /// The guest is of another version.
    Generation(u16),
    /// The guest said that it ends, and why.
    Farewell(Ending),
}

/// Told of what the guest says unasked.
pub(crate) type OnNotice = Arc<dyn Fn(&Notice) + Send + Sync>;

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
            LinkEnd::Generation(theirs) => Error::new(
                ErrorCode::Unsupported,
                format!(
                    "the sandbox was made by another version of cofferdam (its guest speaks protocol generation {theirs}, this \
                     one {GENERATION}); close it with that version, or wait until it ends by itself"
                ),
            ),
            LinkEnd::Farewell(ending) => {
                let (reason, why) = ending_reason(ending);
                Error::new(ErrorCode::SandboxLost, format!("the sandbox is gone: {why}; open() gives a new one"))
                    .with("reason", reason)
            }
        }
    }
}

/// For programs, and for people.
pub(crate) fn ending_reason(ending: Ending) -> (&'static str, &'static str) {
    match ending {
        Ending::Expired(Term::Idle) => ("idle", "nothing happened in it for its idle timeout"),
        Ending::Expired(Term::MaxLifetime) => ("max-lifetime", "it reached its maximum lifetime"),
        Ending::Expired(Term::Orphan) => ("orphaned", "no program was linked to it for its orphan timeout"),
        Ending::Stopped => ("stopped", "its container was stopped"),
        Ending::Asked => ("closed", "another program closed it"),
    }
}

/// The outer error is the link's, and may be tried again; the inner one is the request's, and may not.
pub(crate) type Attempt<T> = Result<Result<T>, LinkEnd>;

/// What arrives on a channel.
#[derive(Debug)]
pub(crate) enum Event {
    Reply(Reply),
    Data(Bytes),
    /// Nothing more comes, but for replies.
    End,
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
    ended: CancellationToken,
    on_notice: OnNotice,
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
    /// Whether the guest's half may end by itself, once.
    may_end: bool,
    assembler: Assembler,
}

impl Link {
    /// Shakes hands. `client` is the same for all links of this process.
    pub(crate) async fn open(stream: ByteStream, client: u128, on_notice: OnNotice) -> Result<Link> {
        let ByteStream { mut reader, writer } = stream;
        let (mut decoder, mut buffer) = (Decoder::default(), BytesMut::new());
        let first = async {
            loop {
                match decoder.next(&mut buffer) {
                    Ok(None) => {}
                    Ok(Some(frame)) => {
                        return Hello::from_frame(&frame).map_err(|error| match error {
                            MessageError::Generation(theirs) => LinkEnd::Generation(theirs),
                            other => LinkEnd::Protocol(other.to_string()),
                        });
                    }
                    // An engine that cannot start the way to the guest says so where the guest would speak.
                    Err(_) => {
                        let text = String::from_utf8_lossy(&buffer[..buffer.len().min(SAID)]).trim().to_owned();
                        return Err(LinkEnd::Broken(format!("in the guest's place, somebody said {text:?}")));
                    }
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

    /// Ends every call under way.
    pub(crate) fn shut(&self) {
        self.shared.finish(LinkEnd::Broken("it was closed".to_owned()));
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.shared.end.get().is_none()
    }

    /// Cancelled when the link has ended, or nobody uses it any more.
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
        self.ended.cancel();
    }

    /// What the guest says unasked. Its last words are the end.
    fn take_notice(&self, frame: &Frame) -> Result<(), LinkEnd> {
        let malformed = |what: String| LinkEnd::Protocol(format!("a notice that cannot be read: {what}"));
        if frame.kind != Kind::Message {
            return Err(malformed(format!("{:?}", frame.kind)));
        }
        let notice: Notice = decode(&frame.payload).map_err(|error| malformed(error.to_string()))?;
        match notice {
            Notice::Ending(ending) => Err(LinkEnd::Farewell(ending)),
            notice => {
                (self.on_notice)(&notice);
                Ok(())
            }
        }
    }

    fn take(&self, frame: Frame) -> Result<(), LinkEnd> {
        match frame.channel {
            LINK_CHANNEL => self.take_notice(&frame),
            _ => self.take_answer(frame).map_err(LinkEnd::Protocol),
        }
    }

    fn take_answer(&self, frame: Frame) -> Result<(), String> {
        let mut channels = self.channels();
        if frame.channel > channels.last {
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
            Kind::End if std::mem::take(&mut slot.may_end) => Event::End,
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
                    if let Err(end) = shared.take(frame) {
                        return end;
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
            // A guest that ends closes its end after its last words: those are still to be read.
            let _ = tokio::time::timeout(LAST_WORDS, shared.ended.cancelled()).await;
            shared.finish(LinkEnd::Broken(error.to_string()));
            return;
        }
        batch.clear();
    }
}

/// Without copying, where the stream takes many pieces at once.
async fn write_slices(frames: &[Frame], writer: &mut Writer) -> std::io::Result<()> {
    let headers: Vec<_> = frames.iter().map(Frame::header).collect();
    let mut slices = io_slices(frames, &headers);
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
