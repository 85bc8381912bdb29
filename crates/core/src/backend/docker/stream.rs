//! A container's stream as plain bytes, decoded from the engine's stream format.

use std::io;
use std::pin::Pin;

use bollard::container::LogOutput;
use futures_util::{Stream, StreamExt};
use tokio::io::AsyncWrite;
use tokio_util::io::StreamReader;

use crate::guest::ByteStream;

type Output = Pin<Box<dyn Stream<Item = Result<LogOutput, bollard::errors::Error>> + Send>>;

pub(super) fn byte_stream(output: Output, input: Pin<Box<dyn AsyncWrite + Send>>) -> ByteStream {
    // The guest's standard error is for people who look at the container, not for us.
    let reader = output.filter_map(|item| {
        std::future::ready(match item {
            Ok(LogOutput::StdOut { message } | LogOutput::Console { message }) => Some(Ok(message)),
            Ok(LogOutput::StdErr { .. } | LogOutput::StdIn { .. }) => None,
            Err(error) => Some(Err(io::Error::other(error))),
        })
    });
    ByteStream { reader: Box::pin(StreamReader::new(reader)), writer: input }
}
