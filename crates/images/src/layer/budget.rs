//! How much an image may unpack to: counted while it is unpacked, so a small archive cannot fill a disk.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{ImageError, ImageErrorKind, Result};

/// The most that one image may unpack to, all layers together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of content, holes included.
    pub bytes: u64,
    /// Files, folders and links.
    pub entries: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { bytes: 64 << 30, entries: 4_000_000 }
    }
}

/// Bytes of names that must be remembered until a layer is done: of folders and of removals. A small archive can have many.
const NAMES: u64 = 256 * 1024 * 1024;

/// What is left of it.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    limits: Limits,
    spent: Arc<Spent>,
}

#[derive(Debug, Default)]
struct Spent {
    bytes: AtomicU64,
    entries: AtomicU64,
    names: AtomicU64,
}

impl Budget {
    pub(crate) fn new(limits: Limits) -> Budget {
        Budget { limits, spent: Arc::default() }
    }

    pub(crate) fn bytes(&self, count: u64) -> Result<()> {
        let most = self.limits.bytes;
        self.spend(&self.spent.bytes, count, most, || format!("it unpacks to more than {most} bytes"))
    }

    pub(crate) fn entries(&self, count: u64) -> Result<()> {
        let most = self.limits.entries;
        self.spend(&self.spent.entries, count, most, || format!("it has more than {most} files, folders and links"))
    }

    pub(crate) fn name(&self, name: &[u8]) -> Result<()> {
        let what = || format!("the names of its folders take more than {NAMES} bytes");
        self.spend(&self.spent.names, name.len() as u64, NAMES, what)
    }

    fn spend(&self, spent: &AtomicU64, count: u64, most: u64, what: impl FnOnce() -> String) -> Result<()> {
        let add = |spent: u64| spent.checked_add(count).filter(|sum| *sum <= most);
        match spent.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add) {
            Ok(_) => Ok(()),
            Err(_) => {
                let message =
                    format!("{}, which is the most that this store takes. Raise its limits if you trust it", what());
                Err(ImageError::new(ImageErrorKind::TooLarge, message))
            }
        }
    }
}

/// Counts all that is read.
pub(crate) struct Metered<R> {
    pub(crate) inner: R,
    pub(crate) budget: Budget,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.budget.bytes(count as u64).map_err(io::Error::other)?;
        Ok(count)
    }
}
