//! The single list of error codes. Whatever goes wrong anywhere becomes one of these, with a message that says what
//! was tried, with which value, and what to do next.

use cofferdam_protocol::{Fault, FaultCode};
use serde_json::{Map, Value};

/// What every fallible call of this crate gives.
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
    /// The caller gave something that cannot be meant.
    InvalidArgument = "INVALID_ARGUMENT",
    /// No engine answers.
    EngineUnavailable = "ENGINE_UNAVAILABLE",
    /// The image is not there and cannot be pulled.
    ImageNotFound = "IMAGE_NOT_FOUND",
    /// The policy does not list the image.
    ImageNotAllowed = "IMAGE_NOT_ALLOWED",
    /// The policy forbids what was asked for.
    PolicyDenied = "POLICY_DENIED",
    /// No sandbox has this id.
    SandboxNotFound = "SANDBOX_NOT_FOUND",
    /// The sandbox was closed by this program.
    SandboxClosed = "SANDBOX_CLOSED",
    /// The sandbox went away behind our back.
    SandboxLost = "SANDBOX_LOST",
    /// No process has this id.
    ProcessNotFound = "PROCESS_NOT_FOUND",
    /// The program to run does not exist.
    CommandNotFound = "COMMAND_NOT_FOUND",
    /// Nothing is at the path.
    FileNotFound = "FILE_NOT_FOUND",
    /// Something is at the path already.
    FileExists = "FILE_EXISTS",
    /// A part of the path is not a directory.
    NotADirectory = "NOT_A_DIRECTORY",
    /// A directory is where a file was meant.
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
    /// The guest said something that it must not say.
    Protocol = "PROTOCOL",
    /// A fault of ours.
    Internal = "INTERNAL",
}

/// What went wrong, for programs and for people.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// An error with a public code.
    #[error("{message}")]
    Coded {
        /// For programs.
        code: ErrorCode,
        /// For people.
        message: String,
        /// What a program may want to know beyond the code.
        details: Map<String, Value>,
    },
    /// The caller cancelled the call; the binding answers with the caller's own reason.
    #[error("the call was aborted")]
    Aborted,
}

impl Error {
    /// An error without details.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Error {
        Error::Coded { code, message: message.into(), details: Map::new() }
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
        // A hostile guest may send megabytes of message.
        let message = fault.message.chars().take(2000).collect::<String>();
        Error::new(code, message)
    }
}
