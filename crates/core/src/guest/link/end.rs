//! Why a link ended, and what that means to its callers.

use cofferdam_protocol::{Ending, GENERATION, Term};

use crate::{Error, ErrorCode};

/// Why a link ended.
#[derive(Debug, Clone)]
pub(crate) enum LinkEnd {
    /// The stream ended or broke: the sandbox may still exist.
    Broken(String),
    /// The guest violated the protocol.
    Protocol(String),
    /// The guest speaks another protocol generation.
    Generation(u16),
    /// The guest announced its end, with the reason.
    GuestEnded(Ending),
}

impl From<LinkEnd> for Error {
    fn from(end: LinkEnd) -> Error {
        match end {
            LinkEnd::Broken(why) => {
                Error::new(ErrorCode::SandboxLost, format!("the connection to the sandbox broke: {why}"))
            }
            LinkEnd::Protocol(what) => Error::new(
                ErrorCode::Protocol,
                format!(
                    "the sandbox's guest broke the protocol ({what}); it may have been tampered with: close the sandbox"
                ),
            ),
            LinkEnd::Generation(theirs) => Error::new(
                ErrorCode::Unsupported,
                format!(
                    "the sandbox was made by another version of cofferdam (its guest speaks protocol generation {theirs}, this \
                     one {GENERATION}); close it with that version, or wait until it ends by itself"
                ),
            ),
            LinkEnd::GuestEnded(ending) => ending.into(),
        }
    }
}

impl From<Ending> for Error {
    fn from(ending: Ending) -> Error {
        let (reason, why) = ending_reason(ending);
        Error::gone(reason, why)
    }
}

/// The reason as a detail value, and as text.
pub(crate) fn ending_reason(ending: Ending) -> (&'static str, &'static str) {
    match ending {
        Ending::Expired(Term::Idle) => ("idle", "nothing happened in it for its idle timeout"),
        Ending::Expired(Term::MaxLifetime) => ("max-lifetime", "it reached its maximum lifetime"),
        Ending::Expired(Term::Orphan) => ("orphaned", "no program was linked to it for its orphan timeout"),
        Ending::Stopped => ("stopped", "its container was stopped"),
        Ending::Asked => ("closed", "another program closed it"),
    }
}
