//! From an engine's errors to ours.

use bollard::errors::Error as BollardError;

use super::reason::Reason;
use crate::error::Source;
use crate::{Error, ErrorCode};

/// The HTTP status of an error response.
pub(super) fn status(error: &BollardError) -> Option<u16> {
    match error {
        BollardError::DockerResponseServerError { status_code, .. } => Some(*status_code),
        _ => None,
    }
}

/// Whether a create failed because its name is taken. Podman uses another status than Docker.
pub(super) fn is_name_taken(error: &BollardError) -> bool {
    match error {
        BollardError::DockerResponseServerError { status_code: 409, .. } => true,
        BollardError::DockerResponseServerError { status_code: 500, message } => message.contains("already in use"),
        _ => false,
    }
}

/// Whether a removal failed because the container was exiting by itself: Podman stops it first, and fails on that.
pub(super) fn is_ending(error: &BollardError) -> bool {
    let BollardError::DockerResponseServerError { status_code: 500, message } = error else { return false };
    message.contains("container state improper")
}

/// Whether a list failed because a container is `stopped`: Podman's state for one that has exited until it was inspected.
pub(super) fn is_between_states(error: &BollardError) -> bool {
    matches!(error, BollardError::JsonDataError { message, .. } if message.contains("unknown variant `stopped`"))
}

pub(super) fn engine_error(doing: &str, host: &str, error: BollardError) -> Error {
    match error {
        BollardError::DockerResponseServerError { status_code, message } => {
            let code = match status_code {
                400 => ErrorCode::InvalidArgument,
                404 if message.contains("No such image") || message.contains("image not known") => {
                    ErrorCode::ImageNotFound
                }
                404 => ErrorCode::SandboxNotFound,
                _ => ErrorCode::Internal,
            };
            Error::new(code, format!("the engine could not {doing}: {message}"))
                .with("status", status_code)
                .of(Source::Engine)
        }
        BollardError::JsonDataError { message, .. } => {
            let text = format!("the engine's answer cannot be understood, when asked to {doing}: {message}");
            Error::new(ErrorCode::Internal, text).of(Source::Engine)
        }
        BollardError::RequestTimeoutError => {
            unavailable(host, Reason::Silent, &format!("it did not answer in time when asked to {doing}"))
        }
        other => unavailable(host, Reason::of(&other), &describe(&other)),
    }
}

/// The whole chain of causes, without the wrappers that add nothing.
pub(super) fn describe(error: &BollardError) -> String {
    let mut parts = vec![error.to_string()];
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        parts.push(inner.to_string());
        source = inner.source();
    }
    let says_nothing = |part: &String| part.ends_with("client error (Connect)");
    match parts.iter().position(|part| !says_nothing(part)) {
        Some(first) => parts[first..].join(": "),
        None => parts.join(": "),
    }
}

pub(super) fn unavailable(host: &str, reason: Reason, why: &str) -> Error {
    unavailable_at(host, host, reason, why)
}

/// As [`unavailable`], with more to say about the address.
pub(super) fn unavailable_at(host: &str, address: &str, reason: Reason, why: &str) -> Error {
    let advice = match reason {
        Reason::Denied => {
            "Become a member of the group that may open its socket (\"sudo usermod -aG docker $USER && newgrp docker\")"
        }
        Reason::Silent => "Restart it",
        Reason::Unresolved | Reason::BadAddress | Reason::NotAnEngine => "Check the address",
        Reason::OldApi => "Update it",
        Reason::Missing | Reason::Refused | Reason::Other => "Start it (or Docker Desktop, Colima, Podman)",
    };
    let message = format!(
        "the Docker engine at {address} cannot be used: {why}. {advice}, or set docker.host or DOCKER_HOST to one that runs"
    );
    Error::new(ErrorCode::EngineUnavailable, message)
        .with("host", host)
        .with("reason", reason.as_str())
        .of(Source::Engine)
}
