//! Small conversions that several DTOs share.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use cofferdam_core::Command;
use napi::bindgen_prelude::{Either, Uint8Array};

pub(crate) fn millis(ms: f64) -> Duration {
    Duration::from_millis(ms as u64)
}

pub(crate) fn unix_ms(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_millis() as f64)
}

/// Output as text; what is not UTF-8 is replaced.
pub(crate) fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Copied, because the caller may go on writing to its own.
pub(crate) fn bytes(data: &Uint8Array) -> Bytes {
    Bytes::copy_from_slice(data)
}

/// A string is for the shell; an array is a program with its arguments.
pub(crate) fn command(command: Either<String, Vec<String>>) -> Command {
    match command {
        Either::A(script) => Command::Shell(script),
        Either::B(words) => Command::Program(words),
    }
}
