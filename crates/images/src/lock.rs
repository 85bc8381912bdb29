//! Locks between processes: one process makes what others wait for, and nothing in use is removed.
//!
//! A lock belongs to an open file, not to a process: it ends with the last copy of its descriptor, however a process ends.

use std::fs::{File, OpenOptions};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::error::{ImageError, Result};

/// Between two attempts to take a lock: a wait in the kernel could not be cancelled.
const PAUSE: Duration = Duration::from_millis(25);

/// How a lock is shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    /// By all users.
    Users,
    /// By one maker or remover.
    One,
}

/// A lock that is held.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// The lock, unless another process has it.
    pub(crate) fn try_take(path: &Path, share: Share) -> Result<Option<Lock>> {
        loop {
            let failed = || ImageError::storage::<std::io::Error>("lock", path);
            let file = OpenOptions::new().create(true).truncate(false).write(true).open(path).map_err(failed())?;
            let operation = match share {
                Share::Users => FlockOperation::NonBlockingLockShared,
                Share::One => FlockOperation::NonBlockingLockExclusive,
            };
            match flock(&file, operation) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => return Ok(None),
                Err(Errno::INTR) => continue,
                Err(error) => return Err(failed()(error.into())),
            }
            // Its last holder may have removed the file: then it locks nothing any more.
            let ours = file.metadata().map_err(failed())?.ino();
            if path.metadata().is_ok_and(|there| there.ino() == ours) {
                return Ok(Some(Lock { file, path: path.to_owned() }));
            }
        }
    }

    /// Waits for the lock; calls `waiting` once if another process has it.
    pub(crate) async fn take(path: &Path, share: Share, waiting: impl FnOnce()) -> Result<Lock> {
        if let Some(lock) = Lock::try_take(path, share)? {
            return Ok(lock);
        }
        waiting();
        loop {
            tokio::time::sleep(PAUSE).await;
            if let Some(lock) = Lock::try_take(path, share)? {
                return Ok(lock);
            }
        }
    }

    /// Removes the lock's file.
    pub(crate) fn retire(self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Keeps an image from being pruned, for as long as it is held, or any copy of its descriptor: a process that outlives this one
/// can be given one.
///
/// ```no_run
/// # async fn example() -> Result<(), cofferdam_images::ImageError> {
/// use std::os::fd::AsFd;
///
/// let store = cofferdam_images::ImageStore::new("/var/lib/cofferdam/images");
/// let image = store.prepare("alpine:3.19", cofferdam_images::PullPolicy::Missing, None).await?;
/// let for_a_child = image.lease.as_fd().try_clone_to_owned();
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct InUse(Lock);

impl InUse {
    pub(crate) fn new(lock: Lock) -> InUse {
        InUse(lock)
    }
}

impl AsFd for InUse {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.file.as_fd()
    }
}
