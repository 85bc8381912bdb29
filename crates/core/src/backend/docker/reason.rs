//! Why an engine cannot be used, for programs: `doctor` has a fix for each.

use std::error::Error as StdError;
use std::io;

use bollard::errors::Error as BollardError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// There is no such socket.
    Missing,
    /// Permission denied.
    Denied,
    /// Connection refused.
    Refused,
    /// It accepts connections, and does not answer.
    Silent,
    /// Its host name cannot be resolved.
    Unresolved,
    /// Its API is older than what we speak.
    OldApi,
    /// What answers is not an engine.
    NotAnEngine,
    /// The address is malformed.
    BadAddress,
    Other,
}

impl Reason {
    /// Public, as a detail of errors: these names never change.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Reason::Missing => "missing",
            Reason::Denied => "denied",
            Reason::Refused => "refused",
            Reason::Silent => "silent",
            Reason::Unresolved => "unresolved",
            Reason::OldApi => "old-api",
            Reason::NotAnEngine => "not-an-engine",
            Reason::BadAddress => "bad-address",
            Reason::Other => "other",
        }
    }

    pub(super) fn of(error: &BollardError) -> Reason {
        match error {
            BollardError::RequestTimeoutError => return Reason::Silent,
            BollardError::SocketNotFoundError(_) => return Reason::Missing,
            BollardError::IOError { err } => return of_io(err),
            BollardError::URLParseError { .. }
            | BollardError::InvalidURIError { .. }
            | BollardError::InvalidURIPartsError { .. }
            | BollardError::UnsupportedURISchemeError { .. } => return Reason::BadAddress,
            BollardError::DockerResponseServerError { .. }
            | BollardError::JsonDataError { .. }
            | BollardError::JsonSerdeError { .. }
            | BollardError::APIVersionParseError {}
            | BollardError::HyperResponseError { .. } => return Reason::NotAnEngine,
            _ => {}
        }
        let mut reason = Reason::Other;
        let mut source = error.source();
        while let Some(inner) = source {
            // The innermost error is the most specific.
            if let Some(error) = inner.downcast_ref::<io::Error>() {
                reason = of_io(error);
            } else if is_unresolved(&inner.to_string()) {
                reason = Reason::Unresolved;
            } else if inner.downcast_ref::<hyper::Error>().is_some_and(|error| error.is_parse()) {
                reason = Reason::NotAnEngine;
            }
            source = inner.source();
        }
        reason
    }
}

fn of_io(error: &io::Error) -> Reason {
    match error.kind() {
        io::ErrorKind::NotFound => Reason::Missing,
        io::ErrorKind::PermissionDenied => Reason::Denied,
        io::ErrorKind::ConnectionRefused => Reason::Refused,
        io::ErrorKind::TimedOut => Reason::Silent,
        _ if is_unresolved(&error.to_string()) => Reason::Unresolved,
        _ => Reason::Other,
    }
}

/// Neither the resolver nor the ssh command has an error code for it.
fn is_unresolved(text: &str) -> bool {
    text.contains("failed to lookup address") || text.contains("Could not resolve hostname")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_told_from_what_the_system_said() {
        let of = |kind: io::ErrorKind| Reason::of(&BollardError::IOError { err: kind.into() });
        assert_eq!(of(io::ErrorKind::PermissionDenied), Reason::Denied);
        assert_eq!(of(io::ErrorKind::ConnectionRefused), Reason::Refused);
        assert_eq!(Reason::of(&BollardError::RequestTimeoutError), Reason::Silent);
        let unresolved = io::Error::other("failed to lookup address information: Name or service not known");
        assert_eq!(Reason::of(&BollardError::IOError { err: unresolved }), Reason::Unresolved);
    }
}
