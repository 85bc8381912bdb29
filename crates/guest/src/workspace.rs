//! The disk limit of the workdir, where neither kernel nor engine enforces it: measured while commands run, and checked
//! before writes through the API.
//!
//! The free space of the file system is read often, which is one system call; the tree is walked only when enough was
//! written since the last walk that the limit may be near. A command is ended only if it
//! wrote while the workspace grew beyond its limit: one that deletes, or merely runs, is left alone.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::{Rc, Weak};
use std::time::Duration;

use cofferdam_protocol::{Fault, FaultCode};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::process::Written;
use crate::requests::fault;
use crate::sandbox::Sandbox;

/// Between two looks at the file system.
const LOOK: Duration = Duration::from_millis(50);

/// The tree is walked at least this often while commands run, but for at most a tenth of a processor's time.
const WALK: Duration = Duration::from_secs(2);
const WALK_SHARE: u32 = 10;

/// Growth that is not worth a walk.
const LITTLE: u64 = 256 * 1024;

pub(crate) struct Workspace {
    sandbox: Weak<Sandbox>,
    limit: Cell<u64>,
    used: Cell<u64>,
    /// What was used when the watch last looked, and what came through the API since: all else is growth.
    watched: Cell<u64>,
    /// The least that the whole file system held since then: others may free more on it than is written here.
    taken: Cell<u64>,
    walked: Cell<Option<Instant>>,
    walk_cost: Cell<Duration>,
    written: RefCell<HashMap<i32, Written>>,
    changed: Notify,
}

impl Workspace {
    pub(crate) fn new(sandbox: Weak<Sandbox>, limit: u64) -> Rc<Workspace> {
        Rc::new(Workspace {
            sandbox,
            limit: Cell::new(limit),
            used: Cell::new(0),
            watched: Cell::new(0),
            taken: Cell::new(0),
            walked: Cell::new(None),
            walk_cost: Cell::new(Duration::ZERO),
            written: RefCell::default(),
            changed: Notify::new(),
        })
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.get()
    }

    /// Now or a moment ago: a large tree is not walked for every call.
    pub(crate) async fn recent(&self) -> u64 {
        let age = LOOK.max(self.walk_cost.get() * WALK_SHARE);
        if self.walked.get().is_none_or(|walked| walked.elapsed() >= age) {
            self.measure().await;
        }
        self.used.get()
    }

    pub(crate) fn set_limit(&self, bytes: u64) {
        self.limit.set(bytes);
        self.walked.set(None);
        self.changed.notify_one();
    }

    /// A command has started: there is something to watch.
    pub(crate) fn wake(&self) {
        self.changed.notify_one();
    }

    /// Whether `more` bytes may be written through the API. Measures again before it refuses.
    pub(crate) async fn admit(&self, path: &Path, more: u64) -> Result<(), Fault> {
        let limit = self.limit.get();
        if limit == 0 || !path.starts_with(self.folder()) {
            return Ok(());
        }
        if self.walked.get().is_none() || self.used.get() + more > limit {
            self.measure().await;
        }
        if self.used.get() + more <= limit {
            return Ok(());
        }
        let message = format!(
            "the workspace holds {} of at most {limit} bytes, so \"{}\" does not fit; remove something, or raise \
             limits.workspaceMb",
            self.used.get(),
            path.display()
        );
        Err(fault(FaultCode::LimitExceeded, message))
    }

    /// Something was written through the API.
    pub(crate) fn add(&self, bytes: u64) {
        self.used.set(self.used.get() + bytes);
        self.watched.set(self.watched.get() + bytes);
    }

    fn folder(&self) -> PathBuf {
        self.sandbox.upgrade().map(|sandbox| PathBuf::from(&sandbox.setup().workdir)).unwrap_or_default()
    }

    /// Watches for as long as the sandbox lives; sleeps while there is no limit or nothing runs.
    pub(crate) async fn watch(self: Rc<Self>) {
        loop {
            let Some(sandbox) = self.sandbox.upgrade() else { return };
            if self.limit.get() == 0 || !sandbox.processes.any_running() {
                drop(sandbox);
                self.written.borrow_mut().clear();
                self.changed.notified().await;
                self.watched.set(self.used.get());
                continue;
            }
            if self.is_walk_due() {
                // What this walk finds beyond the last one was written between the looks before that and after this.
                let earlier = sandbox.processes.written();
                self.measure().await;
                let written = sandbox.processes.written();
                let previous = self.written.replace(earlier);
                let (used, before) = (self.used.get(), self.watched.replace(self.used.get()));
                if used > self.limit.get() && used > before {
                    let wrote = |id: &i32| match (written.get(id), previous.get(id)) {
                        (Some(Written::Bytes(now)), Some(Written::Bytes(then))) => now > then,
                        (Some(Written::Bytes(now)), None) => *now > 0,
                        _ => true,
                    };
                    sandbox.processes.end_writers(wrote);
                }
            }
            drop(sandbox);
            tokio::time::sleep(LOOK).await;
        }
    }

    fn is_walk_due(&self) -> bool {
        let Some(walked) = self.walked.get() else { return true };
        if walked.elapsed() < self.walk_cost.get() * WALK_SHARE {
            return false;
        }
        let headroom = self.limit.get().saturating_sub(self.used.get());
        let taken = taken(&self.folder());
        self.taken.set(self.taken.get().min(taken));
        let grown = taken - self.taken.get();
        walked.elapsed() >= WALK || grown >= LITTLE.max(headroom / 2)
    }

    async fn measure(&self) {
        let folder = self.folder();
        let measured = tokio::task::spawn_blocking(move || {
            let began = processor_time();
            let (taken, used) = (taken(&folder), disk_usage(&folder));
            (taken, used, processor_time() - began)
        });
        if let Ok((taken, used, cost)) = measured.await {
            self.taken.set(taken);
            self.used.set(used);
            self.walk_cost.set(cost);
        }
        self.walked.set(Some(Instant::now()));
    }
}

/// Of this thread. The cost of a walk is its processor time: waiting for a busy disk is no reason to look less often.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Bytes in use on the file system.
fn taken(folder: &Path) -> u64 {
    rustix::fs::statvfs(folder).map_or(0, |fs| (fs.f_blocks - fs.f_bfree) * fs.f_frsize)
}

/// As `du -sx`: blocks, each file once, this file system only.
fn disk_usage(folder: &Path) -> u64 {
    let Ok(root) = fs::symlink_metadata(folder) else { return 0 };
    let (device, mut total, mut linked) = (root.dev(), root.blocks(), HashSet::new());
    let mut pending = vec![folder.to_owned()];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.dev() != device
                || (metadata.nlink() > 1 && !metadata.is_dir() && !linked.insert(metadata.ino()))
            {
                continue;
            }
            total += metadata.blocks();
            if metadata.is_dir() {
                pending.push(entry.path());
            }
        }
    }
    total * 512
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_counts_blocks_and_each_file_once() {
        let folder = std::env::temp_dir().join(format!("cofferdam-usage-{}", std::process::id()));
        fs::create_dir_all(folder.join("below")).unwrap();
        let empty = disk_usage(&folder);
        fs::write(folder.join("below/file"), vec![1; 1 << 20]).unwrap();
        fs::hard_link(folder.join("below/file"), folder.join("again")).unwrap();
        let full = disk_usage(&folder);
        fs::remove_dir_all(&folder).unwrap();
        assert!((1 << 20..(1 << 20) + 65536).contains(&(full - empty)), "{empty} {full}");
    }
}
