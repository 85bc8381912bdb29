//! When the sandbox ends by itself: idle for too long, too old, or with no host linked.
//!
//! PID 1 holds the lease, so nothing leaks when hosts crash. Time does not pass while the machine sleeps
//! (`CLOCK_MONOTONIC`).

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use cofferdam_protocol::{Lease as Terms, Term};
use tokio::sync::Notify;
use tokio::time::Instant;

/// How long before the end hosts are warned; at most a fifth of the lease.
const WARNING: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct Lease {
    terms: Cell<Terms>,
    started: Cell<Instant>,
    /// The start of the maximum lifetime.
    granted: Cell<Instant>,
    active: Cell<Instant>,
    unlinked: Cell<Instant>,
    links: Cell<u32>,
    busy: Cell<u32>,
    /// The deadline that hosts were last warned of.
    warned: Cell<Option<Instant>>,
    changed: Notify,
}

/// An event of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// It runs out soon, unless something happens.
    Warning { term: Term, left: Duration },
    /// It has run out.
    Expired(Term),
}

#[derive(Debug, Clone, Copy)]
struct Deadline {
    term: Term,
    at: Instant,
    warn_at: Option<Instant>,
}

impl Lease {
    pub(crate) fn new(terms: Terms) -> Rc<Lease> {
        let now = Instant::now();
        Rc::new(Lease {
            terms: Cell::new(terms),
            started: Cell::new(now),
            granted: Cell::new(now),
            active: Cell::new(now),
            unlinked: Cell::new(now),
            links: Cell::new(0),
            busy: Cell::new(0),
            warned: Cell::new(None),
            changed: Notify::new(),
        })
    }

    /// As if the sandbox had just started.
    pub(crate) fn renew(&self, terms: Terms) {
        let now = Instant::now();
        self.started.set(now);
        self.granted.set(now);
        self.active.set(now);
        self.set_terms(terms);
    }

    /// The maximum lifetime counts from now on.
    pub(crate) fn extend(&self, idle_ms: Option<u64>, max_ms: Option<u64>) {
        let mut terms = self.terms.get();
        if let Some(idle_ms) = idle_ms {
            terms.idle_ms = idle_ms;
        }
        if let Some(max_ms) = max_ms {
            terms.max_ms = max_ms;
            self.granted.set(Instant::now());
        }
        self.touch();
        self.set_terms(terms);
    }

    fn set_terms(&self, terms: Terms) {
        self.terms.set(terms);
        self.changed.notify_one();
    }

    pub(crate) fn terms(&self) -> Terms {
        self.terms.get()
    }

    pub(crate) fn uptime(&self) -> Duration {
        self.started.get().elapsed()
    }

    /// Time until its end if nothing happens and its hosts stay; `None` when it never ends.
    pub(crate) fn remaining(&self) -> Option<Duration> {
        let now = Instant::now();
        self.deadlines(now).map(|deadline| deadline.at.saturating_duration_since(now)).min()
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

    /// A request is under way for as long as the guard lives: the sandbox is not idle.
    pub(crate) fn busy(self: &Rc<Self>) -> Guard {
        self.touch();
        self.busy.set(self.busy.get() + 1);
        let lease = Rc::clone(self);
        Guard(Some(Box::new(move || {
            lease.busy.set(lease.busy.get() - 1);
            lease.touch();
        })))
    }

    /// Waits for the next warning, or for the end.
    pub(crate) async fn due(&self) -> Due {
        loop {
            let now = Instant::now();
            if let Some(over) = self.deadlines(now).find(|deadline| deadline.at <= now) {
                return Due::Expired(over.term);
            }
            let is_new = |deadline: &Deadline| self.warned.get() != Some(deadline.at);
            let warn = |deadline: &Deadline| deadline.warn_at.is_some_and(|at| at <= now) && is_new(deadline);
            if let Some(deadline) = self.deadlines(now).find(warn) {
                self.warned.set(Some(deadline.at));
                return Due::Warning { term: deadline.term, left: deadline.at - now };
            }
            let warnings = self.deadlines(now).filter(is_new).filter_map(|deadline| deadline.warn_at);
            let next = self.deadlines(now).map(|deadline| deadline.at).chain(warnings).min();
            tokio::select! {
                () = tokio::time::sleep_until(next.unwrap_or(now + Duration::from_secs(3600))) => {}
                () = self.changed.notified() => {}
            }
        }
    }

    fn deadlines(&self, now: Instant) -> impl Iterator<Item = Deadline> {
        let terms = self.terms.get();
        let idle_since = if self.busy.get() > 0 { now } else { self.active.get() };
        let orphan_ms = if self.links.get() == 0 { terms.orphan_ms } else { 0 };
        [
            (Term::MaxLifetime, self.granted.get(), terms.max_ms),
            (Term::Idle, idle_since, terms.idle_ms),
            (Term::Orphan, self.unlinked.get(), orphan_ms),
        ]
        .into_iter()
        .filter(|(_, _, ms)| *ms > 0)
        .filter_map(|(term, from, ms)| {
            let length = Duration::from_millis(ms);
            let at = from.checked_add(length)?;
            // An orphan has nobody to warn.
            let warn_at = (term != Term::Orphan).then(|| at - WARNING.min(length / 5));
            Some(Deadline { term, at, warn_at })
        })
    }
}

/// Undoes something on drop.
pub(crate) struct Guard(Option<Box<dyn FnOnce()>>);

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(undo) = self.0.take() {
            undo();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    fn terms(idle: u64, max: u64, orphan: u64) -> Terms {
        Terms { idle_ms: idle * 1000, max_ms: max * 1000, orphan_ms: orphan * 1000 }
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_sandbox_is_warned_of_its_end_and_then_ends() {
        let lease = Lease::new(terms(100, 0, 0));
        let began = Instant::now();
        assert_eq!(lease.due().await, Due::Warning { term: Term::Idle, left: seconds(20) });
        assert_eq!(lease.due().await, Due::Expired(Term::Idle));
        assert_eq!(began.elapsed(), seconds(100));
    }

    #[tokio::test(start_paused = true)]
    async fn activity_puts_the_end_off_and_another_warning_comes_before_it() {
        let lease = Lease::new(terms(100, 0, 0));
        assert!(matches!(lease.due().await, Due::Warning { .. }));
        lease.touch();
        assert!(matches!(lease.due().await, Due::Warning { .. }));
        let busy = lease.busy();
        assert!(tokio::time::timeout(seconds(1000), lease.due()).await.is_err());
        drop(busy);
        assert!(matches!(lease.due().await, Due::Warning { .. }));
    }

    #[tokio::test(start_paused = true)]
    async fn the_maximum_lifetime_ends_a_busy_sandbox_unless_it_is_extended() {
        let lease = Lease::new(terms(0, 600, 0));
        let _busy = lease.busy();
        assert_eq!(lease.due().await, Due::Warning { term: Term::MaxLifetime, left: seconds(60) });
        lease.extend(None, Some(600_000));
        assert_eq!(lease.due().await, Due::Warning { term: Term::MaxLifetime, left: seconds(60) });
        assert_eq!(lease.due().await, Due::Expired(Term::MaxLifetime));
    }

    #[tokio::test(start_paused = true)]
    async fn an_orphan_ends_without_a_warning_and_a_link_saves_it() {
        let lease = Lease::new(terms(0, 0, 5));
        let link = lease.linked();
        assert!(tokio::time::timeout(seconds(100), lease.due()).await.is_err());
        drop(link);
        assert_eq!(lease.due().await, Due::Expired(Term::Orphan));
    }
}
