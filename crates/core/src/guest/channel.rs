//! One pending request, as its caller sees it.

use std::sync::Arc;

use bytes::Bytes;
use cofferdam_protocol::{Frame, Kind, Reply, WINDOW};
use tokio::sync::{Semaphore, mpsc};

use super::link::{Event, Link, LinkEnd, Shared};
use crate::{Error, Result};

/// The most data in one frame.
const DATA_SIZE: usize = 64 * 1024;

/// Dropping it cancels the request in the guest.
pub(crate) struct Channel {
    id: u32,
    link: Arc<Link>,
    mailbox: mpsc::UnboundedReceiver<Event>,
    credit: Arc<Semaphore>,
    consumed: u32,
}

impl Channel {
    pub(super) fn new(
        id: u32,
        link: Arc<Link>,
        mailbox: mpsc::UnboundedReceiver<Event>,
        credit: Arc<Semaphore>,
    ) -> Channel {
        Channel { id, link, mailbox, credit, consumed: 0 }
    }

    pub(super) fn send(&self, frame: Frame) {
        // If the link has ended, `next` reports it.
        let _ = self.link.shared.outbox.send(frame);
    }

    /// The half that sends data, usable while the other half waits.
    pub(crate) fn sender(&self) -> DataSender {
        DataSender { id: self.id, shared: Arc::clone(&self.link.shared), credit: Arc::clone(&self.credit) }
    }

    /// The next event from the guest. Returns credit for what was read, a quarter of the window at a time.
    pub(crate) async fn next(&mut self) -> Result<Event, LinkEnd> {
        let Some(event) = self.mailbox.recv().await else { return Err(self.link.shared.end()) };
        let taken = match &event {
            Event::Data(bytes) => bytes.len() as u32,
            Event::Output(_, _, bytes) => bytes.len() as u32 + 8,
            Event::Reply(_) | Event::End => 0,
        };
        self.consumed += taken;
        if self.consumed >= WINDOW / 4 {
            self.link.shared.replenish(self.id, std::mem::take(&mut self.consumed));
        }
        Ok(event)
    }

    /// Whether an event can be read without waiting.
    pub(crate) fn has_more(&self) -> bool {
        !self.mailbox.is_empty()
    }

    /// The only answer to the request; a fault becomes an error.
    pub(crate) async fn reply(&mut self) -> Result<Result<Reply>, LinkEnd> {
        match self.next().await? {
            Event::Reply(Reply::Fault(fault)) => Ok(Err(fault.into())),
            Event::Reply(reply) => Ok(Ok(reply)),
            Event::Data(_) | Event::Output(..) | Event::End => Ok(Err(unexpected())),
        }
    }
}

/// The guest's answer does not match the request.
pub(crate) fn unexpected() -> Error {
    LinkEnd::Protocol("an answer that does not fit the request".to_owned()).into()
}

impl Drop for Channel {
    fn drop(&mut self) {
        if self.link.shared.forget(self.id) {
            self.send(Frame::close(self.id));
        }
    }
}

/// Sends data on a channel, as fast as the guest takes it.
#[derive(Clone)]
pub(crate) struct DataSender {
    id: u32,
    shared: Arc<Shared>,
    credit: Arc<Semaphore>,
}

impl DataSender {
    pub(crate) async fn send(&self, mut bytes: Bytes) -> Result<(), LinkEnd> {
        while !bytes.is_empty() {
            let piece = bytes.split_to(DATA_SIZE.min(bytes.len()));
            let permits = self.credit.acquire_many(piece.len() as u32).await.map_err(|_| self.shared.end())?;
            permits.forget();
            let frame = Frame::new(self.id, Kind::Data, piece);
            self.shared.outbox.send(frame).map_err(|_| self.shared.end())?;
        }
        Ok(())
    }

    pub(crate) fn end(&self) {
        let _ = self.shared.outbox.send(Frame::end(self.id));
    }
}
