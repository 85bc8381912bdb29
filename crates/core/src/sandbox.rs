//! One sandbox: a box on a backend and the guest in it.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;

use crate::backend::{Backend, BoxRecord};
use crate::guest::{ByteStream, Connect, Guest, closed_error};
use crate::{Error, ErrorCode, Result};

/// A sandbox that was opened. Commands and files are its guest's: they can be called on it directly.
pub struct Sandbox {
    id: String,
    key: String,
    image: String,
    workdir: String,
    handle: String,
    backend: Arc<dyn Backend>,
    guest: Arc<Guest>,
    closed: AtomicBool,
    pub(crate) opens: AtomicUsize,
}

impl Deref for Sandbox {
    type Target = Arc<Guest>;

    fn deref(&self) -> &Arc<Guest> {
        &self.guest
    }
}

/// Beside the first calls, which need not wait for it.
async fn take_shortcut(backend: Arc<dyn Backend>, handle: String, guest: Arc<Guest>) {
    if let Some(stream) = backend.shortcut(&handle).await {
        // Whatever is wrong with it, the link there is goes on.
        let _ = guest.upgrade(stream).await;
    }
}

/// The way back into a box.
struct IntoBox {
    backend: Arc<dyn Backend>,
    handle: String,
}

#[async_trait]
impl Connect for IntoBox {
    async fn connect(&self) -> Result<ByteStream> {
        self.backend.link(&self.handle).await
    }

    async fn explain(&self, error: Error) -> Error {
        self.backend.fate(&self.handle).await.unwrap_or(error)
    }
}

impl Sandbox {
    /// Shakes hands with the guest of a box.
    pub(crate) async fn link(
        backend: Arc<dyn Backend>,
        handle: String,
        stream: ByteStream,
        client: u128,
        image: String,
    ) -> Result<Sandbox> {
        let connect = Box::new(IntoBox { backend: Arc::clone(&backend), handle: handle.clone() });
        let guest = Guest::open(connect, stream, client).await?;
        let setup = guest.hello().map(|hello| hello.setup).ok_or_else(|| {
            Error::new(ErrorCode::SandboxLost, "the connection to the sandbox broke as soon as it was made")
        })?;
        let guest = Arc::new(guest);
        tokio::spawn(take_shortcut(Arc::clone(&backend), handle.clone(), Arc::clone(&guest)));
        Ok(Sandbox {
            id: setup.sandbox_id,
            key: setup.key,
            workdir: setup.workdir,
            image,
            handle,
            backend,
            guest,
            closed: AtomicBool::new(false),
            opens: AtomicUsize::new(0),
        })
    }

    /// `sbx_…`
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The session's key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Resolved.
    pub fn image(&self) -> &str {
        &self.image
    }

    /// Where commands run.
    pub fn workdir(&self) -> &str {
        &self.workdir
    }

    /// Whether this program closed it.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// What the backend records of it.
    pub async fn info(&self) -> Result<BoxRecord> {
        if self.is_closed() {
            return Err(closed_error(&self.id));
        }
        self.backend.find(&self.handle).await?.ok_or_else(|| {
            let message = format!("the sandbox {} is gone: its container was removed, or its lease ran out", self.id);
            Error::new(ErrorCode::SandboxLost, message).with("reason", "removed")
        })
    }

    /// Gives up this program's link and leaves the sandbox to those who have another.
    pub(crate) fn leave(&self) {
        if !self.closed.swap(true, Ordering::AcqRel) {
            self.guest.close(closed_error(&self.id));
        }
    }

    /// Ends it, with everything in it. Twice is fine.
    pub async fn close(&self) -> Result<()> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        self.guest.close(closed_error(&self.id));
        self.backend.remove(&self.handle).await
    }
}
