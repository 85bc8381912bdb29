//! A box with a completed handshake: what becomes a sandbox.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use cofferdam_protocol::Setup;

use super::Sandbox;
use super::box_ref::{BoxRef, Relink};
use super::event_forwarder::EventForwarder;
use crate::backend::{BoxRecord, BoxSpec};
use crate::guest::{ByteStream, Guest};
use crate::host::Host;
use crate::key::SessionKey;
use crate::{Error, ErrorCode, Result};

/// A box with a completed handshake that is no sandbox yet.
pub(crate) struct Linked {
    pub(crate) box_ref: Arc<BoxRef>,
    pub(crate) guest: Arc<Guest>,
    events: Arc<EventForwarder>,
}

impl Linked {
    /// Does the handshake with the guest of a box.
    pub(crate) async fn new(host: &Arc<Host>, handle: String, stream: ByteStream) -> Result<Linked> {
        let box_ref = BoxRef::new(host, handle);
        let events = EventForwarder::new(host.events.clone());
        let connect = Box::new(Relink(Arc::clone(&box_ref)));
        let guest =
            Arc::new(Guest::open(connect, stream, host.client, events.on_notice(), Arc::clone(&host.files)).await?);
        let linked = Linked { box_ref, guest, events };
        linked.upgrade();
        Ok(linked)
    }

    /// A box that does not run: calls reject with `error` until it does.
    pub(super) fn stopped(host: &Arc<Host>, handle: String, sandbox_id: String, error: Error) -> Linked {
        let box_ref = BoxRef::new(host, handle);
        let events = EventForwarder::new(host.events.clone());
        let connect = Box::new(Relink(Arc::clone(&box_ref)));
        let guest =
            Arc::new(Guest::unlinked(connect, host.client, events.on_notice(), sandbox_id, Arc::clone(&host.files)));
        guest.close(error);
        Linked { box_ref, guest, events }
    }

    /// Moves to a direct link where there is one, in the background: the first calls do not wait for it.
    fn upgrade(&self) {
        let (box_ref, guest) = (Arc::clone(&self.box_ref), Arc::clone(&self.guest));
        tokio::spawn(async move {
            if let Ok(backend) = box_ref.host().backend().await
                && let Some(stream) = backend.direct_link(&box_ref.handle()).await
            {
                // If it fails, the link there is goes on.
                let _ = guest.upgrade(stream).await;
            }
        });
    }

    pub(crate) fn handle(&self) -> String {
        self.box_ref.handle()
    }

    /// The guest's current setup.
    pub(crate) fn setup(&self) -> Result<Setup> {
        self.guest.hello().map(|hello| hello.setup).ok_or_else(|| {
            Error::new(ErrorCode::SandboxLost, "the connection to the sandbox broke right after the handshake")
        })
    }

    /// Turns it into the sandbox of a session.
    pub(crate) fn into_sandbox(self, setup: Setup, key: SessionKey, origin: Origin) -> Arc<Sandbox> {
        self.events.identify(&setup.sandbox_id, key.as_str());
        let sandbox = Sandbox {
            id: setup.sandbox_id,
            key,
            workdir: setup.workdir,
            image: origin.image,
            persist: origin.persist,
            host: Arc::clone(self.box_ref.host()),
            box_ref: self.box_ref,
            guest: self.guest,
            spec: origin.spec,
            closed: AtomicBool::new(false),
            opens: AtomicUsize::new(0),
        };
        if sandbox.host.events.has_listeners() {
            sandbox.guest.watch();
        }
        sandbox.watch_link();
        Arc::new(sandbox)
    }
}

/// How a box was created, as far as its guest does not know.
pub(crate) struct Origin {
    pub(crate) image: String,
    pub(crate) persist: bool,
    pub(crate) spec: Option<BoxSpec>,
}

impl From<BoxSpec> for Origin {
    fn from(spec: BoxSpec) -> Origin {
        Origin { image: spec.image.clone(), persist: spec.persist, spec: Some(spec) }
    }
}

impl From<&BoxRecord> for Origin {
    fn from(record: &BoxRecord) -> Origin {
        Origin { image: record.image.clone(), persist: record.persist, spec: None }
    }
}
