//! Writes a file's content: holes stay holes, and runs of zeros become holes.

use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::budget::Budget;
use super::root::os;
use super::tarball::{Entry, unreadable};
use crate::error::{ImageError, Result};

const BUFFER: usize = 256 * 1024;

/// The smallest unit of a file system.
const PAGE: usize = 4096;

pub(super) fn write_content(file: &mut File, entry: &Entry, content: &mut impl Read, budget: &Budget) -> Result<()> {
    let failed = || ImageError::storage::<std::io::Error>("write", Path::new(os(&entry.path)));
    let whole = [(0, entry.size)];
    let pieces = entry.pieces.as_deref().unwrap_or(&whole);
    // The stream is counted as it is read; holes count as well.
    let stored: u64 = pieces.iter().map(|(_, length)| length).sum();
    budget.bytes(entry.size - stored)?;
    let mut buffer = Vec::new();
    let mut end = 0;
    for (offset, length) in pieces {
        let (mut at, stop) = (*offset, offset + length);
        while at < stop {
            buffer.resize(usize::try_from(stop - at).unwrap_or(BUFFER).min(BUFFER), 0);
            content.read_exact(&mut buffer).map_err(unreadable)?;
            for run in runs(&buffer) {
                file.write_all_at(&buffer[run.clone()], at + run.start as u64).map_err(failed())?;
                end = at + run.end as u64;
            }
            at += buffer.len() as u64;
        }
    }
    if end < entry.size {
        file.set_len(entry.size).map_err(failed())?;
    }
    Ok(())
}

/// The parts that are not zero, in whole pages.
fn runs(buffer: &[u8]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (index, page) in buffer.chunks(PAGE).enumerate() {
        let start = index * PAGE;
        match runs.last_mut() {
            _ if page.iter().all(|byte| *byte == 0) => {}
            Some(run) if run.end == start => run.end += page.len(),
            _ => runs.push(start..start + page.len()),
        }
    }
    runs
}
