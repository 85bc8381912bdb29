//! A folder, or one file, as a stream of bytes: the steps of a walk through it.
//!
//! Names are single names, never paths: a receiver that holds the folder it is in open cannot be led anywhere else by
//! them. [`TreeDecoder`] returns a well-formed walk or an error, whatever bytes arrive and however they are cut, and
//! needs memory for one record.
//!
//! Each record is `u16 length | postcard`; [`Record::Data`] is followed by that many raw bytes.

use serde::{Deserialize, Serialize};

use crate::FileType;

/// The deepest nesting of folders in a walk.
pub const MAX_DEPTH: usize = 1000;

/// The longest file name on Linux.
const MAX_NAME: usize = 255;

/// The longest target of a link, or reason, in a record.
const MAX_TEXT: usize = 4096;

/// More than any record with the longest name and target.
const MAX_RECORD: usize = 8 * 1024;

/// The metadata of a file, a folder or a link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// Permission bits.
    pub mode: u32,
    /// Of its last change, in seconds since 1970.
    pub mtime_s: i64,
    /// And nanoseconds.
    pub mtime_ns: u32,
}

/// Identifies an entry without its content, to find what differs elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// Below the root.
    pub path: Vec<u8>,
    /// What it is.
    pub kind: FileType,
    /// In bytes.
    pub size: u64,
    /// Its own.
    pub meta: Meta,
    /// Where a link points.
    pub target: Option<Vec<u8>>,
}

/// One step of a walk. The first one is the root, which has no name: the receiver chooses its path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Record {
    /// Down into a folder.
    Enter {
        /// In the folder where the walk is.
        name: Vec<u8>,
        /// The folder's own.
        meta: Meta,
    },
    /// A file; its content follows, until [`Record::Whole`] or [`Record::Torn`].
    File {
        /// In the folder where the walk is.
        name: Vec<u8>,
        /// The file's own.
        meta: Meta,
        /// As the file system has it; more or less may come.
        size: u64,
    },
    /// This many bytes of content follow the record.
    Data(u32),
    /// A hole: this many zero bytes of content.
    Hole(u64),
    /// The file's content is complete.
    Whole,
    /// The file's content could not be read to its end: the receiver drops the file.
    Torn {
        /// For people.
        reason: String,
    },
    /// A symbolic link.
    Link {
        /// In the folder where the walk is.
        name: Vec<u8>,
        /// As it is, wherever that may point.
        target: Vec<u8>,
        /// The link's own.
        meta: Meta,
    },
    /// An entry that is left out.
    Skipped {
        /// In the folder where the walk is.
        name: Vec<u8>,
        /// For people.
        reason: String,
    },
    /// Back up, out of a folder.
    Leave,
}

impl Record {
    fn name(&self) -> Option<&[u8]> {
        match self {
            Record::Enter { name, .. }
            | Record::File { name, .. }
            | Record::Link { name, .. }
            | Record::Skipped { name, .. } => Some(name),
            _ => None,
        }
    }

    /// Appends its bytes to a stream.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; 2]);
        // Cannot fail while memory lasts; a reader refuses what is cut short.
        if let Ok(bytes) = postcard::to_allocvec(self) {
            out.extend_from_slice(&bytes);
        }
        let length = (out.len() - start - 2) as u16;
        out[start..start + 2].copy_from_slice(&length.to_le_bytes());
    }
}

/// Text that a record has room for.
pub fn short_reason(reason: impl std::fmt::Display) -> String {
    reason.to_string().chars().take(MAX_TEXT / 8).collect()
}

/// Why a stream is not a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    /// Longer than any record.
    #[error("a record announces {0} bytes")]
    TooLong(usize),
    /// Not postcard of a record.
    #[error("a record cannot be read")]
    Malformed,
    /// An invalid name: empty, `.`, `..`, or with a slash or NUL in it.
    #[error("a name that is not one name in a folder")]
    BadName,
    /// A record that cannot come here.
    #[error("{0} where it cannot be")]
    Misplaced(&'static str),
    /// More than [`MAX_DEPTH`].
    #[error("folders more than {MAX_DEPTH} deep")]
    TooDeep,
    /// The stream ended too early.
    #[error("the walk ends in the middle")]
    CutShort,
}

/// Whether a name is one name in a folder, and nothing else.
pub fn is_name(name: &[u8]) -> bool {
    !name.is_empty()
        && name.len() <= MAX_NAME
        && name != b"."
        && name != b".."
        && !name.contains(&b'/')
        && !name.contains(&0)
}

/// An item of a [`TreeDecoder`].
#[derive(Debug, PartialEq, Eq)]
pub enum TreeItem<'a> {
    /// A step; never [`Record::Data`].
    Record(Record),
    /// A piece of the current file's content.
    Content(&'a [u8]),
}

/// The position in a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Start,
    Walking,
    InFile,
    Over,
}

