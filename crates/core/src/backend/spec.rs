//! A box to create.

use std::collections::BTreeMap;

use cofferdam_protocol::{Bounds, Lease, Setup};

use super::Network;
use crate::key::SessionKey;
use crate::options::Limits;

/// A box to create.
#[derive(Debug, Clone, PartialEq)]
pub struct BoxSpec {
    /// `sbx_…`
    pub sandbox_id: String,
    /// The session it serves; `None` creates an unclaimed box.
    pub key: Option<SessionKey>,
    /// A resolved image name.
    pub image: String,
    /// A layer to start from instead of the image: the image with packages.
    pub layer: Option<String>,
    /// Where commands run.
    pub workdir: String,
    /// The user that commands run as.
    pub user: CommandUser,
    /// Added to the image's own environment.
    pub env: BTreeMap<String, String>,
    /// The caller's labels.
    pub labels: BTreeMap<String, String>,
    /// When it ends by itself.
    pub lease: Lease,
    /// What it may use.
    pub limits: Limits,
    /// What it may reach.
    pub network: Network,
    /// Whether only the workdir and `/tmp` are writable.
    pub read_only_root: bool,
    /// Whether its workspace outlives it.
    pub persist: bool,
}

/// The user that commands run as.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum CommandUser {
    /// The one that the image names, or root. Only the backend, which has the image, can tell which that is.
    #[default]
    Image,
    /// A name in the image, or `uid[:gid]`.
    Named(String),
}

impl CommandUser {
    /// As the guest is told; `None` is root.
    fn or_image(&self, images: Option<String>) -> Option<String> {
        match self {
            CommandUser::Image => images,
            CommandUser::Named(name) => Some(name.clone()),
        }
    }
}

/// What an image says about itself.
#[derive(Debug, Clone, Default)]
pub struct ImageFacts {
    /// Identifies its content, whatever it is called.
    pub id: String,
    /// The user that its programs run as; root when absent.
    pub user: Option<String>,
}

impl BoxSpec {
    /// What the box's root file system starts from.
    pub fn root(&self) -> &str {
        self.layer.as_deref().unwrap_or(&self.image)
    }

    /// The session key as text; empty for an unclaimed box.
    pub fn key_text(&self) -> &str {
        self.key.as_ref().map_or("", SessionKey::as_str)
    }

    /// What the guest of a new box is told. `image_user` is the image's own user. The box itself carries environment and labels.
    pub fn setup(&self, image_user: Option<String>) -> Setup {
        Setup {
            sandbox_id: self.sandbox_id.clone(),
            key: self.key_text().to_owned(),
            workdir: self.workdir.clone(),
            user: self.user.or_image(image_user),
            lease: self.lease,
            env: Vec::new(),
            labels: Vec::new(),
            bounds: Bounds {
                workspace_bytes: self.limits.workspace_mb.unwrap_or(0) << 20,
                open_files: self.limits.open_files.unwrap_or(0),
                // Set by the backend where the kernel does not enforce them.
                ..Bounds::default()
            },
        }
    }

    /// What the guest of an unclaimed box is told when this session claims it. `unclaimed` is what it was told before, of which it
    /// keeps its id, its limits and, unless the session names another, its user.
    pub fn claim_setup(&self, unclaimed: &Setup) -> Setup {
        let pairs = |map: &BTreeMap<String, String>| map.clone().into_iter().collect();
        Setup {
            sandbox_id: unclaimed.sandbox_id.clone(),
            env: pairs(&self.env),
            labels: pairs(&self.labels),
            bounds: unclaimed.bounds,
            ..self.setup(unclaimed.user.clone())
        }
    }
}
