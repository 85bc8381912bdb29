//! A backend whose boxes are scripts, for what no real guest would say.

#![allow(dead_code, unreachable_pub, reason = "each test program uses its part of it")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::BytesMut;
use cofferdam_core::backend::{Backend, BoxRecord, BoxSpec, Claims, Creation, EngineInfo, PruneReport, PruneRequest};
use cofferdam_core::guest::ByteStream;
use cofferdam_core::*;
use cofferdam_protocol::{
    Assembler, Decoder, Frame, Hello, Kind, LINK_CHANNEL, Lease, Reply, Request, Setup, WINDOW, encode,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::Mutex;

/// What the guest does with its end of a stream; called once per link.
type Script = dyn Fn(GuestEnd, usize) -> tokio::task::JoinHandle<()> + Send + Sync;

/// A backend whose boxes are scripts.
pub struct Fake {
    script: Box<Script>,
    pub links: AtomicUsize,
    pub setup: Mutex<Option<Setup>>,
    pub gone: AtomicUsize,
}

impl Fake {
    fn connect(&self, setup: Setup) -> ByteStream {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let number = self.links.fetch_add(1, Ordering::SeqCst);
        (self.script)(GuestEnd::new(theirs, setup), number);
        let (reader, writer) = tokio::io::split(ours);
        ByteStream { reader: Box::pin(reader), writer: Box::pin(writer) }
    }
}

#[async_trait]
impl Claims for Fake {
    async fn holder(&self, _: &SessionKey) -> Result<Option<BoxRecord>> {
        Ok(None)
    }

    async fn assign(&self, _: &str, _: &SessionKey, _: Lease) -> Result<bool> {
        Ok(true)
    }
}

#[async_trait]
impl Backend for Fake {
    fn name(&self) -> &'static str {
        "fake"
    }

    async fn info(&self) -> Result<EngineInfo> {
        Err(Error::new(ErrorCode::Unsupported, "a fake has no engine"))
    }

    async fn create(&self, spec: &BoxSpec) -> Result<Creation> {
        let setup = spec.setup(None);
        *self.setup.lock().await = Some(setup.clone());
        Ok(Creation::New { handle: "fake".to_owned(), stream: self.connect(setup) })
    }

    async fn link(&self, _: &str) -> Result<ByteStream> {
        match self.setup.lock().await.clone() {
            Some(setup) => Ok(self.connect(setup)),
            None => Err(Error::new(ErrorCode::SandboxLost, "gone")),
        }
    }

    async fn fate(&self, _: &str) -> Option<Error> {
        let lost = Error::new(ErrorCode::SandboxLost, "gone").with("reason", "removed");
        self.setup.lock().await.is_none().then_some(lost)
    }

    async fn find(&self, _: &str) -> Result<Option<BoxRecord>> {
        Ok(None)
    }

    async fn list(&self) -> Result<Vec<BoxRecord>> {
        Ok(Vec::new())
    }

    async fn remove(&self, _: &str) -> Result<()> {
        self.gone.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    async fn prune(&self, _: &PruneRequest) -> Result<PruneReport> {
        Ok(PruneReport::default())
    }
}

/// The guest's end of a stream, with the means to speak well and to speak ill.
pub struct GuestEnd {
    stream: DuplexStream,
    pub setup: Setup,
    decoder: Decoder,
    buffer: BytesMut,
}

impl GuestEnd {
    fn new(stream: DuplexStream, setup: Setup) -> GuestEnd {
        GuestEnd { stream, setup, decoder: Decoder::default(), buffer: BytesMut::new() }
    }

    pub async fn hello(&mut self) {
        let hello = Hello { version: "0".to_owned(), setup: self.setup.clone(), uptime_ms: 1 };
        self.send(&[hello.to_frame()]).await;
    }

    pub async fn send(&mut self, frames: &[Frame]) {
        let mut bytes = BytesMut::new();
        frames.iter().for_each(|frame| frame.encode(&mut bytes));
        self.raw(&bytes).await;
    }

    pub async fn reply(&mut self, channel: u32, reply: &Reply) {
        self.send(&encode(channel, reply).unwrap()).await;
    }

    pub async fn raw(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).await;
    }

    /// Sends a stream as data, as fast as the host grants it.
    pub async fn stream(&mut self, channel: u32, pieces: impl Iterator<Item = Vec<u8>>) {
        let mut credit = WINDOW as usize;
        for piece in pieces {
            while credit < piece.len() {
                match self.frame().await {
                    Some(frame) if frame.channel == channel && frame.kind == Kind::Credit => {
                        credit += frame.credit_amount().unwrap() as usize;
                    }
                    Some(_) => {}
                    None => return,
                }
            }
            credit -= piece.len();
            self.send(&[Frame::new(channel, Kind::Data, piece)]).await;
        }
    }

    pub async fn frame(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.decoder.next(&mut self.buffer).unwrap() {
                return Some(frame);
            }
            if self.stream.read_buf(&mut self.buffer).await.unwrap_or(0) == 0 {
                return None;
            }
        }
    }

    /// The next request, and the channel it came on. That for the workdir, with which every sandbox begins, is granted.
    pub async fn request(&mut self) -> Option<(u32, Request)> {
        loop {
            let frame = self.frame().await?;
            if frame.channel == LINK_CHANNEL || frame.kind != Kind::Message {
                continue;
            }
            match Assembler::default().finish(&frame.payload).unwrap() {
                Request::Mkdir { .. } => self.reply(frame.channel, &Reply::Done).await,
                request => return Some((frame.channel, request)),
            }
        }
    }

    /// Stays until it is asked to end, and says nothing more.
    pub async fn linger(mut self) {
        while !matches!(self.request().await, None | Some((_, Request::End))) {}
    }
}

pub fn manager<F>(script: impl Fn(GuestEnd, usize) -> F + Send + Sync + 'static) -> (Manager, Arc<Fake>)
where
    F: Future<Output = ()> + Send + 'static,
{
    let fake = Arc::new(Fake {
        script: Box::new(move |end, number| tokio::spawn(script(end, number))),
        links: AtomicUsize::new(0),
        setup: Mutex::default(),
        gone: AtomicUsize::new(0),
    });
    (Manager::with_backend(Arc::clone(&fake) as Arc<dyn Backend>, ManagerOptions::default()), fake)
}

pub fn code<T>(outcome: Result<T>) -> &'static str {
    match outcome {
        Ok(_) => "no error",
        Err(error) => error.code().map_or("aborted", ErrorCode::as_str),
    }
}
