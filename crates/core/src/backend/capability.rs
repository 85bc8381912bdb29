//! What a backend may have beyond boxes, and the one error for what it has not.

use async_trait::async_trait;

use super::{Backend, BoxSpec, ImageFacts, Workspace};
use crate::key::SessionKey;
use crate::options::{Limits, OnPull, PullPolicy};
use crate::{Error, ErrorCode, Result};

/// Local images.
#[async_trait]
pub trait Images: Send + Sync {
    /// The image that a shortcut or any other name stands for here.
    async fn resolve(&self, name: &str) -> Result<String> {
        crate::resolve_image(name)
    }

    /// Makes sure that an image is available.
    async fn prepare(&self, image: &str, pull: PullPolicy, on_pull: Option<&OnPull>) -> Result<ImageFacts>;

    /// Pulls an image, whether or not it is available already.
    async fn pull(&self, image: &str, on_pull: Option<&OnPull>) -> Result<()>;
}

/// Persistent workspaces, one per session key.
#[async_trait]
pub trait Workspaces: Send + Sync {
    /// Creates the workspace of a box unless it exists; returns the one that exists afterwards.
    async fn ensure(&self, spec: &BoxSpec) -> Result<Workspace>;

    /// The workspace of a session.
    async fn find(&self, key: &SessionKey) -> Result<Option<Workspace>>;

    /// All workspaces, in use or not.
    async fn list(&self) -> Result<Vec<Workspace>>;

    /// Removes the workspace of a session. Idempotent.
    async fn remove(&self, key: &SessionKey) -> Result<()>;
}

/// Layers on top of images.
#[async_trait]
pub trait Layers: Send + Sync {
    /// Whether a layer exists.
    async fn exists(&self, layer: &str) -> Result<bool>;

    /// Makes a layer of what changed in a box since it was created from the image with this id.
    async fn commit(&self, handle: &str, layer: &str, image_id: &str) -> Result<()>;
}

/// Limits of running boxes.
#[async_trait]
pub trait LiveLimits: Send + Sync {
    /// Changes the limits of a box; absent ones stay.
    async fn set(&self, handle: &str, limits: Limits) -> Result<()>;
}

impl dyn Backend {
    pub(crate) fn require_images(&self) -> Result<&dyn Images> {
        self.images().ok_or_else(|| self.unsupported("pull images itself"))
    }

    pub(crate) fn require_workspaces(&self) -> Result<&dyn Workspaces> {
        self.workspaces().ok_or_else(|| self.unsupported("keep workspaces (persist: true)"))
    }

    pub(crate) fn require_layers(&self) -> Result<&dyn Layers> {
        self.layers().ok_or_else(|| self.unsupported("install packages"))
    }

    pub(crate) fn require_live_limits(&self) -> Result<&dyn LiveLimits> {
        self.live_limits().ok_or_else(|| self.unsupported("change the limits of a running sandbox"))
    }

    fn unsupported(&self, what: &str) -> Error {
        let message = format!("the {} backend cannot {what}; info() says what it can do", self.name());
        Error::new(ErrorCode::Unsupported, message).with("backend", self.name())
    }
}
