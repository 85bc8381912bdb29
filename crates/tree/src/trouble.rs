//! What stops a walk.

use std::io;
use std::path::{Path, PathBuf};

use cofferdam_protocol::TreeError;

/// Why a tree could not be told or built, for the end that knows what its paths mean.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The operating system refused.
    #[error("cannot {doing} {path:?}: {error}")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// Its answer.
        error: io::Error,
    },
    /// The stream is no walk.
    #[error(transparent)]
    Stream(#[from] TreeError),
    /// A ceiling was reached.
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
}
