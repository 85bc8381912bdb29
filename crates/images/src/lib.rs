//! OCI images without an engine: from registries and archives to folders that an overlay can use.
//!
//! Registries and archives are not trusted. Every byte is checked against its digest, every length is bounded before it is read,
//! and no name in a layer leads out of the layer's own folder. Everything in the store is complete: it appears under its name
//! when all of it is on the disk, one process makes it while others wait, and it stays while it is in use.
//!
//! This crate neither mounts nor makes sandboxes.
#![cfg(target_os = "linux")]

mod archive;
mod credentials;
mod digest;
mod discard;
mod error;
mod folder;
mod layer;
mod layers;
mod lock;
mod manifest;
mod progress;
mod prune;
mod records;
mod reference;
mod registry;
mod seam;
mod store;

pub use error::{ImageError, ImageErrorKind, Result};
pub use folder::default_folder;
pub use layer::{LeftOwner, Limits, left_owners};
pub use lock::InUse;
pub use manifest::ImageConfig;
pub use progress::{OnProgress, Progress};
pub use prune::{PruneOptions, Pruned, StoredImage};
pub use store::{Image, ImageStore, PullPolicy, StoreOptions};
