//! The box of a sandbox, and the way back into it when a link breaks.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use crate::guest::{ByteStream, Connect};
use crate::host::Host;
use crate::{Error, Result};

/// The box of a sandbox: which one it is changes when it is stopped and started.
pub(crate) struct Body {
    host: Arc<Host>,
    handle: Mutex<String>,
}

impl Body {
    pub(super) fn new(host: &Arc<Host>, handle: String) -> Arc<Body> {
        Arc::new(Body { host: Arc::clone(host), handle: Mutex::new(handle) })
    }

    pub(crate) fn host(&self) -> &Arc<Host> {
        &self.host
    }

    pub(crate) fn handle(&self) -> String {
        self.handle.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_handle(&self, handle: String) {
        *self.handle.lock().unwrap_or_else(PoisonError::into_inner) = handle;
    }
}

/// The way back into a box.
pub(super) struct WayBack(pub(super) Arc<Body>);

#[async_trait]
impl Connect for WayBack {
    async fn connect(&self) -> Result<ByteStream> {
        self.0.host.backend.link(&self.0.handle()).await
    }

    async fn explain(&self, error: Error) -> Error {
        let reason = |error: &Error| error.detail("reason").and_then(|reason| reason.as_str().map(str::to_owned));
        match (self.0.host.backend.fate(&self.0.handle()).await, reason(&error)) {
            (Some(fate), None) => fate,
            (Some(fate), Some(_)) if reason(&fate).as_deref() == Some("engine-restarted") => fate,
            // The guest's own last words say more than that its container has ended.
            _ => error,
        }
    }
}
