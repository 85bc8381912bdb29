//! The single list of error codes. Every failure becomes one of these, with a message that says what failed, with which
//! value, and what to do next.

use cofferdam_protocol::{Fault, FaultCode};
use serde_json::{Map, Value};

/// The result of every fallible call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// What went wrong, for programs. The names are public and never change.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ErrorCode { $($(#[$doc])* $variant,)* }

        impl ErrorCode {
            /// Every code, in the order of the public contract.
            pub const ALL: &[ErrorCode] = &[$(ErrorCode::$variant,)*];

            /// The public name.
            pub fn as_str(self) -> &'static str {
                match self { $(ErrorCode::$variant => $name,)* }
            }
        }
    };
}

codes! {
    /// An argument is invalid.
    InvalidArgument = "INVALID_ARGUMENT",
    /// No engine answers.
    EngineUnavailable = "ENGINE_UNAVAILABLE",
    /// The image was not found locally and could not be pulled.
    ImageNotFound = "IMAGE_NOT_FOUND",
    /// The policy does not list the image.
    ImageNotAllowed = "IMAGE_NOT_ALLOWED",
    /// The policy forbids the request.
    PolicyDenied = "POLICY_DENIED",
    /// No sandbox has this id.
    SandboxNotFound = "SANDBOX_NOT_FOUND",
    /// The sandbox was closed by this program.
    SandboxClosed = "SANDBOX_CLOSED",
    /// The sandbox disappeared unexpectedly.
    SandboxLost = "SANDBOX_LOST",
    /// No process has this id.
    ProcessNotFound = "PROCESS_NOT_FOUND",
    /// The program to run does not exist.
    CommandNotFound = "COMMAND_NOT_FOUND",
    /// The command failed, and the caller asked for an error in that case.
    CommandFailed = "COMMAND_FAILED",
    /// Nothing is at the path.
    FileNotFound = "FILE_NOT_FOUND",
    /// Something is at the path already.
    FileExists = "FILE_EXISTS",
    /// A part of the path is not a directory.
    NotADirectory = "NOT_A_DIRECTORY",
    /// The path is a directory where a file was expected.
    IsADirectory = "IS_A_DIRECTORY",
    /// The sandbox's own permissions forbid it.
    PermissionDenied = "PERMISSION_DENIED",
    /// The policy blocks the path.
    PathBlocked = "PATH_BLOCKED",
    /// A limit of the sandbox or of the call was reached.
    LimitExceeded = "LIMIT_EXCEEDED",
    /// It took longer than the caller allows.
    TimedOut = "TIMED_OUT",
    /// This backend or engine cannot do it.
    Unsupported = "UNSUPPORTED",
    /// The guest violated the protocol.
    Protocol = "PROTOCOL",
    /// A bug in cofferdam.
    Internal = "INTERNAL",
}

/// An error with a code for programs and a message for people.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// An error with a public code.
    #[error("{message}")]
    Coded {
        /// For programs.
        code: ErrorCode,
        /// For people.
        message: String,
        /// Further facts for programs.
        details: Map<String, Value>,
    },
    /// The caller cancelled the call; the binding answers with the caller's own reason.
    #[error("the call was aborted")]
    Aborted,
}

/// The source of quoted text that comes from neither cofferdam nor the sandbox.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Source {
    Engine,
    Store,
}

impl Error {
    /// An error without details.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Error {
        Error::Coded { code, message: message.into(), details: Map::new() }
    }

    /// The sandbox has ended: why, as a detail and as text.
    pub(crate) fn gone(reason: &str, why: impl std::fmt::Display) -> Error {
        Error::new(ErrorCode::SandboxLost, format!("the sandbox is gone: {why}; open() gives a new one"))
            .with("reason", reason)
    }

    /// The error of a task that panicked.
    pub(crate) fn panicked(error: tokio::task::JoinError) -> Error {
        Error::new(ErrorCode::Internal, format!("background task panicked: {error}"))
    }

    /// Adds a detail.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Error {
        if let Error::Coded { details, .. } = &mut self {
            details.insert(key.to_owned(), value.into());
        }
        self
    }

    /// A detail.
    pub fn detail(&self, key: &str) -> Option<&Value> {
        match self {
            Error::Coded { details, .. } => details.get(key),
            Error::Aborted => None,
        }
    }

    /// The code; `None` for a cancelled call.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Error::Coded { code, .. } => Some(*code),
            Error::Aborted => None,
        }
    }

    /// Marks an error that quotes the host's engine or its store. Callers that must not expose the host hide its message.
    #[must_use]
    pub(crate) fn of(self, source: Source) -> Error {
        let origin = match source {
            Source::Engine => "engine",
            Source::Store => "store",
        };
        self.with("origin", origin)
    }

    /// Marks a call that failed before anything was sent to the sandbox: it had no effect and can be retried.
    #[must_use]
    pub(crate) fn unsent(self) -> Error {
        self.with("sent", false)
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Error {
        Error::new(ErrorCode::InvalidArgument, message)
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Error {
        let code = match fault.code {
            FaultCode::InvalidArgument => ErrorCode::InvalidArgument,
            FaultCode::CommandNotFound => ErrorCode::CommandNotFound,
            FaultCode::ProcessNotFound => ErrorCode::ProcessNotFound,
            FaultCode::FileNotFound => ErrorCode::FileNotFound,
            FaultCode::FileExists => ErrorCode::FileExists,
            FaultCode::NotADirectory => ErrorCode::NotADirectory,
            FaultCode::IsADirectory => ErrorCode::IsADirectory,
            FaultCode::PermissionDenied => ErrorCode::PermissionDenied,
            FaultCode::LimitExceeded => ErrorCode::LimitExceeded,
            FaultCode::Internal => ErrorCode::Internal,
        };
        // A hostile guest may send a message of megabytes.
        let message = fault.message.chars().take(2000).collect::<String>();
        Error::new(code, message)
    }
}
