//! The setup, which a backend writes to a guest's first stream before anything else. The guest's hello is the answer.

use bytes::BytesMut;
use cofferdam_protocol::{MAX_SETUP, MessageError, Setup};

use crate::{Error, ErrorCode, Result};

pub(crate) fn setup_bytes(setup: &Setup) -> Result<BytesMut> {
    let frame = setup.to_frame().map_err(|error| match error {
        MessageError::SetupTooLong(bytes) => Error::invalid(format!(
            "the environment and the labels of a sandbox take {bytes} bytes, at most {MAX_SETUP} are possible; write what is \
             long to a file in the sandbox"
        )),
        other => Error::new(ErrorCode::Internal, format!("the sandbox's setup could not be encoded: {other}")),
    })?;
    let mut bytes = BytesMut::new();
    frame.encode(&mut bytes);
    Ok(bytes)
}
