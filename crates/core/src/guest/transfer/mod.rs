//! Transfers trees between the host and a sandbox over an ordinary channel: no archive, no bind mount, and memory for a
//! few blocks, however large the tree is.
//!
//! Data from the sandbox is untrusted. Host paths are never built from it: [`cofferdam_tree`] opens one directory after
//! another by single names, and follows no link.

mod download;
mod upload;

use std::fs::Metadata;
use std::path::Path;
use std::time::{Duration, Instant, UNIX_EPOCH};

use cofferdam_protocol::{FileEntry, FileType, Filter, TreeError};
use cofferdam_tree::{Ceilings, Report, Rules, Trouble};

use super::connection::Guest;
use super::link::LinkEnd;
use super::trees::{OnProgress, Progress, Skipped, TransferReport, TransferRequest};
use crate::{Error, ErrorCode, Result};

/// Bytes to pack or unpack per call on a blocking thread.
const BLOCK: usize = 512 * 1024;

/// Shortest time between two progress callbacks.
const PROGRESS: Duration = Duration::from_millis(100);

impl TransferRequest {
    fn filter(&self) -> Filter {
        Filter { exclude: self.exclude.clone(), gitignore: self.gitignore }
    }

    /// A trailing slash names a folder: a file is uploaded into it.
    fn sent_into_folder(&self, is_file: bool) -> TransferRequest {
        let mut request = self.clone();
        if let (true, true, Some(name)) = (is_file, self.path.ends_with('/'), self.host_path.file_name()) {
            request.path.push_str(&name.to_string_lossy());
        }
        request
    }

    /// The same for downloads.
    fn fetched_into_folder(&self, is_file: bool) -> TransferRequest {
        let mut request = self.clone();
        if let (true, Some(name)) = (is_file, Path::new(&self.path).file_name()) {
            request.host_path.push(name);
        }
        request
    }

    fn rules(&self) -> Result<Rules> {
        Rules::new(&self.exclude, self.gitignore).map_err(|message| Error::invalid(format!("exclude: {message}")))
    }
}

impl TransferReport {
    fn new(report: Report, began: Instant) -> TransferReport {
        let Report { files, dirs, links, bytes, skipped, skipped_more } = report;
        let mut skipped: Vec<_> = skipped.into_iter().map(Skipped::from).collect();
        if skipped_more > 0 {
            skipped.push(Skipped { path: Vec::new(), reason: format!("and {skipped_more} more entries") });
        }
        TransferReport { files, dirs, links, bytes, skipped, duration: began.elapsed() }
    }
}

impl From<cofferdam_tree::Skipped> for Skipped {
    fn from(skipped: cofferdam_tree::Skipped) -> Skipped {
        Skipped { path: skipped.path, reason: skipped.reason }
    }
}

/// Calls `on_progress`, at most once per `PROGRESS`.
struct ProgressReporter {
    on_progress: Option<OnProgress>,
    last_report: Instant,
    total_bytes: Option<u64>,
    /// Transferred by earlier passes of the same transfer.
    before: Report,
}

impl ProgressReporter {
    fn new(request: &TransferRequest, total_bytes: Option<u64>) -> ProgressReporter {
        let (on_progress, last_report) = (request.on_progress.clone(), Instant::now());
        ProgressReporter { on_progress, last_report, total_bytes, before: Report::default() }
    }

    fn report(&mut self, report: &Report, path: &[u8]) {
        if self.last_report.elapsed() >= PROGRESS {
            self.last_report = Instant::now();
            self.report_now(report, path);
        }
    }

    fn report_now(&self, report: &Report, path: &[u8]) {
        if let Some(on_progress) = &self.on_progress {
            on_progress(Progress {
                files: self.before.files + report.files,
                bytes: self.before.bytes + report.bytes,
                total_bytes: self.total_bytes,
                path: path.to_vec(),
            });
        }
    }
}

/// The error for a failure on the host.
fn on_the_host(trouble: Trouble) -> Error {
    match trouble {
        Trouble::Stream(TreeError::TooDeep) => {
            Error::new(ErrorCode::LimitExceeded, "the tree in the sandbox is nested too deeply to transfer")
        }
        Trouble::Stream(error) => LinkEnd::Protocol(format!("a tree that cannot be read: {error}")).into(),
        trouble => {
            let mut fault = trouble.into_fault();
            fault.message = format!("on the host: {}", fault.message);
            fault.into()
        }
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Trouble> + Send + 'static) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome.map_err(on_the_host),
        Err(error) => Err(Error::panicked(error)),
    }
}

/// Rejects what cannot be a path on the host.
fn check_host_path(path: &Path) -> Result<()> {
    if path.as_os_str().is_empty() || path.as_os_str().as_encoded_bytes().contains(&0) {
        return Err(Error::invalid(format!("{path:?} is not a path on the host")));
    }
    Ok(())
}

/// Whether a file is the same on both sides, judged without its content.
fn is_same(there: &FileEntry, here: &Metadata) -> bool {
    let modified = here.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    there.file_type == FileType::File
        && here.len() == there.size
        && modified.is_some_and(|since| since.as_millis() as i64 == there.mtime_ms)
}

impl Guest {
    fn ceilings(&self) -> Ceilings {
        Ceilings { file_bytes: self.files.max_file_bytes, files: self.files.max_files }
    }
}
