//! Which paths a call may use.

use std::path::Path;

use cofferdam_protocol::{Reply, Request};

use crate::file_policy::FilePolicy;
use crate::guest::Guest;
use crate::{Error, Result};

/// The longest path Linux accepts, with its terminating NUL.
pub(in crate::guest) const MAX_PATH: usize = 4096;

/// Rejects what cannot be a path.
pub(crate) fn check_path(path: &str) -> Result<()> {
    let problem = if path.is_empty() {
        "it is empty"
    } else if path.contains('\0') {
        "it holds a NUL byte"
    } else if path.len() >= MAX_PATH {
        "it is longer than Linux allows"
    } else {
        return Ok(());
    };
    let shown: String = path.chars().take(80).collect();
    Err(Error::invalid(format!("{shown:?} is not a path: {problem}")).with("path", shown))
}

impl Guest {
    /// Checks that a path is valid and the policy does not block it.
    pub(in crate::guest) async fn admit(&self, path: &str) -> Result<()> {
        self.admit_with(path, FilePolicy::admit).await
    }

    /// The same for a whole tree.
    pub(in crate::guest) async fn admit_tree(&self, path: &str) -> Result<()> {
        self.admit_with(path, FilePolicy::admit_tree).await
    }

    /// Checks the number of files to write at once.
    pub(in crate::guest) fn admit_files(&self, count: usize) -> Result<()> {
        self.files.admit_count(count)
    }

    async fn admit_with(&self, path: &str, admit: impl Fn(&FilePolicy, &Path) -> Result<()>) -> Result<()> {
        check_path(path)?;
        if self.files.blocks_nothing() {
            return Ok(());
        }
        let workdir = self.hello().map(|hello| hello.setup.workdir).unwrap_or_default();
        admit(&self.files, &Path::new(&workdir).join(path))?;
        // A symbolic link may lead to a blocked path. Only the guest can resolve it.
        let resolved = self
            .call_now(&Request::Resolve { path: path.to_owned() }, |reply| match reply {
                Reply::Resolved { path } => Some(path),
                _ => None,
            })
            .await?;
        admit(&self.files, Path::new(&*String::from_utf8_lossy(&resolved)))
    }
}
