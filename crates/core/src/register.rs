//! The sandboxes that one manager has open, by session key.
//!
//! Invariant: the lock of a key's slot is held while its sandbox is opened, so that callers of one key get one sandbox and
//! callers of different keys do not wait for each other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::lock::lock;
use crate::sandbox::Sandbox;

#[derive(Default)]
pub(crate) struct Register(Mutex<HashMap<String, Arc<Slot>>>);

/// One key's sandbox.
pub(crate) type Slot = tokio::sync::Mutex<Option<(Arc<Sandbox>, Ownership)>>;

/// Whether this manager created a sandbox: only then it is closed with the manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ownership {
    Owned,
    Adopted,
}

impl Register {
    fn slots(&self) -> MutexGuard<'_, HashMap<String, Arc<Slot>>> {
        lock(&self.0)
    }

    pub(crate) fn slot(&self, key: &str) -> Arc<Slot> {
        let mut slots = self.slots();
        // Slots of closed sandboxes would pile up otherwise.
        let is_open = |slot: &Slot| {
            slot.try_lock().is_ok_and(|slot| slot.as_ref().is_some_and(|(sandbox, _)| !sandbox.is_closed()))
        };
        slots.retain(|_, slot| Arc::strong_count(slot) > 1 || is_open(slot));
        Arc::clone(slots.entry(key.to_owned()).or_default())
    }

    /// Takes all slots out; a sandbox that is just being opened appears in its slot a moment later.
    pub(crate) fn drain(&self) -> Vec<Arc<Slot>> {
        self.slots().drain().map(|(_, slot)| slot).collect()
    }

    /// Those that are not just being opened or closed.
    fn stable(&self) -> Vec<(Arc<Sandbox>, Ownership)> {
        let slots = self.slots();
        let stable = slots.values().filter_map(|slot| slot.try_lock().ok()?.clone());
        stable.filter(|(sandbox, _)| !sandbox.is_closed()).collect()
    }

    pub(crate) fn open(&self) -> Vec<Arc<Sandbox>> {
        self.stable().into_iter().map(|(sandbox, _)| sandbox).collect()
    }

    pub(crate) fn owned(&self) -> Vec<Arc<Sandbox>> {
        self.stable()
            .into_iter()
            .filter(|(_, origin)| *origin == Ownership::Owned)
            .map(|(sandbox, _)| sandbox)
            .collect()
    }
}
