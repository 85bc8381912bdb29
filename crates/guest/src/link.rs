//! One host's connection: handshake, then frames in and out until the stream ends.
//!
//! A link owns its channels and nothing else: when it ends, the requests under way on it are dropped, but processes
//! live on in [`crate::sandbox::Sandbox`] and the next link can attach to them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::rc::Rc;

use cofferdam_protocol::{Assembler, Frame, Join, Kind, LINK_CHANNEL, Request};
use tokio::task::JoinSet;

use crate::channel::{Channel, Inbound, Mailbox};
use crate::fd::Fd;
use crate::notices::Listener;
use crate::outbox::{self, Outbox};
use crate::requests::{self, Caller};
use crate::sandbox::Sandbox;
use crate::stream::Incoming;

/// The channels of one link, by number.
#[derive(Debug, Default)]
pub(crate) struct Channels(RefCell<HashMap<u32, Rc<Mailbox>>>);

impl Channels {
    pub(crate) fn forget(&self, id: u32) {
        self.0.borrow_mut().remove(&id);
    }

    fn mailbox(&self, id: u32) -> Option<Rc<Mailbox>> {
        self.0.borrow().get(&id).cloned()
    }
}

/// Serves a link until it ends.
pub(crate) async fn serve(sandbox: Rc<Sandbox>, incoming: Incoming, output: Fd) -> io::Result<()> {
    let (outbox, frames) = Outbox::new();
    let presence = sandbox.lease.linked();
    if outbox.send(sandbox.hello().to_frame()).await.is_err() {
        return Ok(());
    }
    let listener = sandbox.notices.join(outbox.clone());
    let mut session = Session {
        sandbox: Rc::clone(&sandbox),
        outbox,
        listener: Rc::clone(&listener),
        channels: Rc::default(),
        partial: HashMap::new(),
        requests: JoinSet::new(),
        client: None,
    };
    let outcome = tokio::select! {
        outcome = session.read_all(incoming) => outcome,
        outcome = outbox::drain(frames, &output) => outcome,
    };
    sandbox.notices.leave(&listener);
    drop(presence);
    outcome
}

struct Session {
    sandbox: Rc<Sandbox>,
    outbox: Outbox,
    listener: Rc<Listener>,
    channels: Rc<Channels>,
    partial: HashMap<u32, Assembler>,
    requests: JoinSet<()>,
    client: Option<crate::clients::Presence>,
}

impl Session {
    async fn read_all(&mut self, mut incoming: Incoming) -> io::Result<()> {
        loop {
            while let Some(frame) = incoming.buffered()? {
                self.take(frame)?;
            }
            while self.requests.try_join_next().is_some() {}
            if !incoming.read().await? {
                return Ok(());
            }
        }
    }

    fn take(&mut self, frame: Frame) -> io::Result<()> {
        if frame.channel == LINK_CHANNEL {
            let join: Join = cofferdam_protocol::decode(&frame.payload).map_err(io::Error::other)?;
            self.client = Some(self.sandbox.clients.enter(join.client));
            return Ok(());
        }
        match frame.kind {
            Kind::More => {
                let assembler = self.partial.entry(frame.channel).or_default();
                assembler.more(&frame.payload).map_err(io::Error::other)?;
            }
            Kind::Message => {
                let mut assembler = self.partial.remove(&frame.channel).unwrap_or_default();
                let request: Request = assembler.finish(&frame.payload).map_err(io::Error::other)?;
                self.begin(frame.channel, request);
            }
            Kind::Data | Kind::End => {
                self.sandbox.lease.touch();
                let inbound = if frame.kind == Kind::End { Inbound::End } else { Inbound::Data(frame.payload) };
                // The channel may have ended before the host knows: drop what still comes for it.
                if let Some(mailbox) = self.channels.mailbox(frame.channel)
                    && !mailbox.deliver(inbound)
                {
                    return Err(io::Error::other("the host overran its window"));
                }
            }
            Kind::Credit => {
                let amount = frame.credit_amount().map_err(io::Error::other)?;
                if let Some(mailbox) = self.channels.mailbox(frame.channel) {
                    mailbox.grant(amount);
                }
            }
            Kind::Close => {
                if let Some(mailbox) = self.channels.mailbox(frame.channel) {
                    mailbox.close();
                }
            }
            Kind::Stdout | Kind::Stderr => return Err(io::Error::other("a host sends no output frames")),
        }
        Ok(())
    }

    fn begin(&mut self, id: u32, request: Request) {
        let (channel, mailbox) = Channel::new(id, self.outbox.clone(), Rc::downgrade(&self.channels));
        self.channels.0.borrow_mut().insert(id, mailbox);
        let sandbox = Rc::clone(&self.sandbox);
        let client = self.client.as_ref().map_or(0, |presence| presence.client());
        let caller = Caller { client, listener: Rc::clone(&self.listener) };
        self.requests.spawn_local(async move {
            let busy = match request {
                // Looking at a sandbox is not using it.
                Request::Status | Request::Stats => None,
                // Watching counts as one use, not as use for as long as it lasts.
                Request::WatchFiles { .. } => {
                    sandbox.lease.touch();
                    None
                }
                _ => Some(sandbox.lease.busy()),
            };
            tokio::select! {
                // The reply is the last frame on a channel; a host that is gone needs none.
                _ = requests::serve(&sandbox, &caller, request, &channel) => {}
                () = channel.closed() => {}
            }
            drop(busy);
        });
    }
}
