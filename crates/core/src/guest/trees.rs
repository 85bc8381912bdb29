//! Requests and reports of transfers between the host and a sandbox. `transfer` does the work, with directory handles,
//! which Windows hosts lack.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Progress of a transfer.
#[derive(Debug, Clone)]
pub struct Progress {
    /// Files completed so far.
    pub files: u64,
    /// Bytes of content so far.
    pub bytes: u64,
    /// Total bytes, if known.
    pub total_bytes: Option<u64>,
    /// Current path below the root.
    pub path: Vec<u8>,
}

/// Called with the progress of a transfer.
pub type OnProgress = Arc<dyn Fn(Progress) + Send + Sync>;

/// A transfer to make.
#[derive(Clone, Default)]
pub struct TransferRequest {
    /// On the host.
    pub host_path: PathBuf,
    /// In the sandbox: absolute, or under the workdir.
    pub path: String,
    /// Patterns to leave out, as in a `.gitignore` at the root.
    pub exclude: Vec<String>,
    /// Honor the tree's own `.gitignore` files.
    pub gitignore: bool,
    /// Transfer only what differs.
    pub sync: bool,
    /// Called from time to time.
    pub on_progress: Option<OnProgress>,
}

/// What was transferred.
#[derive(Debug, Clone, Default)]
pub struct TransferReport {
    /// Files.
    pub files: u64,
    /// Folders below the root.
    pub dirs: u64,
    /// Symbolic links.
    pub links: u64,
    /// Bytes of file content, without holes.
    pub bytes: u64,
    /// What was skipped, and why; only the first ones.
    pub skipped: Vec<Skipped>,
    /// Total time.
    pub duration: Duration,
}

/// An entry that was skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Below the root.
    pub path: Vec<u8>,
    /// The reason, as text.
    pub reason: String,
}

#[cfg(not(unix))]
mod unsupported {
    use super::{TransferReport, TransferRequest};
    use crate::guest::Guest;
    use crate::{Error, ErrorCode, Result};

    impl Guest {
        /// Not supported on this host.
        pub async fn upload(&self, request: &TransferRequest) -> Result<TransferReport> {
            Err(refusal(request))
        }

        /// Not supported on this host.
        pub async fn download(&self, request: &TransferRequest) -> Result<TransferReport> {
            Err(refusal(request))
        }
    }

    fn refusal(request: &TransferRequest) -> Error {
        let message = format!(
            "{:?} cannot be transferred: files.upload and files.download are not supported on Windows yet. Use files.read and \
             files.write, or run this program in WSL",
            request.host_path
        );
        Error::new(ErrorCode::Unsupported, message)
    }
}
