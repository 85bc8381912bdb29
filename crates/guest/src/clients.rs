//! Which host processes are linked, by the id each sent in its handshake.
//!
//! A host's links may break and come back; a host without a link for [`GRACE`] counts as gone, and the processes that it
//! did not detach are ended.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::{Rc, Weak};
use std::time::Duration;

use crate::sandbox::Sandbox;

const GRACE: Duration = Duration::from_secs(10);

pub(crate) struct Clients {
    sandbox: Weak<Sandbox>,
    links: RefCell<HashMap<u128, u32>>,
}

impl Clients {
    pub(crate) fn new(sandbox: Weak<Sandbox>) -> Rc<Clients> {
        Rc::new(Clients { sandbox, links: RefCell::default() })
    }

    pub(crate) fn enter(self: &Rc<Self>, client: u128) -> Presence {
        *self.links.borrow_mut().entry(client).or_default() += 1;
        Presence { client, clients: Rc::clone(self) }
    }

    fn leave(self: &Rc<Self>, client: u128) {
        let mut links = self.links.borrow_mut();
        if let Some(count) = links.get_mut(&client) {
            *count -= 1;
            if *count == 0 {
                links.remove(&client);
                tokio::task::spawn_local(Rc::clone(self).await_return(client));
            }
        }
    }

    async fn await_return(self: Rc<Self>, client: u128) {
        tokio::time::sleep(GRACE).await;
        if self.links.borrow().contains_key(&client) {
            return;
        }
        if let Some(sandbox) = self.sandbox.upgrade() {
            sandbox.processes.abandon(client);
        }
    }
}

/// One link of one client, for as long as it lives.
pub(crate) struct Presence {
    client: u128,
    clients: Rc<Clients>,
}

impl Presence {
    pub(crate) fn client(&self) -> u128 {
        self.client
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.clients.leave(self.client);
    }
}
