//! Control messages as bytes: postcard, in fragments where one frame is too short.
//!
//! The order of fields and variants *is* the encoding: append, never reorder, and raise [`crate::GENERATION`] when an
//! older peer would misread the result. `tests/snapshot.rs` holds the bytes of the present generation.

use bytes::Bytes;
use serde::{Serialize, de::DeserializeOwned};

use crate::{Frame, GENERATION, Kind, MAX_MESSAGE, MAX_PAYLOAD, MAX_SETUP};

/// Longest fragment of a message in one frame.
const FRAGMENT: usize = 64 * 1024;

/// A message that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// Not postcard of the expected type.
    #[error("a message could not be decoded: {0}")]
    Malformed(postcard::Error),
    /// Longer than [`MAX_MESSAGE`].
    #[error("a message is longer than {MAX_MESSAGE} bytes")]
    TooLong,
    /// The first frame is no handshake of ours.
    #[error("the peer is not a cofferdam guest")]
    NotAGuest,
    /// The first frame of a guest's first stream is something else.
    #[error("the first frame is not a setup")]
    NotASetup,
    /// Longer than [`MAX_SETUP`].
    #[error("the setup of the sandbox takes {0} bytes, more than the {MAX_SETUP} allowed")]
    SetupTooLong(usize),
    /// Built from another version of this crate.
    #[error("the peer speaks protocol generation {0}, this build speaks {GENERATION}")]
    Generation(u16),
}

/// Reads one message; trailing bytes are an error.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, MessageError> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        Ok(_) => Err(MessageError::Malformed(postcard::Error::DeserializeBadEncoding)),
        Err(error) => Err(MessageError::Malformed(error)),
    }
}

/// The frames that carry `message` on `channel`.
pub fn encode<T: Serialize>(channel: u32, message: &T) -> Result<Vec<Frame>, MessageError> {
    let mut rest = Bytes::from(postcard::to_allocvec(message).map_err(MessageError::Malformed)?);
    if rest.len() > MAX_MESSAGE {
        return Err(MessageError::TooLong);
    }
    let mut frames = Vec::with_capacity(1);
    while rest.len() > FRAGMENT {
        frames.push(Frame::new(channel, Kind::More, rest.split_to(FRAGMENT)));
    }
    frames.push(Frame::new(channel, Kind::Message, rest));
    Ok(frames)
}

/// The payload of one [`Kind::Data`] frame that carries `items`.
pub fn encode_data<T: Serialize>(items: &[T]) -> Result<Bytes, MessageError> {
    let bytes = postcard::to_allocvec(items).map_err(MessageError::Malformed)?;
    if bytes.len() > MAX_PAYLOAD { Err(MessageError::TooLong) } else { Ok(bytes.into()) }
}

/// Puts a message together from its fragments.
#[derive(Debug, Default)]
pub struct Assembler {
    parts: Vec<u8>,
}

impl Assembler {
    /// Takes a [`Kind::More`] payload.
    pub fn more(&mut self, payload: &[u8]) -> Result<(), MessageError> {
        if self.parts.len() + payload.len() > MAX_MESSAGE {
            return Err(MessageError::TooLong);
        }
        self.parts.extend_from_slice(payload);
        Ok(())
    }

    /// Takes the [`Kind::Message`] payload and returns the message.
    pub fn finish<T: DeserializeOwned>(&mut self, payload: &[u8]) -> Result<T, MessageError> {
        if self.parts.is_empty() {
            return decode(payload);
        }
        self.more(payload)?;
        decode(&std::mem::take(&mut self.parts))
    }
}
