//! Small conversions that several DTOs share.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use cofferdam_core::Command;
use napi::Env;
use napi::bindgen_prelude::{BufferSlice, Either, Uint8Array};

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

/// V8 lets some 64 MB of buffers pile up before it collects them. Counting each several times makes it look sooner, so
/// that a long stream costs little memory.
const EXTRA_WEIGHT: i64 = 3;

/// A piece of a stream as a buffer, without copying it where the runtime allows that.
pub(crate) fn buffer<'env>(env: &'env Env, bytes: Bytes) -> napi::Result<BufferSlice<'env>> {
    if bytes.is_empty() {
        return BufferSlice::copy_from(env, bytes);
    }
    let (data, length) = (bytes.as_ptr().cast_mut(), bytes.len());
    let weight = length as i64 * EXTRA_WEIGHT;
    env.adjust_external_memory(weight)?;
    // SAFETY: `bytes` keeps the memory alive until the finalizer drops it, and nothing else of ours reads or writes it: a
    // frame's payload has one owner, so what JavaScript writes to it is JavaScript's own business.
    unsafe {
        BufferSlice::from_external(env, data, length, bytes, move |env, bytes: Bytes| {
            drop(bytes);
            let _ = env.adjust_external_memory(-weight);
        })
    }
}
