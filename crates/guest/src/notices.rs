//! What links are told without having asked: that the lease runs out, that commands begin and end, and last words.
//!
//! A notice never waits: one that finds a link's way out full is dropped, because whoever is that far behind has more
//! urgent things to read.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use cofferdam_protocol::Notice;

use crate::outbox::Outbox;

/// How long last words may take to leave.
const LAST_WORDS: Duration = Duration::from_millis(200);

#[derive(Default)]
pub(crate) struct Notices(RefCell<Vec<Rc<Listener>>>);

/// One link.
pub(crate) struct Listener {
    outbox: Outbox,
    watches: Cell<bool>,
}

impl Listener {
    /// From now on it hears of commands as well.
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

    pub(crate) fn tell_all(&self, notice: &Notice) {
        self.0.borrow().iter().for_each(|listener| listener.outbox.try_send(notice.to_frame()));
    }

    /// `notice` is only made when somebody watches.
    pub(crate) fn tell_watchers(&self, notice: impl FnOnce() -> Notice) {
        let listeners = self.0.borrow();
        if listeners.iter().any(|listener| listener.watches.get()) {
            let notice = notice();
            listeners.iter().filter(|l| l.watches.get()).for_each(|l| l.outbox.try_send(notice.to_frame()));
        }
    }

    /// Tells all, and gives it the time to leave.
    pub(crate) async fn last_words(&self, notice: &Notice) {
        self.tell_all(notice);
        let listeners: Vec<_> = self.0.borrow().clone();
        let sent = async {
            for listener in listeners {
                while !listener.outbox.is_empty() {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
        };
        let _ = tokio::time::timeout(LAST_WORDS, sent).await;
    }
}
