//! The box of a sandbox, and how to link to it again.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;

use crate::guest::{ByteStream, Connect};
use crate::host::Host;
use crate::lock::lock;
use crate::{Error, Result};

/// The box of a sandbox. It changes when the sandbox is stopped and started.
pub(crate) struct BoxRef {
    host: Arc<Host>,
    handle: Mutex<String>,
}

impl BoxRef {
    pub(super) fn new(host: &Arc<Host>, handle: String) -> Arc<BoxRef> {
        Arc::new(BoxRef { host: Arc::clone(host), handle: Mutex::new(handle) })
    }

    pub(crate) fn host(&self) -> &Arc<Host> {
        &self.host
    }

    pub(crate) fn handle(&self) -> String {
        lock(&self.handle).clone()
    }

    /// Ends the box.
    pub(crate) async fn remove(&self) -> Result<()> {
        self.host.backend().await?.remove(&self.handle()).await
    }

    pub(super) fn set_handle(&self, handle: String) {
        *lock(&self.handle) = handle;
    }
}

/// Links to a box again.
pub(super) struct Relink(pub(super) Arc<BoxRef>);

#[async_trait]
impl Connect for Relink {
    async fn connect(&self) -> Result<ByteStream> {
        self.0.host.backend().await?.link(&self.0.handle()).await
    }

    async fn explain(&self, error: Error) -> Error {
        let reason = |error: &Error| error.detail("reason").and_then(|reason| reason.as_str().map(str::to_owned));
        let Ok(backend) = self.0.host.backend().await else { return error };
        match (backend.fate(&self.0.handle()).await, reason(&error)) {
            (Some(fate), None) => fate,
            (Some(fate), Some(_)) if reason(&fate).as_deref() == Some("engine-restarted") => fate,
            // What the guest said before it ended tells more than that its container has ended.
            _ => error,
        }
    }
}
