//! What can be asked of a transfer between the host and a sandbox, and what comes of it. Carrying is done by `transfer`,
//! from open folder to open folder: on hosts that have those, which Windows is not.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How far a transfer has come.
#[derive(Debug, Clone)]
pub struct Progress {
    /// Whole files so far.
    pub files: u64,
    /// Of content so far.
    pub bytes: u64,
    /// Where that is known.
    pub total_bytes: Option<u64>,
    /// What it is at, below the root.
    pub path: Vec<u8>,
}

/// Told how far a transfer has come.
pub type OnProgress = Arc<dyn Fn(Progress) + Send + Sync>;

/// What to carry.
#[derive(Clone, Default)]
pub struct TransferRequest {
    /// On the host.
    pub host_path: PathBuf,
    /// In the sandbox: absolute, or under the workdir.
    pub path: String,
    /// Left out, as in a `.gitignore` at the root.
    pub exclude: Vec<String>,
    /// Leave out what the tree's own `.gitignore` files say.
    pub gitignore: bool,
    /// Only what is not there already.
    pub sync: bool,
    /// Told now and then.
    pub on_progress: Option<OnProgress>,
}

/// What was carried.
#[derive(Debug, Clone, Default)]
pub struct TransferReport {
    /// Whole files.
    pub files: u64,
    /// Folders below the root.
    pub dirs: u64,
    /// Symbolic links.
    pub links: u64,
    /// Of files' content, without holes.
    pub bytes: u64,
    /// What was not carried, and why; the first so many.
    pub skipped: Vec<Skipped>,
    /// From beginning to end.
    pub duration: Duration,
}

/// Something that was not carried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Below the root.
    pub path: Vec<u8>,
    /// For people.
    pub reason: String,
}

#[cfg(not(unix))]
mod unsupported {
    use super::{TransferReport, TransferRequest};
    use crate::guest::Guest;
    use crate::{Error, ErrorCode, Result};

    impl Guest {
        /// Not from this host.
        pub async fn upload(&self, request: &TransferRequest) -> Result<TransferReport> {
            Err(refusal(request))
        }

        /// Not to this host.
        pub async fn download(&self, request: &TransferRequest) -> Result<TransferReport> {
            Err(refusal(request))
        }
    }

    fn refusal(request: &TransferRequest) -> Error {
        let message = format!(
            "{:?} cannot be carried: files.upload and files.download are not there on Windows yet. Use files.read and \
             files.write, or run this program in WSL",
            request.host_path
        );
        Error::new(ErrorCode::Unsupported, message)
    }
}
