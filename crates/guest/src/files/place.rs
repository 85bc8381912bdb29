//! A path in the sandbox as the host gave it, and what the errors at it mean.

use std::io;
use std::path::PathBuf;
use std::sync::OnceLock;

use cofferdam_protocol::{Fault, FaultCode, Reply, Setup};
use cofferdam_tree::io_fault;

use crate::process::users::{self, Owner};
use crate::requests::{Failure, fault};

/// A path, and the owner of new files there.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    pub(crate) owner: Owner,
}

impl Place {
    pub(crate) fn new(setup: &Setup, path: &str) -> Result<Place, Fault> {
        let owner = users::resolve(setup.user.as_deref())?.owner();
        Place { path: PathBuf::from(&setup.workdir), owner }.at(path)
    }

    /// Another place, absolute or relative to this one.
    pub(crate) fn at(&self, path: &str) -> Result<Place, Fault> {
        if path.is_empty() || path.contains('\0') {
            return Err(fault(FaultCode::InvalidArgument, format!("{path:?} is not a path")));
        }
        // Without `.`; the kernel resolves `..`, which may come after a link.
        Ok(Place { path: self.path.join(path).components().collect(), owner: self.owner })
    }

    /// Runs an operation of unknown length on a helper thread.
    pub(crate) async fn blocking<F>(self, operation: F) -> Result<Reply, Failure>
    where
        F: FnOnce(Place) -> Result<Reply, Fault> + Send + 'static,
    {
        Ok(blocking(move || operation(self)).await?)
    }

    /// Runs an operation of a few system calls: on this thread, where that cannot block.
    pub(crate) async fn brief<F>(self, operation: F) -> Result<Reply, Failure>
    where
        F: FnOnce(Place) -> Result<Reply, Fault> + Send + 'static,
    {
        Ok(brief(move || operation(self)).await?)
    }

    pub(crate) fn fault(&self, doing: &str, error: &io::Error) -> Fault {
        io_fault(doing, &self.path, error)
    }
}

pub(crate) async fn blocking<T: Send + 'static>(
    operation: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    match tokio::task::spawn_blocking(operation).await {
        Ok(outcome) => outcome,
        Err(error) => Err(fault(FaultCode::Internal, format!("a file operation was interrupted: {error}"))),
    }
}

/// A trip to a helper thread and back costs more than a few system calls on a local file system. On one that may hang
/// (a network volume, FUSE), it keeps the sandbox responsive.
pub(crate) async fn brief<T: Send + 'static>(
    operation: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    if all_mounts_are_local() { operation() } else { blocking(operation).await }
}

/// Determined once: nothing in the sandbox can mount.
fn all_mounts_are_local() -> bool {
    static LOCAL: OnceLock<bool> = OnceLock::new();
    const KNOWN: [&str; 17] = [
        "bpf", "btrfs", "cgroup", "cgroup2", "devpts", "devtmpfs", "ext2", "ext3", "ext4", "f2fs", "mqueue", "overlay",
        "proc", "sysfs", "tmpfs", "xfs", "zfs",
    ];
    *LOCAL.get_or_init(|| {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let kind = |line: &str| line.split(" - ").nth(1)?.split(' ').next().map(str::to_owned);
        !mounts.is_empty() && mounts.lines().all(|line| kind(line).is_some_and(|kind| KNOWN.contains(&kind.as_str())))
    })
}
