//! Searches, their results, and replacements.

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
    /// Whether the pattern is plain text, not a regular expression.
    pub literal: bool,
    /// Whether to ignore case.
    pub ignore_case: bool,
    /// Only files whose path below the folder, or whose name, matches one of these; all files when empty.
    pub include: Vec<String>,
    /// What is left out.
    pub filter: Filter,
    /// Context lines before each; at most [`MAX_CONTEXT`].
    pub before: u32,
    /// Context lines after each; at most [`MAX_CONTEXT`].
    pub after: u32,
    /// At most so many in all.
    pub max_matches: u64,
    /// At most so many in one file.
    pub max_per_file: u64,
    /// Longer files are left out.
    pub max_file_bytes: u64,
}

/// The most context lines on either side of a match.
pub const MAX_CONTEXT: u32 = 20;

/// A part of a file to change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replace {
    /// In which file.
    pub path: String,
    /// The text to replace.
    pub search: String,
    /// The new text.
    pub replacement: String,
    /// Whether to replace all occurrences; otherwise there must be exactly one.
    pub all: bool,
    /// The expected number of occurrences.
    pub expected: Option<u64>,
}

/// The most bytes of a line that a search sends.
pub const MAX_LINE_TEXT: usize = 500;

/// A line that matches. Text is bytes, in any encoding.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hit {
    /// The file's absolute path.
    pub path: Vec<u8>,
    /// Counted from 1.
    pub line: u64,
    /// Where the match begins in the line, in characters from 1.
    pub column: u64,
    /// The line, or [`MAX_LINE_TEXT`] bytes of it around the match.
    pub text: Vec<u8>,
    /// Lines before it, each maybe cut.
    pub before: Vec<Vec<u8>>,
    /// Lines after it, each maybe cut.
    pub after: Vec<Vec<u8>>,
}