/// Reads a walk from bytes that come in any pieces.
#[derive(Debug)]
pub struct TreeDecoder {
    state: State,
    depth: usize,
    /// Content that still follows the last [`Record::Data`].
    content: usize,
    /// The beginning of a record whose rest has not come yet.
    partial: Vec<u8>,
}

impl Default for TreeDecoder {
    fn default() -> TreeDecoder {
        TreeDecoder { state: State::Start, depth: 0, content: 0, partial: Vec::new() }
    }
}

impl TreeDecoder {
    /// Takes the next item off the front of `input`; `None` when that is used up.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<TreeItem<'a>>, TreeError> {
        loop {
            if self.content > 0 {
                if input.is_empty() {
                    return Ok(None);
                }
                let (content, rest) = input.split_at(self.content.min(input.len()));
                self.content -= content.len();
                *input = rest;
                return Ok(Some(TreeItem::Content(content)));
            }
            let Some(record) = self.next_record(input)? else { return Ok(None) };
            self.check(&record)?;
            match record {
                Record::Data(length) => self.content = length as usize,
                record => return Ok(Some(TreeItem::Record(record))),
            }
        }
    }

    /// Whether the walk is complete.
    pub fn finish(&self) -> Result<(), TreeError> {
        if self.state == State::Over { Ok(()) } else { Err(TreeError::CutShort) }
    }

    fn next_record(&mut self, input: &mut &[u8]) -> Result<Option<Record>, TreeError> {
        // The common case: the whole record has come, and need not be copied.
        if self.partial.is_empty() {
            let Some(length) = announced(input)? else { return Ok(self.keep(input)) };
            let Some(bytes) = input.get(2..2 + length) else { return Ok(self.keep(input)) };
            let record = decode(bytes)?;
            *input = &input[2 + length..];
            return Ok(Some(record));
        }
        loop {
            let wanted = match announced(&self.partial)? {
                None => 2,
                Some(length) if self.partial.len() == 2 + length => {
                    let record = decode(&self.partial[2..])?;
                    self.partial.clear();
                    return Ok(Some(record));
                }
                Some(length) => 2 + length,
            };
            let (more, rest) = input.split_at((wanted - self.partial.len()).min(input.len()));
            if more.is_empty() {
                return Ok(None);
            }
            self.partial.extend_from_slice(more);
            *input = rest;
        }
    }

    /// For when the rest comes.
    fn keep(&mut self, input: &mut &[u8]) -> Option<Record> {
        self.partial.extend_from_slice(std::mem::take(input));
        None
    }

    fn check(&mut self, record: &Record) -> Result<(), TreeError> {
        let is_root = self.state == State::Start;
        match record.name() {
            Some(name) if is_root && !name.is_empty() => return Err(TreeError::BadName),
            Some(name) if !is_root && !is_name(name) => return Err(TreeError::BadName),
            _ => {}
        }
        self.state = match (self.state, record) {
            (State::Start | State::Walking, Record::Enter { .. }) => {
                self.depth += 1;
                if self.depth > MAX_DEPTH {
                    return Err(TreeError::TooDeep);
                }
                State::Walking
            }
            (State::Start | State::Walking, Record::File { .. }) => State::InFile,
            (State::InFile, Record::Data(_) | Record::Hole(_)) => State::InFile,
            (State::InFile, Record::Whole | Record::Torn { .. }) => self.outside_files(),
            (State::Walking, Record::Link { target, .. }) => {
                if target.is_empty() || target.len() >= MAX_TEXT || target.contains(&0) {
                    return Err(TreeError::BadName);
                }
                State::Walking
            }
            (State::Walking, Record::Skipped { .. }) => State::Walking,
            (State::Walking, Record::Leave) => {
                self.depth -= 1;
                self.outside_files()
            }
            (State::Over, _) => return Err(TreeError::Misplaced("more after the end")),
            (State::InFile, _) => return Err(TreeError::Misplaced("a new step in the middle of a file")),
            (State::Start, _) => return Err(TreeError::Misplaced("a first step that is neither folder nor file")),
            (State::Walking, _) => return Err(TreeError::Misplaced("content outside a file")),
        };
        Ok(())
    }

    fn outside_files(&self) -> State {
        if self.depth == 0 { State::Over } else { State::Walking }
    }
}

/// How long the record at the start is; `None` while that has not come.
fn announced(bytes: &[u8]) -> Result<Option<usize>, TreeError> {
    let Some(length) = bytes.first_chunk::<2>() else { return Ok(None) };
    match usize::from(u16::from_le_bytes(*length)) {
        length if length > MAX_RECORD => Err(TreeError::TooLong(length)),
        length => Ok(Some(length)),
    }
}

fn decode(bytes: &[u8]) -> Result<Record, TreeError> {
    crate::decode(bytes).map_err(|_| TreeError::Malformed)
}

#[cfg(test)]
mod tests;
