//! What callers may do with files. Checked here only, before the guest gets a request.
//!
//! It applies to the file API. Commands are not bound by it: the image and the command user decide what they may touch.

use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::{Error, ErrorCode, Result};

/// The file policy of a manager.
#[derive(Debug, Clone)]
pub struct FilePolicy {
    /// Paths in the sandbox, each with its whole tree; or globs.
    blocked: Vec<String>,
    globs: std::result::Result<GlobSet, String>,
    pub(crate) max_file_bytes: Option<u64>,
    pub(crate) max_files: Option<u64>,
}

impl FilePolicy {
    /// Blocked paths are absolute, or globs such as `**/.ssh`. No file that is written or transferred may be
    /// longer than `max_file_bytes`, and no call may write or transfer more than `max_files`.
    pub fn new(blocked: Vec<String>, max_file_bytes: Option<u64>, max_files: Option<u64>) -> FilePolicy {
        let globs = globs(&blocked);
        FilePolicy { blocked, globs, max_file_bytes, max_files }
    }

    /// The parsed patterns; an error if one is invalid.
    pub(crate) fn check(&self) -> Result<&GlobSet> {
        self.globs.as_ref().map_err(|why| Error::invalid(format!("policy.blockedPaths: {why}")))
    }

    pub(crate) fn blocks_nothing(&self) -> bool {
        self.blocked.is_empty()
    }

    /// Checks an absolute path. Call it with the path as given, and with links resolved.
    pub(crate) fn admit(&self, path: &Path) -> Result<()> {
        let (path, globs) = (without_dots(path), self.check()?);
        match path.ancestors().find(|ancestor| globs.is_match(ancestor)) {
            Some(_) => Err(blocked(&path, "the policy of this manager blocks it")),
            None => Ok(()),
        }
    }

    /// Checks an operation on a whole tree.
    pub(crate) fn admit_tree(&self, path: &Path) -> Result<()> {
        self.admit(path)?;
        let path = without_dots(path);
        match self.blocked.iter().find(|blocked| Path::new(blocked).starts_with(&path)) {
            Some(below) => {
                let why =
                    format!("it contains {below}, which the policy of this manager blocks; name a folder beside that");
                Err(blocked(&path, &why))
            }
            None => Ok(()),
        }
    }

    pub(crate) fn admit_size(&self, path: &str, size: u64) -> Result<()> {
        match self.max_file_bytes {
            Some(most) if size > most => {
                let message = format!(
                    "\"{path}\" would have {size} bytes or more, and the policy of this manager allows {most} per file"
                );
                Err(Error::new(ErrorCode::LimitExceeded, message).with("path", path).with("maxFileBytes", most))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn admit_count(&self, count: usize) -> Result<()> {
        match self.max_files {
            Some(most) if count as u64 > most => {
                let message =
                    format!("{count} files at once are more than the {most} that the policy of this manager allows");
                Err(Error::new(ErrorCode::LimitExceeded, message).with("maxFiles", most))
            }
            _ => Ok(()),
        }
    }
}

impl Default for FilePolicy {
    fn default() -> FilePolicy {
        FilePolicy::new(Vec::new(), None, None)
    }
}

fn globs(blocked: &[String]) -> std::result::Result<GlobSet, String> {
    let mut globs = GlobSetBuilder::new();
    for pattern in blocked {
        if !pattern.starts_with('/') && !pattern.starts_with("**") {
            return Err(format!("{pattern:?} must be an absolute path, or a glob that begins with ** or /"));
        }
        let trimmed = if pattern == "/" { pattern } else { pattern.trim_end_matches('/') };
        let glob = GlobBuilder::new(trimmed).literal_separator(true).build();
        globs.add(glob.map_err(|error| format!("{pattern:?} is not a pattern: {error}"))?);
    }
    globs.build().map_err(|error| error.to_string())
}

fn blocked(path: &Path, why: &str) -> Error {
    let shown = path.display().to_string();
    Error::new(ErrorCode::PathBlocked, format!("\"{shown}\" cannot be used: {why}")).with("path", shown)
}

fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::Normal(name) => plain.push(name),
            Component::ParentDir => {
                plain.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn policy(blocked: &[&str]) -> FilePolicy {
        FilePolicy::new(blocked.iter().map(|path| (*path).to_owned()).collect(), None, None)
    }

    fn is_blocked(policy: &FilePolicy, path: &str) -> bool {
        policy.admit(Path::new(path)).is_err()
    }

    #[test]
    fn a_blocked_path_is_blocked_with_all_below_it_and_however_it_is_written() {
        let policy = policy(&["/etc/passwd", "/root/", "**/.ssh", "/srv/*.key"]);
        for path in [
            "/etc/passwd",
            "/etc/../etc/./passwd",
            "//etc//passwd",
            "/root",
            "/root/a/b",
            "/workspace/../root",
            "/home/me/.ssh/id",
            "/.ssh",
            "/srv/a.key",
        ] {
            assert!(is_blocked(&policy, path), "{path}");
        }
        for path in ["/etc/passwd2", "/etc", "/rooted", "/workspace/x.ssh", "/srv/deep/a.key", "/"] {
            assert!(!is_blocked(&policy, path), "{path}");
        }
    }

    #[test]
    fn a_tree_with_a_blocked_path_in_it_is_blocked() {
        let policy = policy(&["/etc/passwd", "/root"]);
        for path in ["/", "/etc", "/etc/", "/root", "/root/x"] {
            assert!(policy.admit_tree(Path::new(path)).is_err(), "{path}");
        }
        assert!(policy.admit_tree(Path::new("/etc/ssl")).is_ok());
    }

    #[test]
    fn entries_that_cannot_be_meant_are_refused() {
        for bad in ["etc/passwd", "", "/a/[", "*.key"] {
            assert!(FilePolicy::new(vec![bad.to_owned()], None, None).check().is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_way_of_writing_a_path_gets_past(
            detours in proptest::collection::vec(prop_oneof!["\\./", "[a-z]{1,4}/\\.\\./", "/"], 0..6),
        ) {
            let path = format!("/{}secret/{}inner", detours.concat(), detours.concat());
            prop_assert!(is_blocked(&policy(&["/secret"]), &path), "{}", path);
        }
    }
}
