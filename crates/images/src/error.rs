//! Errors of images: a kind, and a sentence that says what was tried and what to do next.

use std::fmt::Display;
use std::io;
use std::path::Path;

use rustix::io::Errno;

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, ImageError>;

/// The kind of an error, for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageErrorKind {
    /// The reference is not a valid image name.
    InvalidReference,
    /// Neither the store nor the registry has it.
    NotFound,
    /// The registry wants credentials, or other ones.
    Unauthorized,
    /// The registry's rate limit is reached.
    RateLimited,
    /// The registry cannot be reached, or its answer is invalid.
    Unreachable,
    /// The registry does not answer in time.
    Timeout,
    /// The content does not match its digest.
    DigestMismatch,
    /// A kind of image or layer that cannot be used here.
    Unsupported,
    /// An image for another architecture.
    WrongPlatform,
    /// Larger than the store's limits.
    TooLarge,
    /// A layer or an archive that is broken, or tries to reach out of its folder.
    InvalidLayer,
    /// The disk is full.
    NoSpace,
    /// The store's own folder cannot be used.
    Storage,
}

/// Why an image could not be prepared.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct ImageError {
    /// For programs.
    pub kind: ImageErrorKind,
    /// For people: what was tried, with which value, and what to do next.
    pub message: String,
}

impl ImageError {
    pub(crate) fn new(kind: ImageErrorKind, message: impl Into<String>) -> ImageError {
        ImageError { kind, message: message.into() }
    }

    pub(crate) fn invalid_layer(message: impl Into<String>) -> ImageError {
        ImageError::new(ImageErrorKind::InvalidLayer, message)
    }

    pub(crate) fn unsupported(message: impl Into<String>) -> ImageError {
        ImageError::new(ImageErrorKind::Unsupported, message)
    }

    /// Puts the subject in front of the sentence.
    pub(crate) fn about(self, what: impl Display) -> ImageError {
        ImageError { message: format!("{what}: {}", self.message), ..self }
    }

    /// For a failed call on a path in the store.
    pub(crate) fn storage<E: Into<io::Error>>(doing: &str, path: &Path) -> impl FnOnce(E) -> ImageError {
        move |error| {
            let error = error.into();
            let path = path.display();
            match error.raw_os_error().map(Errno::from_raw_os_error) {
                Some(Errno::NOSPC | Errno::DQUOT) => ImageError::new(
                    ImageErrorKind::NoSpace,
                    format!(
                        "no space left to {doing} {path}. Prune the image store, free some space, or set COFFERDAM_IMAGES to a \
                         folder on a larger disk"
                    ),
                ),
                Some(Errno::ROFS | Errno::ACCESS) => ImageError::new(
                    ImageErrorKind::Storage,
                    format!("cannot {doing} {path}: {error}. Set COFFERDAM_IMAGES to a folder that you can write to"),
                ),
                _ => ImageError::new(ImageErrorKind::Storage, format!("cannot {doing} {path}: {error}")),
            }
        }
    }
}

/// An error with all its causes in one sentence: hyper's own is only "client error (Connect)".
pub(crate) fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut told = vec![error.to_string()];
    let mut cause = error.source();
    while let Some(error) = cause {
        told.push(error.to_string());
        cause = error.source();
    }
    told.join(": ")
}
