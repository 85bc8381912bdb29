//! Errors that stop a walk.

use std::io;
use std::path::{Path, PathBuf};

use cofferdam_protocol::{Fault, FaultCode, TreeError};
use rustix::io::Errno;

/// Why a tree could not be packed or unpacked.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The operating system refused.
    #[error("cannot {doing} {path:?}: {error}")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// Its error.
        error: io::Error,
    },
    /// The stream is no walk.
    #[error(transparent)]
    Stream(#[from] TreeError),
    /// A limit was reached.
    #[error("{path:?}: {what}")]
    Ceiling {
        /// For people.
        what: String,
        /// Where.
        path: PathBuf,
    },
}

impl Trouble {
    pub(crate) fn at(doing: &'static str, path: &Path) -> impl FnOnce(rustix::io::Errno) -> Trouble {
        move |error| Trouble::Io { doing, path: path.to_owned(), error: error.into() }
    }

    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Trouble {
        move |error| Trouble::Io { doing, path: path.to_owned(), error }
    }

    /// As a fault for the caller.
    pub fn into_fault(self) -> Fault {
        match self {
            Trouble::Io { doing, path, error } => io_fault(doing, &path, &error),
            Trouble::Ceiling { what, path } => {
                Fault { code: FaultCode::LimitExceeded, message: format!("\"{}\": {what}", shown(&path)) }
            }
            Trouble::Stream(error) => {
                Fault { code: FaultCode::InvalidArgument, message: format!("the tree cannot be read: {error}") }
            }
        }
    }
}

/// An operating system error as a fault for the caller, on either end.
pub fn io_fault(doing: &str, path: &Path, error: &io::Error) -> Fault {
    let (code, why) = match Errno::from_io_error(error) {
        Some(Errno::NOENT) => (FaultCode::FileNotFound, "no such file or directory".to_owned()),
        Some(Errno::EXIST | Errno::NOTEMPTY) => (FaultCode::FileExists, "it already exists".to_owned()),
        Some(Errno::NOTDIR) => (FaultCode::NotADirectory, "a part of the path is not a directory".to_owned()),
        Some(Errno::ISDIR) => (FaultCode::IsADirectory, "it is a directory".to_owned()),
        Some(Errno::ACCESS | Errno::PERM) => (FaultCode::PermissionDenied, "permission denied".to_owned()),
        Some(Errno::ROFS) => (FaultCode::PermissionDenied, "the file system is read-only".to_owned()),
        Some(Errno::TXTBSY) => (FaultCode::PermissionDenied, "the program is running".to_owned()),
        Some(Errno::NOSPC | Errno::DQUOT) => {
            (FaultCode::LimitExceeded, "no space left on the device; remove something first".to_owned())
        }
        Some(Errno::FBIG) => (FaultCode::LimitExceeded, "the file would be too large".to_owned()),
        Some(Errno::NAMETOOLONG) => (FaultCode::InvalidArgument, "the path is longer than Linux allows".to_owned()),
        Some(Errno::LOOP) => (FaultCode::InvalidArgument, "its symbolic links form a loop".to_owned()),
        Some(Errno::INVAL) => (FaultCode::InvalidArgument, "the file system does not take this path".to_owned()),
        Some(Errno::NXIO) => (FaultCode::InvalidArgument, NOT_REGULAR.to_owned()),
        None if error.kind() == io::ErrorKind::InvalidInput => (FaultCode::InvalidArgument, error.to_string()),
        _ => (FaultCode::Internal, error.to_string()),
    };
    Fault { code, message: format!("cannot {doing} \"{}\": {why}", shown(path)) }
}

pub(crate) const NOT_REGULAR: &str = "it is a device, a socket or a FIFO, not a regular file";

fn shown(path: &Path) -> String {
    let shown = path.display().to_string();
    match shown.len() {
        0..=300 => shown,
        _ => shown.chars().take(300).chain("…".chars()).collect(),
    }
}
