//! What an engine's refusal means to the caller.

use bollard::errors::Error as BollardError;

use crate::{Error, ErrorCode};

/// The status of an answer that refused.
pub(super) fn status(error: &BollardError) -> Option<u16> {
    match error {
        BollardError::DockerResponseServerError { status_code, .. } => Some(*status_code),
        _ => None,
    }
}

/// Whether a create failed because its name is taken. Podman says so with another status than Docker.
pub(super) fn is_name_taken(error: &BollardError) -> bool {
    match error {
        BollardError::DockerResponseServerError { status_code: 409, .. } => true,
        BollardError::DockerResponseServerError { status_code: 500, message } => message.contains("already in use"),
        _ => false,
    }
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
            Error::new(code, format!("the engine could not {doing}: {message}")).with("status", status_code)
        }
        BollardError::RequestTimeoutError => {
            unavailable(host, &format!("it did not answer in time when asked to {doing}"))
        }
        other => unavailable(host, &describe(&other)),
    }
}

/// The whole chain: the outermost text is often just "client error".
fn describe(error: &BollardError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    text
}

pub(super) fn unavailable(host: &str, why: &str) -> Error {
    let message = format!(
        "the Docker engine at {host} cannot be used: {why}. Start it (or Docker Desktop, Colima, Podman), check that you \
         may open its socket, or set docker.host or DOCKER_HOST to one that runs"
    );
    Error::new(ErrorCode::EngineUnavailable, message).with("host", host)
}
