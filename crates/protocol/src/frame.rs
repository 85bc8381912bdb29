//! Framing: `u32 length | u32 channel | u8 kind | payload`, little endian.
//!
//! Invariant: a decoder never holds more than one header and one payload of [`MAX_PAYLOAD`] bytes beyond what the
//! caller fed it, and after an invalid header it returns only that error.

use std::io::IoSlice;

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Bytes before the payload of a frame.
pub const HEADER_LEN: usize = 9;

/// The longest payload: 64 KiB of data and room for an output chunk's sequence number.
pub const MAX_PAYLOAD: usize = 64 * 1024 + 8;

/// What a frame's payload is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// The last, usually the only, fragment of a postcard message.
    Message = 0,
    /// A fragment of a message that goes on in the next frame of this channel.
    More = 1,
    /// Raw bytes: a file's content or a process's input.
    Data = 2,
    /// `u64` sequence number, then bytes a process wrote to its standard output.
    Stdout = 3,
    /// `u64` sequence number, then bytes a process wrote to its standard error.
    Stderr = 4,
    /// No more [`Kind::Data`] in this direction.
    End = 5,
    /// `u32`: the receiver may send this many more bytes on this channel.
    Credit = 6,
    /// The sender closes this channel.
    Close = 7,
}

impl Kind {
    fn from_byte(byte: u8) -> Option<Kind> {
        Some(match byte {
            0 => Kind::Message,
            1 => Kind::More,
            2 => Kind::Data,
            3 => Kind::Stdout,
            4 => Kind::Stderr,
            5 => Kind::End,
            6 => Kind::Credit,
            7 => Kind::Close,
            _ => return None,
        })
    }

    /// Whether frames of this kind use up the channel's credit.
    pub fn is_flow_controlled(self) -> bool {
        matches!(self, Kind::Data | Kind::Stdout | Kind::Stderr)
    }
}

/// One unit on the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Chosen by the host.
    pub channel: u32,
    /// How to read the payload.
    pub kind: Kind,
    /// At most [`MAX_PAYLOAD`] bytes.
    pub payload: Bytes,
}

impl Frame {
    /// A frame with this payload.
    pub fn new(channel: u32, kind: Kind, payload: impl Into<Bytes>) -> Frame {
        let payload = payload.into();
        debug_assert!(payload.len() <= MAX_PAYLOAD);
        Frame { channel, kind, payload }
    }

    /// A grant of `bytes` more.
    pub fn credit(channel: u32, bytes: u32) -> Frame {
        Frame::new(channel, Kind::Credit, Bytes::copy_from_slice(&bytes.to_le_bytes()))
    }

    /// The end of data in this direction.
    pub fn end(channel: u32) -> Frame {
        Frame::new(channel, Kind::End, Bytes::new())
    }

    /// The end of a channel.
    pub fn close(channel: u32) -> Frame {
        Frame::new(channel, Kind::Close, Bytes::new())
    }

    /// The header that goes before the payload.
    pub fn header(&self) -> [u8; HEADER_LEN] {
        encode_header(self.channel, self.kind, self.payload.len())
    }

    /// Appends header and payload to `out`.
    pub fn encode(&self, out: &mut BytesMut) {
        out.reserve(HEADER_LEN + self.payload.len());
        out.put_slice(&self.header());
        out.put_slice(&self.payload);
    }

