//! A box whose guest has said hello: what a sandbox is made of.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use cofferdam_protocol::Setup;

use super::Sandbox;
use super::body::{Body, WayBack};
use super::herald::Herald;
use crate::backend::{BoxRecord, BoxSpec};
use crate::guest::{ByteStream, Guest};
use crate::host::Host;
use crate::{Error, ErrorCode, Result};

/// A box whose guest has said hello, and that is nobody's sandbox yet.
pub(crate) struct Linked {
    pub(crate) body: Arc<Body>,
    pub(crate) guest: Arc<Guest>,
    herald: Arc<Herald>,
}

impl Linked {
    /// Shakes hands with the guest of a box.
    pub(crate) async fn new(host: &Arc<Host>, handle: String, stream: ByteStream) -> Result<Linked> {
        let body = Body::new(host, handle);
        let herald = Herald::new(host.events.clone());
        let connect = Box::new(WayBack(Arc::clone(&body)));
        let guest =
            Arc::new(Guest::open(connect, stream, host.client, herald.on_notice(), Arc::clone(&host.files)).await?);
        let linked = Linked { body, guest, herald };
        linked.take_shortcut();
        Ok(linked)
    }

    /// Of a box that does not run: calls give `error` until it does.
    pub(super) fn stopped(host: &Arc<Host>, handle: String, sandbox_id: String, error: Error) -> Linked {
        let body = Body::new(host, handle);
        let herald = Herald::new(host.events.clone());
        let connect = Box::new(WayBack(Arc::clone(&body)));
        let guest =
            Arc::new(Guest::unlinked(connect, host.client, herald.on_notice(), sandbox_id, Arc::clone(&host.files)));
        guest.close(error);
        Linked { body, guest, herald }
    }

    /// Beside the first calls, which need not wait for it.
    fn take_shortcut(&self) {
        let (body, guest) = (Arc::clone(&self.body), Arc::clone(&self.guest));
        tokio::spawn(async move {
            if let Some(stream) = body.host().backend.shortcut(&body.handle()).await {
                // Whatever is wrong with it, the link there is goes on.
                let _ = guest.upgrade(stream).await;
            }
        });
    }

    pub(crate) fn handle(&self) -> String {
        self.body.handle()
    }

    /// What the guest was last told.
    pub(crate) fn setup(&self) -> Result<Setup> {
        self.guest.hello().map(|hello| hello.setup).ok_or_else(|| {
            Error::new(ErrorCode::SandboxLost, "the connection to the sandbox broke as soon as it was made")
        })
    }

    /// Makes a sandbox of it, and keeps its link.
    pub(crate) fn into_sandbox(self, setup: Setup, make: Make) -> Arc<Sandbox> {
        self.herald.identify(&setup.sandbox_id, &setup.key);
        let sandbox = Sandbox {
            id: setup.sandbox_id,
            key: setup.key,
            workdir: setup.workdir,
            image: make.image,
            persist: make.persist,
            host: Arc::clone(self.body.host()),
            body: self.body,
            guest: self.guest,
            spec: make.spec,
            closed: AtomicBool::new(false),
            opens: AtomicUsize::new(0),
        };
        if sandbox.host.events.has_listeners() {
            sandbox.guest.watch();
        }
        sandbox.keep_link();
        Arc::new(sandbox)
    }
}

/// What a guest does not know of its box.
pub(crate) struct Make {
    pub(crate) image: String,
    pub(crate) persist: bool,
    pub(crate) spec: Option<BoxSpec>,
}

impl From<BoxSpec> for Make {
    fn from(spec: BoxSpec) -> Make {
        Make { image: spec.image.clone(), persist: spec.persist, spec: Some(spec) }
    }
}

impl From<&BoxRecord> for Make {
    fn from(record: &BoxRecord) -> Make {
        Make { image: record.image.clone(), persist: record.persist, spec: None }
    }
}
