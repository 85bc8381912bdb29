//! What was transferred, and what was left out.

use std::path::Path;

use crate::Trouble;

/// Skipped entries that are listed: a hostile tree may have any number of them.
const TOLD: usize = 10_000;

/// An entry that was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Below the root.
    pub path: Vec<u8>,
    /// For people.
    pub reason: String,
}

/// How much was transferred.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Whole files.
    pub files: u64,
    /// Folders below the root.
    pub dirs: u64,
    /// Symbolic links.
    pub links: u64,
    /// Of files' content, without holes.
    pub bytes: u64,
    /// Entries that were left out.
    pub skipped: Vec<Skipped>,
    /// The number of further ones.
    pub skipped_more: u64,
}

impl Report {
    pub(crate) fn skip(&mut self, path: Vec<u8>, reason: impl Into<String>) {
        if self.skipped.len() < TOLD {
            self.skipped.push(Skipped { path, reason: reason.into() });
        } else {
            self.skipped_more += 1;
        }
    }

    /// Adds the report of a further walk.
    pub fn add(&mut self, more: Report) {
        self.files += more.files;
        self.dirs += more.dirs;
        self.links += more.links;
        self.bytes += more.bytes;
        self.skipped_more += more.skipped_more;
        more.skipped.into_iter().for_each(|skipped| self.skip(skipped.path, skipped.reason));
    }
}

/// Limits of a transfer.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ceilings {
    /// Per file, holes included.
    pub file_bytes: Option<u64>,
    /// Files and links.
    pub files: Option<u64>,
}

impl Ceilings {
    pub(crate) fn admit_file(&self, path: &Path, size: u64) -> Result<(), Trouble> {
        match self.file_bytes {
            Some(most) if size > most => {
                let what = format!("it has {size} bytes, more than the {most} allowed for a file");
                Err(Trouble::Ceiling { what, path: path.to_owned() })
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn admit_count(&self, path: &Path, count: u64) -> Result<(), Trouble> {
        match self.files {
            Some(most) if count > most => {
                let what = format!("there are more than the {most} files allowed in a transfer");
                Err(Trouble::Ceiling { what, path: path.to_owned() })
            }
            _ => Ok(()),
        }
    }
}
