//! One channel of a link, as the code that serves a request sees it.
//!
//! Invariant: neither side has more than [`WINDOW`] unread bytes under way on a channel. A channel leaves the link's
//! map when its last handle is dropped.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};

use bytes::Bytes;
use cofferdam_protocol::{Fault, FaultCode, Frame, Kind, Reply, WINDOW, encode};
use tokio::sync::Notify;

use crate::link::Channels;
use crate::outbox::{Gone, Outbox};

/// What the host sent on a channel after its request.
#[derive(Debug, PartialEq)]
pub(crate) enum Inbound {
    Data(Bytes),
    End,
}

/// The half of a channel that the link's reader feeds.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    inbox: RefCell<VecDeque<Inbound>>,
    unread: Cell<u32>,
    arrived: Notify,
    credit: Cell<u64>,
    granted: Notify,
    closed: Cell<bool>,
    closing: Notify,
}

impl Mailbox {
    /// False when the host overran its window.
    pub(crate) fn deliver(&self, inbound: Inbound) -> bool {
        if let Inbound::Data(bytes) = &inbound {
            let unread = self.unread.get().saturating_add(bytes.len() as u32);
            if unread > WINDOW {
                return false;
            }
            self.unread.set(unread);
        }
        self.inbox.borrow_mut().push_back(inbound);
        self.arrived.notify_one();
        true
    }

    pub(crate) fn grant(&self, bytes: u32) {
        self.credit.set(self.credit.get().saturating_add(bytes.into()));
        self.granted.notify_one();
    }

    pub(crate) fn close(&self) {
        self.closed.set(true);
        self.closing.notify_one();
    }
}

#[derive(Debug)]
pub(crate) struct Channel {
    id: u32,
    outbox: Outbox,
    mailbox: Rc<Mailbox>,
    consumed: Cell<u32>,
    channels: Weak<Channels>,
}

impl Drop for Channel {
    fn drop(&mut self) {
        if let Some(channels) = self.channels.upgrade() {
            channels.forget(self.id);
        }
    }
}

impl Channel {
    pub(crate) fn new(id: u32, outbox: Outbox, channels: Weak<Channels>) -> (Channel, Rc<Mailbox>) {
        let mailbox = Rc::new(Mailbox::default());
        mailbox.credit.set(WINDOW.into());
        (Channel { id, outbox, mailbox: Rc::clone(&mailbox), consumed: Cell::new(0), channels }, mailbox)
    }

    pub(crate) async fn reply(&self, reply: &Reply) -> Result<(), Gone> {
        let frames = encode(self.id, reply).or_else(|error| {
            let fault = Fault { code: FaultCode::LimitExceeded, message: format!("the reply is too long: {error}") };
            encode(self.id, &Reply::Fault(fault))
        });
        for frame in frames.unwrap_or_default() {
            self.outbox.send(frame).await?;
        }
        Ok(())
    }

    /// Sends one flow-controlled frame, waiting for the host to have room for it.
    pub(crate) async fn send(&self, kind: Kind, payload: Bytes) -> Result<(), Gone> {
        debug_assert!(kind.is_flow_controlled());
        let cost = payload.len() as u64;
        while self.mailbox.credit.get() < cost {
            self.mailbox.granted.notified().await;
        }
        self.mailbox.credit.set(self.mailbox.credit.get() - cost);
        self.outbox.send(Frame::new(self.id, kind, payload)).await
    }

    /// No more data comes on this channel; replies still do.
    pub(crate) async fn end(&self) -> Result<(), Gone> {
        self.outbox.send(Frame::end(self.id)).await
    }

    /// The next message from the host. What is taken here is granted again, a quarter of the window at a time.
    pub(crate) async fn recv(&self) -> Result<Inbound, Gone> {
        loop {
            let next = self.mailbox.inbox.borrow_mut().pop_front();
            let Some(inbound) = next else {
                self.mailbox.arrived.notified().await;
                continue;
            };
            if let Inbound::Data(bytes) = &inbound {
                let taken = bytes.len() as u32;
                self.mailbox.unread.set(self.mailbox.unread.get() - taken);
                let consumed = self.consumed.get() + taken;
                if consumed >= WINDOW / 4 {
                    self.consumed.set(0);
                    self.outbox.send(Frame::credit(self.id, consumed)).await?;
                } else {
                    self.consumed.set(consumed);
                }
            }
            return Ok(inbound);
        }
    }

    /// Waits until the host closes the channel.
    pub(crate) async fn closed(&self) {
        while !self.mailbox.closed.get() {
            self.mailbox.closing.notified().await;
        }
    }
}
