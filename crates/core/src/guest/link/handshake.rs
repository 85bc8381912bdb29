//! The guest's half of the handshake: its hello, the first frame of every stream.

use std::time::Duration;

use bytes::BytesMut;
use cofferdam_protocol::{Decoder, Hello, MessageError};

use super::LinkEnd;
use super::frames::{Reader, read_more};

/// How long a guest may take to send its hello on an open stream.
pub(crate) const HELLO_TIMEOUT: Duration = Duration::from_secs(20);

/// How much of an unexpected greeting the error quotes.
const MAX_SHOWN: usize = 300;

/// The hello, and what was read after it.
pub(super) struct Handshake {
    pub(super) hello: Hello,
    pub(super) decoder: Decoder,
    pub(super) buffer: BytesMut,
}

pub(super) async fn read_hello(reader: &mut Reader) -> Result<Handshake, LinkEnd> {
    let (mut decoder, mut buffer) = (Decoder::default(), BytesMut::new());
    let first = async {
        loop {
            match decoder.next(&mut buffer) {
                Ok(None) => {}
                Ok(Some(frame)) => {
                    return Hello::from_frame(&frame).map_err(|error| match error {
                        MessageError::Generation(theirs) => LinkEnd::Generation(theirs),
                        other => LinkEnd::Protocol(other.to_string()),
                    });
                }
                // An engine that cannot start the link process writes its error to the stream.
                Err(_) => {
                    let text = String::from_utf8_lossy(&buffer[..buffer.len().min(MAX_SHOWN)]).trim().to_owned();
                    return Err(LinkEnd::Broken(format!("expected the guest's hello, got {text:?}")));
                }
            }
            match read_more(reader, &mut buffer).await {
                Ok(0) => return Err(LinkEnd::Broken("it ended before the guest's hello".to_owned())),
                Ok(_) => {}
                Err(error) => return Err(LinkEnd::Broken(error.to_string())),
            }
        }
    };
    let silent = || LinkEnd::Broken(format!("no hello from the guest within {} s", HELLO_TIMEOUT.as_secs()));
    let hello = tokio::time::timeout(HELLO_TIMEOUT, first).await.map_err(|_| silent())??;
    Ok(Handshake { hello, decoder, buffer })
}
