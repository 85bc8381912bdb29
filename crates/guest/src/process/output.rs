//! One of a command's output streams on its way into the log, never cut inside a character.

use std::os::fd::OwnedFd;

use super::log::Stream;
use super::state::Process;
use crate::fd::{Fd, READ_SIZE};

/// One of a command's two streams, and the start of a character whose end has not come yet.
#[derive(Debug)]
pub(super) struct Output {
    stream: Stream,
    fd: Option<Fd>,
    carry: Vec<u8>,
}

impl Output {
    pub(super) fn new(stream: Stream, fd: Option<OwnedFd>) -> std::io::Result<Output> {
        Ok(Output { stream, fd: fd.map(Fd::readable).transpose()?, carry: Vec::new() })
    }

    pub(super) fn is_open(&self) -> bool {
        self.fd.is_some()
    }

    pub(super) async fn read(&mut self, process: &Process) {
        let Some(fd) = &self.fd else { return };
        let (stream, carry) = (self.stream, &mut self.carry);
        let more = fd.read(READ_SIZE - carry.len(), |bytes| take(stream, carry, bytes, process)).await;
        if !matches!(more, Ok(true)) {
            self.flush(process);
            self.fd = None;
        }
    }

    /// Reads without waiting; true when there was nothing.
    pub(super) fn is_empty_now(&mut self, process: &Process) -> bool {
        let Some(fd) = &self.fd else { return true };
        let (stream, carry) = (self.stream, &mut self.carry);
        match fd.try_read(READ_SIZE - carry.len(), |bytes| take(stream, carry, bytes, process)) {
            Ok(None) => true,
            Ok(Some(true)) => false,
            Ok(Some(false)) | Err(_) => {
                self.fd = None;
                true
            }
        }
    }

    pub(super) fn flush(&mut self, process: &Process) {
        if !self.carry.is_empty() {
            process.append(self.stream, &std::mem::take(&mut self.carry));
        }
    }
}

/// False at the end of the stream.
fn take(stream: Stream, carry: &mut Vec<u8>, bytes: &[u8], process: &Process) -> bool {
    if carry.is_empty() {
        let (whole, rest) = bytes.split_at(bytes.len() - incomplete_tail(bytes));
        carry.extend_from_slice(rest);
        if !whole.is_empty() {
            process.append(stream, whole);
        }
    } else {
        carry.extend_from_slice(bytes);
        let rest = carry.split_off(carry.len() - incomplete_tail(carry));
        let whole = std::mem::replace(carry, rest);
        if !whole.is_empty() {
            process.append(stream, &whole);
        }
    }
    !bytes.is_empty()
}

/// How many bytes at the end are the start of a UTF-8 character that may still be completed.
fn incomplete_tail(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(3) {
        let byte = bytes[bytes.len() - back];
        let length = match byte {
            0b1100_0000..=0b1101_1111 => 2,
            0b1110_0000..=0b1110_1111 => 3,
            0b1111_0000..=0b1111_0111 => 4,
            0b1000_0000..=0b1011_1111 => continue,
            _ => return 0,
        };
        return if length > back { back } else { 0 };
    }
    0
}

#[cfg(test)]
mod tests {
    use super::incomplete_tail;

    #[test]
    fn only_the_start_of_a_character_is_held_back() {
        for (text, expected) in [("", 0), ("abc", 0), ("ñ", 0), ("€", 0), ("😀", 0)] {
            assert_eq!(incomplete_tail(text.as_bytes()), expected, "{text}");
        }
        assert_eq!(incomplete_tail(&"😀".as_bytes()[..3]), 3);
        assert_eq!(incomplete_tail(&"x€".as_bytes()[..2]), 1);
        assert_eq!(incomplete_tail(b"\xff\xfe"), 0);
        assert_eq!(incomplete_tail(b"\x80\x80\x80\x80"), 0);
    }
}
