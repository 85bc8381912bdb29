//! The way out of a link: frames queue here, first come first served, and leave in as few writes as possible.
//!
//! Invariant: at most [`SLOTS`] frames wait at once; who wants to send more waits in line, so that no channel can
//! overtake another by more than its own frame.

use std::io::{self, IoSlice};

use cofferdam_protocol::{Frame, HEADER_LEN};
use tokio::sync::mpsc;

use crate::fd::Fd;

const SLOTS: usize = 32;

#[derive(Debug, Clone)]
pub(crate) struct Outbox(mpsc::Sender<Frame>);

/// The link is gone; nobody reads any more.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gone;

impl Outbox {
    pub(crate) fn new() -> (Outbox, mpsc::Receiver<Frame>) {
        let (sender, receiver) = mpsc::channel(SLOTS);
        (Outbox(sender), receiver)
    }

    pub(crate) async fn send(&self, frame: Frame) -> Result<(), Gone> {
        self.0.send(frame).await.map_err(|_| Gone)
    }
}

/// Writes frames until the last sender is gone or the stream breaks.
pub(crate) async fn drain(mut frames: mpsc::Receiver<Frame>, to: &Fd) -> io::Result<()> {
    let mut batch = Vec::with_capacity(SLOTS);
    while frames.recv_many(&mut batch, SLOTS).await > 0 {
        write_frames(&batch, to).await?;
        batch.clear();
    }
    Ok(())
}

async fn write_frames(frames: &[Frame], to: &Fd) -> io::Result<()> {
    let headers: Vec<[u8; HEADER_LEN]> = frames.iter().map(Frame::header).collect();
    let mut slices: Vec<IoSlice<'_>> = Vec::with_capacity(frames.len() * 2);
    for (frame, header) in frames.iter().zip(&headers) {
        slices.push(IoSlice::new(header));
        if !frame.payload.is_empty() {
            slices.push(IoSlice::new(&frame.payload));
        }
    }
    let mut rest = &mut slices[..];
    while !rest.is_empty() {
        let written = to.write_vectored(rest).await?;
        IoSlice::advance_slices(&mut rest, written);
    }
    Ok(())
}
