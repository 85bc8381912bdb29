//! The two directions of a link.

use std::io;
use std::os::fd::OwnedFd;

use bytes::BytesMut;
use cofferdam_protocol::{Decoder, Frame};

use crate::fd::{Fd, READ_SIZE};

pub(crate) struct Incoming {
    input: Fd,
    decoder: Decoder,
    buffer: BytesMut,
}

/// `input` and `output` may be one socket's two descriptors or two pipes.
pub(crate) fn open(input: OwnedFd, output: OwnedFd) -> io::Result<(Incoming, Fd)> {
    let incoming = Incoming {
        input: Fd::readable(input)?,
        decoder: Decoder::default(),
        buffer: BytesMut::with_capacity(READ_SIZE),
    };
    Ok((incoming, Fd::writable(output)?))
}

impl Incoming {
    /// The next frame of those that were read already.
    pub(crate) fn buffered(&mut self) -> io::Result<Option<Frame>> {
        self.decoder.next(&mut self.buffer).map_err(io::Error::other)
    }

    /// Reads once; false at the end of the stream. Nothing is lost when the wait is given up.
    pub(crate) async fn read(&mut self) -> io::Result<bool> {
        Ok(self.input.read_into(&mut self.buffer).await? > 0)
    }
}
