//! The memory limit of all commands together, where no cgroup enforces it: checked while commands run. Beyond the limit the
//! largest process is killed, as the kernel would, and the kill is counted as one for memory.

use std::cell::Cell;
use std::rc::{Rc, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::process::{count_memory_kill, usage};
use crate::sandbox::Sandbox;

/// Between two checks: far from the limit, and near it.
const LOOK: Duration = Duration::from_millis(50);
const LOOK_CLOSELY: Duration = Duration::from_millis(5);

/// How long a killed process may take to free its memory.
const GIVING_BACK: Duration = Duration::from_secs(2);

pub(crate) struct Memory {
    sandbox: Weak<Sandbox>,
    limit: Cell<u64>,
    changed: Notify,
}

/// Freeing much memory takes a moment; no other process must be killed meanwhile.
async fn until_gone(pid: i32) {
    let deadline = Instant::now() + GIVING_BACK;
    while Instant::now() < deadline && usage::of(pid) > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

impl Memory {
    pub(crate) fn new(sandbox: Weak<Sandbox>, limit: u64) -> Rc<Memory> {
        Rc::new(Memory { sandbox, limit: Cell::new(limit), changed: Notify::new() })
    }

    /// Zero when a cgroup enforces it.
    pub(crate) fn set_limit(&self, bytes: u64) {
        self.limit.set(bytes);
        self.wake();
    }

    /// A command has started: there is something to watch.
    pub(crate) fn wake(&self) {
        self.changed.notify_one();
    }

    /// Watches for as long as the sandbox lives; sleeps while there is no limit or nothing runs.
    pub(crate) async fn watch(self: Rc<Self>) {
        loop {
            let Some(sandbox) = self.sandbox.upgrade() else { return };
            if self.limit.get() == 0 || !sandbox.processes.any_running() {
                drop(sandbox);
                self.changed.notified().await;
                continue;
            }
            drop(sandbox);
            let usage = usage::now();
            if usage.resident_bytes > self.limit.get()
                && let Some((bytes, largest)) = usage::weigh(self.limit.get())
                && bytes > self.limit.get()
            {
                count_memory_kill();
                // SAFETY: a signal to a process of this sandbox; that it may just have ended is fine.
                unsafe { libc::kill(largest, libc::SIGKILL) };
                until_gone(largest).await;
            }
            let is_near = usage.memory_bytes > self.limit.get() / 2;
            tokio::time::sleep(if is_near { LOOK_CLOSELY } else { LOOK }).await;
        }
    }
}
