//! The outgoing queue of a link: frames leave in order, in as few writes as possible.
//!
//! Invariant: at most [`SLOTS`] frames wait at once; further senders wait in line, so no channel overtakes another by more
//! than its own frame.

use std::cell::Cell;
use std::io::{self, IoSlice};
use std::rc::Rc;

use cofferdam_protocol::{Frame, io_slices};
use tokio::sync::mpsc;

use crate::fd::Fd;

const SLOTS: usize = 32;

#[derive(Debug, Clone)]
pub(crate) struct Outbox {
    frames: mpsc::Sender<Frame>,
    /// Frames that were taken and are not written yet.
    unwritten: Rc<Cell<usize>>,
}

/// The end that a link writes from.
pub(crate) struct Outgoing {
    frames: mpsc::Receiver<Frame>,
    unwritten: Rc<Cell<usize>>,
}

/// The link is gone; nobody reads any more.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gone;

impl Outbox {
    pub(crate) fn new() -> (Outbox, Outgoing) {
        let (sender, receiver) = mpsc::channel(SLOTS);
        let unwritten = Rc::new(Cell::new(0));
        (Outbox { frames: sender, unwritten: Rc::clone(&unwritten) }, Outgoing { frames: receiver, unwritten })
    }

    pub(crate) async fn send(&self, frame: Frame) -> Result<(), Gone> {
        self.frames.send(frame).await.map_err(|_| Gone)
    }

    /// Sends unless the queue is full.
    pub(crate) fn try_send(&self, frame: Frame) {
        let _ = self.frames.try_send(frame);
    }

    /// Whether the kernel has everything that was sent, or nobody reads it any more.
    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_closed() || (self.frames.capacity() == SLOTS && self.unwritten.get() == 0)
    }
}

/// Writes frames until the last sender is gone or the stream breaks.
pub(crate) async fn drain(mut outgoing: Outgoing, to: &Fd) -> io::Result<()> {
    let mut batch = Vec::with_capacity(SLOTS);
    while outgoing.frames.recv_many(&mut batch, SLOTS).await > 0 {
        outgoing.unwritten.set(batch.len());
        write_frames(&batch, to).await?;
        outgoing.unwritten.set(0);
        batch.clear();
    }
    Ok(())
}

async fn write_frames(frames: &[Frame], to: &Fd) -> io::Result<()> {
    let headers: Vec<_> = frames.iter().map(Frame::header).collect();
    let mut slices = io_slices(frames, &headers);
    let mut rest = &mut slices[..];
    while !rest.is_empty() {
        let written = to.write_vectored(rest).await?;
        IoSlice::advance_slices(&mut rest, written);
    }
    Ok(())
}
