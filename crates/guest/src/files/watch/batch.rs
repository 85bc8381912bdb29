//! Changes that are about to be sent: at most one frame.

use bytes::Bytes;
use cofferdam_protocol::{Fault, FaultCode, FileChange, encode_data};

use crate::requests::fault;

/// Encoded changes per frame: below a frame's limit with one rename of the longest paths to spare.
const BATCH_BYTES: usize = 48 * 1024;

/// What the host watches.
#[derive(Debug)]
pub(super) enum Scope {
    /// A folder, with all changes.
    Folder,
    /// One file of the watched folder, by the name that the host has for it.
    File { name: Vec<u8>, shown: Vec<u8>, is_there: bool },
}

impl Scope {
    /// The same change, in terms of what the host watches.
    fn narrow(&mut self, change: FileChange) -> Option<FileChange> {
        let Scope::File { name, shown, is_there } = self else { return Some(change) };
        match change {
            FileChange::Create(path) if path == *name => {
                *is_there = true;
                Some(FileChange::Create(shown.clone()))
            }
            FileChange::Change(path) if path == *name => Some(FileChange::Change(shown.clone())),
            // With an empty path, the folder that the file was in is gone.
            FileChange::Delete(path) if path == *name || path.is_empty() => {
                std::mem::take(is_there).then(|| FileChange::Delete(shown.clone()))
            }
            FileChange::Rename { from, .. } if from == *name => {
                *is_there = false;
                Some(FileChange::Delete(shown.clone()))
            }
            FileChange::Rename { to, .. } if to == *name => Some(match std::mem::replace(is_there, true) {
                true => FileChange::Change(shown.clone()),
                false => FileChange::Create(shown.clone()),
            }),
            FileChange::Overflow => Some(FileChange::Overflow),
            _ => None,
        }
    }
}

#[derive(Debug)]
pub(super) struct Batch {
    scope: Scope,
    changes: Vec<FileChange>,
    bytes: usize,
}

impl Batch {
    pub(super) fn new(scope: Scope) -> Batch {
        Batch { scope, changes: Vec::new(), bytes: 0 }
    }

    /// Adds a change, unless it equals the last one.
    pub(super) fn push(&mut self, change: FileChange) {
        let Some(change) = self.scope.narrow(change) else { return };
        let says_the_same = matches!(change, FileChange::Change(_) | FileChange::Overflow);
        if says_the_same && self.changes.last() == Some(&change) {
            return;
        }
        self.bytes += match &change {
            FileChange::Create(path) | FileChange::Change(path) | FileChange::Delete(path) => 4 + path.len(),
            FileChange::Rename { from, to } => 8 + from.len() + to.len(),
            FileChange::Overflow => 1,
        };
        self.changes.push(change);
    }

    pub(super) fn is_full(&self) -> bool {
        self.bytes >= BATCH_BYTES
    }

    /// The payload of a frame with all changes; `None` when there are none.
    pub(super) fn take(&mut self) -> Result<Option<Bytes>, Fault> {
        if self.changes.is_empty() {
            return Ok(None);
        }
        self.bytes = 0;
        let encoded = encode_data(&std::mem::take(&mut self.changes));
        encoded.map(Some).map_err(|error| fault(FaultCode::Internal, format!("changes could not be encoded: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(scope: Scope, changes: Vec<FileChange>) -> Vec<FileChange> {
        let mut batch = Batch::new(scope);
        changes.into_iter().for_each(|change| batch.push(change));
        match batch.take().unwrap() {
            Some(bytes) => cofferdam_protocol::decode(&bytes).unwrap(),
            None => Vec::new(),
        }
    }

    fn path(path: &str) -> Vec<u8> {
        path.as_bytes().to_vec()
    }

    #[test]
    fn changes_of_one_file_in_a_row_are_told_once() {
        let change = |name| FileChange::Change(path(name));
        let create = FileChange::Create(path("a"));
        let changes = vec![create.clone(), change("a"), change("a"), change("b"), change("a"), create.clone()];
        let expected = vec![create.clone(), change("a"), change("b"), change("a"), create];
        assert_eq!(told(Scope::Folder, changes), expected);
    }

    #[test]
    fn a_watched_file_is_told_by_its_own_name_and_nothing_else_is() {
        let scope = || Scope::File { name: path("v1"), shown: path("current"), is_there: true };
        let rename = |from, to| FileChange::Rename { from: path(from), to: path(to) };
        let shown = path("current");
        let changes = vec![
            FileChange::Change(path("other")),
            FileChange::Change(path("v1")),
            rename("other", "v1"),
            rename("v1", "gone"),
            rename("other", "v1"),
            FileChange::Delete(path("v1")),
            FileChange::Delete(path("")),
            FileChange::Create(path("v1")),
            FileChange::Delete(path("")),
        ];
        let expected = vec![
            FileChange::Change(shown.clone()),
            FileChange::Delete(shown.clone()),
            FileChange::Create(shown.clone()),
            FileChange::Delete(shown.clone()),
            FileChange::Create(shown.clone()),
            FileChange::Delete(shown),
        ];
        assert_eq!(told(scope(), changes), expected);
    }
}
