//! What comes of an attempt, and the one way by which attempts call the kernel.

use std::ffi::{CString, c_long};
use std::io;
use std::path::PathBuf;

use serde_json::Value;

/// What the kernel said, and to which call.
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

/// Puts the name of what was tried to an error of the kernel's.
pub(crate) trait At<T> {
    fn at(self, what: &str) -> Outcome<T>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, what: &str) -> Outcome<T> {
        self.map_err(|error| Refused::new(what, error.raw_os_error().unwrap_or(libc::EIO)))
    }
}

/// A call with arguments as the kernel takes them. Pointers among them must be to what lives until it is over.
pub(crate) fn system_call(at: &str, number: c_long, arguments: &[usize]) -> Outcome<i64> {
    let argument = |index: usize| arguments.get(index).copied().unwrap_or_default();
    // SAFETY: the callers pass pointers to live data of the sizes that the calls ask for, or numbers.
    let answer =
        unsafe { libc::syscall(number, argument(0), argument(1), argument(2), argument(3), argument(4), argument(5)) };
    if answer < 0 { Err(io::Error::last_os_error()).at(at) } else { Ok(answer) }
}

/// Errors with which the kernel says that nobody like us may do this, or that there is nothing to do it to.
const SHUT: [i32; 6] = [libc::EPERM, libc::EACCES, libc::ENOSYS, libc::EAFNOSUPPORT, libc::ESRCH, libc::EROFS];

/// An attempt with arguments that make no sense on purpose: whoever is told so was let through.
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

/// Numbers as people write them, also in hexadecimal and below zero.
pub(crate) fn number(text: &str) -> Outcome<i64> {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| Refused::new("number", libc::EINVAL))
}

/// A token that is looked for comes reversed: so the command line that looks for it is not what is found.
pub(crate) fn unreversed(text: &str) -> String {
    text.chars().rev().collect()
}

/// A place in a folder that everybody may write to, and that no other probe uses.
pub(crate) fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("probe-{}-{name}", std::process::id()))
}
