//! Notices to all links: that the lease runs out, that commands start and end, and why the guest ends.
//!
//! A notice never waits: when a link's outbox is full, it is dropped.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use cofferdam_protocol::Notice;

use crate::outbox::Outbox;

/// How long the last notice may take to be written.
const LAST_NOTICE: Duration = Duration::from_millis(200);

#[derive(Default)]
pub(crate) struct Notices(RefCell<Vec<Rc<Listener>>>);

/// One link.
pub(crate) struct Listener {
    outbox: Outbox,
    watches: Cell<bool>,
}

impl Listener {
    /// From now on it gets notices of commands too.
    pub(crate) fn watch(&self) {
        self.watches.set(true);
    }
}

impl Notices {
    pub(crate) fn join(&self, outbox: Outbox) -> Rc<Listener> {
        let listener = Rc::new(Listener { outbox, watches: Cell::new(false) });
        self.0.borrow_mut().push(Rc::clone(&listener));
        listener
    }

    pub(crate) fn leave(&self, listener: &Rc<Listener>) {
        self.0.borrow_mut().retain(|other| !Rc::ptr_eq(other, listener));
    }

    pub(crate) fn send_all(&self, notice: &Notice) {
        self.0.borrow().iter().for_each(|listener| listener.outbox.try_send(notice.to_frame()));
    }

    /// `notice` is only called when a link watches.
    pub(crate) fn send_watchers(&self, notice: impl FnOnce() -> Notice) {
        let listeners = self.0.borrow();
        if listeners.iter().any(|listener| listener.watches.get()) {
            let notice = notice();
            listeners.iter().filter(|l| l.watches.get()).for_each(|l| l.outbox.try_send(notice.to_frame()));
        }
    }

    /// Sends to all, and waits until it is written.
    pub(crate) async fn send_last(&self, notice: &Notice) {
        self.send_all(notice);
        let listeners: Vec<_> = self.0.borrow().clone();
        let sent = async {
            for listener in listeners {
                while !listener.outbox.is_empty() {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
        };
        let _ = tokio::time::timeout(LAST_NOTICE, sent).await;
    }
}
