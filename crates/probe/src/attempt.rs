//! The result of an attempt, and the one way in which attempts call the kernel.

use std::ffi::{CString, c_long};
use std::io;
use std::path::PathBuf;

use serde_json::Value;

/// The kernel's error, and the call.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) at: String,
    pub(crate) errno: i32,
}

impl Refused {
    pub(crate) fn new(at: &str, errno: i32) -> Refused {
        Refused { at: at.to_owned(), errno }
    }
}

pub(crate) type Outcome<T = Value> = Result<T, Refused>;

/// Adds the name of the call to an error of the kernel.
pub(crate) trait At<T> {
    fn at(self, what: &str) -> Outcome<T>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, what: &str) -> Outcome<T> {
        self.map_err(|error| Refused::new(what, error.raw_os_error().unwrap_or(libc::EIO)))
    }
}

/// A call with arguments as the kernel takes them. Pointers among them must stay valid until it returns.
pub(crate) fn system_call(at: &str, number: c_long, arguments: &[usize]) -> Outcome<i64> {
    let argument = |index: usize| arguments.get(index).copied().unwrap_or_default();
    // SAFETY: the callers pass pointers to live data of the sizes that the calls ask for, or numbers.
    let answer =
        unsafe { libc::syscall(number, argument(0), argument(1), argument(2), argument(3), argument(4), argument(5)) };
    if answer < 0 { Err(io::Error::last_os_error()).at(at) } else { Ok(answer) }
}

/// Errors that mean permission denied, or that there is no target.
const SHUT: [i32; 6] = [libc::EPERM, libc::EACCES, libc::ENOSYS, libc::EAFNOSUPPORT, libc::ESRCH, libc::EROFS];

/// An attempt with invalid arguments: an error about those means that it was let through.
pub(crate) fn let_through(outcome: Outcome<i64>) -> Outcome {
    match outcome {
        Ok(answer) => Ok(answer.into()),
        Err(refused) if SHUT.contains(&refused.errno) => Err(refused),
        Err(refused) => Ok(format!("let through: {}", io::Error::from_raw_os_error(refused.errno)).into()),
    }
}

pub(crate) fn c_string(text: &str) -> CString {
    CString::new(text).unwrap_or_default()
}

pub(crate) fn pointer(text: &CString) -> usize {
    text.as_ptr() as usize
}

/// Decimal, hexadecimal and negative numbers.
pub(crate) fn number(text: &str) -> Outcome<i64> {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| Refused::new("number", libc::EINVAL))
}

/// The token comes reversed, so that a search does not find its own command line.
pub(crate) fn unreversed(text: &str) -> String {
    text.chars().rev().collect()
}

/// A path in a world-writable folder that no other probe uses.
pub(crate) fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("probe-{}-{name}", std::process::id()))
}
