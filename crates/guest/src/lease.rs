//! When the sandbox ends by itself: idle for too long, too old, or with no host linked.
//!
//! PID 1 holds the lease so that nothing leaks whatever becomes of the hosts. Time does not pass while the machine
//! sleeps (`CLOCK_MONOTONIC`).

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use cofferdam_protocol::Lease as Terms;
use tokio::sync::Notify;
use tokio::time::Instant;

#[derive(Debug)]
pub(crate) struct Lease {
    terms: Cell<Terms>,
    started: Instant,
    active: Cell<Instant>,
    unlinked: Cell<Instant>,
    links: Cell<u32>,
    busy: Cell<u32>,
    changed: Notify,
}

impl Lease {
    pub(crate) fn new(terms: Terms) -> Rc<Lease> {
        let now = Instant::now();
        Rc::new(Lease {
            terms: Cell::new(terms),
            started: now,
            active: Cell::new(now),
            unlinked: Cell::new(now),
            links: Cell::new(0),
            busy: Cell::new(0),
            changed: Notify::new(),
        })
    }

    pub(crate) fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// Something happened: a request, or output of a process.
    pub(crate) fn touch(&self) {
        self.active.set(Instant::now());
    }

    /// A host is linked for as long as the guard lives.
    pub(crate) fn linked(self: &Rc<Self>) -> Guard {
        self.links.set(self.links.get() + 1);
        let lease = Rc::clone(self);
        Guard(Some(Box::new(move || {
            lease.links.set(lease.links.get() - 1);
            lease.unlinked.set(Instant::now());
            lease.changed.notify_one();
        })))
    }

    /// A request is under way, which is never idle, for as long as the guard lives.
    pub(crate) fn busy(self: &Rc<Self>) -> Guard {
        self.busy.set(self.busy.get() + 1);
        let lease = Rc::clone(self);
        Guard(Some(Box::new(move || {
            lease.busy.set(lease.busy.get() - 1);
            lease.touch();
        })))
    }

    /// Waits for the lease to run out, and says why it did.
    pub(crate) async fn expired(&self) -> &'static str {
        loop {
            let now = Instant::now();
            let deadlines = self.deadlines(now);
            if let Some((_, reason)) = deadlines.iter().flatten().find(|(at, _)| *at <= now) {
                return reason;
            }
            let next = deadlines.iter().flatten().map(|(at, _)| *at).min();
            tokio::select! {
                () = tokio::time::sleep_until(next.unwrap_or(now + Duration::from_secs(3600))) => {}
                () = self.changed.notified() => {}
            }
        }
    }

    fn deadlines(&self, now: Instant) -> [Option<(Instant, &'static str)>; 3] {
        let terms = self.terms.get();
        let after = |from: Instant, ms: u64| (ms > 0).then(|| from.checked_add(Duration::from_millis(ms))).flatten();
        let idle_since = if self.busy.get() > 0 { now } else { self.active.get() };
        [
            after(self.started, terms.max_ms).map(|at| (at, "maximum lifetime")),
            after(idle_since, terms.idle_ms).map(|at| (at, "idle")),
            (self.links.get() == 0)
                .then(|| after(self.unlinked.get(), terms.orphan_ms))
                .flatten()
                .map(|at| (at, "orphaned")),
        ]
    }
}

/// Undoes on drop what its maker did.
pub(crate) struct Guard(Option<Box<dyn FnOnce()>>);

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(undo) = self.0.take() {
            undo();
        }
    }
}