    /// The amount in a [`Kind::Credit`] frame.
    pub fn credit_amount(&self) -> Result<u32, FrameError> {
        let bytes: [u8; 4] = self.payload.as_ref().try_into().map_err(|_| FrameError::Malformed("credit"))?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// Takes the sequence number off a [`Kind::Stdout`] or [`Kind::Stderr`] payload.
    pub fn into_output(mut self) -> Result<(u64, Bytes), FrameError> {
        if self.payload.len() < 8 {
            return Err(FrameError::Malformed("output chunk"));
        }
        let seq = self.payload.get_u64_le();
        Ok((seq, self.payload))
    }
}

/// A frame's header.
pub fn encode_header(channel: u32, kind: Kind, payload_len: usize) -> [u8; HEADER_LEN] {
    let mut header = [0; HEADER_LEN];
    header[..4].copy_from_slice(&(payload_len as u32).to_le_bytes());
    header[4..8].copy_from_slice(&channel.to_le_bytes());
    header[8] = kind as u8;
    header
}

/// Why a byte stream is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A length past [`MAX_PAYLOAD`].
    #[error("a frame announces {0} bytes, more than the {MAX_PAYLOAD} allowed")]
    TooLong(u32),
    /// A kind this generation does not know.
    #[error("a frame has the unknown kind {0}")]
    UnknownKind(u8),
    /// A payload that does not fit its kind.
    #[error("a {0} frame is malformed")]
    Malformed(&'static str),
}

/// Cuts a byte stream into frames.
///
/// ```
/// use cofferdam_protocol::{Decoder, Frame, Kind};
/// let mut wire = bytes::BytesMut::new();
/// Frame::new(7, Kind::Data, &b"hello"[..]).encode(&mut wire);
/// let mut decoder = Decoder::default();
/// assert_eq!(decoder.next(&mut wire).unwrap().unwrap().channel, 7);
/// assert_eq!(decoder.next(&mut wire), Ok(None));
/// ```
#[derive(Debug, Default)]
pub struct Decoder {
    failed: Option<FrameError>,
}

impl Decoder {
    /// Takes the next whole frame off the front of `buffer`, or `None` when more bytes are needed.
    pub fn next(&mut self, buffer: &mut BytesMut) -> Result<Option<Frame>, FrameError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let Some(header) = buffer.first_chunk::<HEADER_LEN>() else { return Ok(None) };
        let length = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
        let channel = u32::from_le_bytes([header[4], header[5], header[6], header[7]]);
        let kind = header[8];
        if length as usize > MAX_PAYLOAD {
            return Err(self.fail(FrameError::TooLong(length)));
        }
        let Some(kind) = Kind::from_byte(kind) else { return Err(self.fail(FrameError::UnknownKind(kind))) };
        let total = HEADER_LEN + length as usize;
        if buffer.len() < total {
            buffer.reserve(total - buffer.len());
            return Ok(None);
        }
        buffer.advance(HEADER_LEN);
        Ok(Some(Frame { channel, kind, payload: buffer.split_to(length as usize).freeze() }))
    }

    fn fail(&mut self, error: FrameError) -> FrameError {
        self.failed = Some(error.clone());
        error
    }
}

/// Slices for one vectored write of frames. `headers` are their headers, in order.
pub fn io_slices<'a>(frames: &'a [Frame], headers: &'a [[u8; HEADER_LEN]]) -> Vec<IoSlice<'a>> {
    let mut slices = Vec::with_capacity(frames.len() * 2);
    for (frame, header) in frames.iter().zip(headers) {
        slices.push(IoSlice::new(header));
        if !frame.payload.is_empty() {
            slices.push(IoSlice::new(&frame.payload));
        }
    }
    slices
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_frame() -> impl Strategy<Value = Frame> {
        (any::<u32>(), 0u8..8, proptest::collection::vec(any::<u8>(), 0..200))
            .prop_map(|(channel, kind, payload)| Frame::new(channel, Kind::from_byte(kind).unwrap(), payload))
    }

    proptest! {
        #[test]
        fn frames_survive_any_way_of_cutting_the_stream(
            frames in proptest::collection::vec(any_frame(), 0..20),
            cuts in proptest::collection::vec(1usize..40, 1..50),
        ) {
            let mut wire = BytesMut::new();
            frames.iter().for_each(|frame| frame.encode(&mut wire));
            let (mut decoder, mut buffer, mut seen) = (Decoder::default(), BytesMut::new(), Vec::new());
            for cut in cuts.iter().cycle() {
                if wire.is_empty() { break }
                let piece = wire.split_to((*cut).min(wire.len()));
                buffer.extend_from_slice(&piece);
                while let Some(frame) = decoder.next(&mut buffer).unwrap() { seen.push(frame) }
            }
            prop_assert_eq!(seen, frames);
            prop_assert!(buffer.is_empty());
        }

        #[test]
        fn garbage_never_panics_and_never_grows(garbage in proptest::collection::vec(any::<u8>(), 0..4096)) {
            let mut buffer = BytesMut::from(&garbage[..]);
            let mut decoder = Decoder::default();
            while let Ok(Some(frame)) = decoder.next(&mut buffer) {
                prop_assert!(frame.payload.len() <= MAX_PAYLOAD);
                let _ = frame.credit_amount();
                let _ = frame.clone().into_output();
                let _ = crate::decode::<crate::Reply>(&frame.payload);
                let _ = crate::decode::<crate::Request>(&frame.payload);
            }
        }
    }

    #[test]
    fn an_impossible_header_is_final() {
        let mut decoder = Decoder::default();
        let mut buffer = BytesMut::from(&[0xff; 16][..]);
        let error = decoder.next(&mut buffer).unwrap_err();
        assert_eq!(error, FrameError::TooLong(u32::MAX));
        buffer.clear();
        Frame::end(1).encode(&mut buffer);
        assert_eq!(decoder.next(&mut buffer), Err(error));
    }
}
