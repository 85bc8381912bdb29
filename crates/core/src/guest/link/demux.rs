//! Passes each frame of a link to the call that waits for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use cofferdam_protocol::{Assembler, Frame, Kind, LINK_CHANNEL, Notice, WINDOW, decode};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use super::{Event, LinkEnd, OnNotice};
use crate::guest::output::StreamName;
use crate::lock::lock;

/// State shared by a link, its channels and its two tasks.
pub(crate) struct Shared {
    pub(crate) outbox: mpsc::UnboundedSender<Frame>,
    pub(super) channels: Mutex<Channels>,
    pub(super) end: OnceLock<LinkEnd>,
    pub(super) ended: CancellationToken,
    pub(super) on_notice: OnNotice,
}

#[derive(Default)]
pub(super) struct Channels {
    pub(super) last: u32,
    pub(super) open: HashMap<u32, Slot>,
}

pub(super) struct Slot {
    pub(super) events: mpsc::UnboundedSender<Event>,
    pub(super) credit: Arc<Semaphore>,
    pub(super) window: u32,
    pub(super) answers: u8,
    /// Whether the guest may end its half, once.
    pub(super) may_end: bool,
    pub(super) assembler: Assembler,
}

impl Shared {
    pub(super) fn channels(&self) -> MutexGuard<'_, Channels> {
        lock(&self.channels)
    }

    pub(crate) fn end(&self) -> LinkEnd {
        self.end.get().cloned().unwrap_or_else(|| LinkEnd::Broken("it was closed".to_owned()))
    }

    pub(crate) fn forget(&self, id: u32) -> bool {
        self.channels().open.remove(&id).is_some()
    }

    /// The receiver has read `bytes`: the guest may send as many again.
    pub(crate) fn replenish(&self, id: u32, bytes: u32) {
        if let Some(slot) = self.channels().open.get_mut(&id) {
            slot.window += bytes;
        }
        let _ = self.outbox.send(Frame::credit(id, bytes));
    }

    pub(super) fn finish(&self, end: LinkEnd) {
        let _ = self.end.set(end);
        // Dropping the senders wakes every pending call.
        let open = std::mem::take(&mut self.channels().open);
        for slot in open.values() {
            slot.credit.close();
        }
        self.ended.cancel();
    }

    /// Handles a notice. `Ending` ends the link.
    fn take_notice(&self, frame: &Frame) -> Result<(), LinkEnd> {
        let malformed = |what: String| LinkEnd::Protocol(format!("unreadable notice: {what}"));
        if frame.kind != Kind::Message {
            return Err(malformed(format!("{:?}", frame.kind)));
        }
        let notice: Notice = decode(&frame.payload).map_err(|error| malformed(error.to_string()))?;
        match notice {
            Notice::Ending(ending) => Err(LinkEnd::GuestEnded(ending)),
            notice => {
                (self.on_notice)(&notice);
                Ok(())
            }
        }
    }

    pub(super) fn take(&self, frame: Frame) -> Result<(), LinkEnd> {
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
        // A cancelled call may still get an answer.
        let Some(slot) = channels.open.get_mut(&id) else { return Ok(()) };
        if frame.kind.is_flow_controlled() {
            let length = frame.payload.len() as u32;
            if length == 0 {
                return Err("a data frame without data".to_owned());
            }
            slot.window = slot.window.checked_sub(length).ok_or("more data than was granted")?;
        }
        let event = match frame.kind {
            Kind::More => return slot.assembler.more(&frame.payload).map_err(|error| error.to_string()),
            Kind::Message => {
                slot.answers = slot.answers.checked_sub(1).ok_or("more replies than the request has")?;
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
                    return Err("more credit than the window has".to_owned());
                }
                slot.credit.add_permits(amount);
                return Ok(());
            }
            Kind::End if std::mem::take(&mut slot.may_end) => Event::End,
            Kind::End | Kind::Close => return Err("a frame that only hosts send".to_owned()),
        };
        // The call may have just been dropped.
        let _ = slot.events.send(event);
        Ok(())
    }
}
