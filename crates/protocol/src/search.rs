//! What is searched for, what is found, and what is put in its place.

use serde::{Deserialize, Serialize};

use crate::Filter;

/// Names to find below a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Glob {
    /// Which folder.
    pub path: String,
    /// Any of them, from that folder down: `*` stays within a name, `**` does not.
    pub patterns: Vec<String>,
    /// What is left out.
    pub filter: Filter,
    /// At most so many.
    pub max_results: u64,
}

/// Lines to find in a file, or in all files below a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grep {
    /// Where.
    pub path: String,
    /// What.
    pub pattern: String,
    /// It is no expression but the text itself.
    pub literal: bool,
    /// Upper and lower case are the same.
    pub ignore_case: bool,
    /// Only files with such paths below the folder, or with such names; all when there are none.
    pub include: Vec<String>,
    /// What is left out.
    pub filter: Filter,
    /// So many lines before each; at most [`MAX_CONTEXT`].
    pub before: u32,
    /// So many lines after each; at most [`MAX_CONTEXT`].
    pub after: u32,
    /// At most so many in all.
    pub max_matches: u64,
    /// At most so many in one file.
    pub max_per_file: u64,
    /// Longer files are left out.
    pub max_file_bytes: u64,
}

/// Lines around a match on either side; more than that is reading the file.
pub const MAX_CONTEXT: u32 = 20;

/// A part of a file to change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replace {
    /// In which file.
    pub path: String,
    /// What is there now.
    pub search: String,
    /// What is to be there.
    pub replacement: String,
    /// In all places; otherwise there must be one.
    pub all: bool,
    /// There must be so many.
    pub expected: Option<u64>,
}

/// The most bytes of a line that a search sends.
pub const MAX_LINE_TEXT: usize = 500;

/// A line that was searched for. Text is bytes: nothing promises an encoding.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hit {
    /// The file's absolute path.
    pub path: Vec<u8>,
    /// Counted from 1.
    pub line: u64,
    /// Where in the line it begins, counted in characters from 1.
    pub column: u64,
    /// The line, or [`MAX_LINE_TEXT`] of it around what was found.
    pub text: Vec<u8>,
    /// Lines before it, or the beginnings of them.
    pub before: Vec<Vec<u8>>,
    /// Lines after it, or the beginnings of them.
    pub after: Vec<Vec<u8>>,
}
