//! Collects the files that a run left, within limits.

use futures_util::{StreamExt, TryStreamExt, stream};

use super::RunRequest;
use crate::guest::{GlobRequest, SearchScope};
use crate::sandbox::Sandbox;
use crate::{FileEntry, FileType, Result};

/// The most matches per run; further ones are not even listed.
const MAX_FOUND: u64 = 10_000;

/// Memory for all artifacts of a run.
const MAX_TOTAL: u64 = 256 * 1024 * 1024;

/// Artifacts read concurrently.
const AT_ONCE: usize = 8;

/// Why an artifact has no content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Omitted {
    /// It exceeds a size limit, alone or with those before it.
    TooLarge,
    /// It exceeds the number of artifacts.
    TooMany,
}

/// A file that a run left.
#[derive(Debug, Clone)]
pub struct Artifact {
    /// Relative to the workdir.
    pub path: String,
    /// In bytes.
    pub size: u64,
    /// Its content, or why it was omitted.
    pub content: std::result::Result<Vec<u8>, Omitted>,
}

pub(super) async fn collect(sandbox: &Sandbox, request: &RunRequest) -> Result<Vec<Artifact>> {
    if request.artifacts.is_empty() {
        return Ok(Vec::new());
    }
    let glob = GlobRequest {
        scope: SearchScope { path: sandbox.workdir().to_owned(), hidden: true, ..SearchScope::default() },
        patterns: request.artifacts.clone(),
        max_results: MAX_FOUND,
    };
    let mut found: Vec<(String, u64)> = sandbox
        .glob(&glob)
        .await?
        .results
        .into_iter()
        .filter_map(|entry| named(sandbox.workdir(), entry))
        .filter(|(path, _)| path != request.runtime.file())
        .collect();
    found.sort();
    let mut room = MAX_TOTAL;
    let picked = found.into_iter().enumerate().map(|(index, (path, size))| {
        let omitted = if index >= request.max_artifacts {
            Some(Omitted::TooMany)
        } else if size > request.max_artifact.min(room) {
            Some(Omitted::TooLarge)
        } else {
            room -= size;
            None
        };
        read(sandbox, path, size, omitted)
    });
    stream::iter(picked.collect::<Vec<_>>()).buffered(AT_ONCE).try_collect().await
}

/// Its path relative to the workdir, if it is a file with a UTF-8 name.
fn named(workdir: &str, entry: FileEntry) -> Option<(String, u64)> {
    let path = String::from_utf8(entry.path).ok()?;
    let path = path.strip_prefix(workdir)?.trim_start_matches('/').to_owned();
    (entry.file_type == FileType::File).then_some((path, entry.size))
}

async fn read(sandbox: &Sandbox, path: String, size: u64, omitted: Option<Omitted>) -> Result<Artifact> {
    if let Some(omitted) = omitted {
        return Ok(Artifact { path, size, content: Err(omitted) });
    }
    let whole = format!("{}/{path}", sandbox.workdir().trim_end_matches('/'));
    // Do not wait for a background process that still writes to it.
    let content = sandbox.read_file(&whole, 0, size).await?;
    Ok(Artifact { path, size: content.bytes.len() as u64, content: Ok(content.bytes) })
}
