//! Images by name and from archives, as root file systems for boxes. The image store fetches them, and keeps them while in use.

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use cofferdam_images::{ImageError, ImageErrorKind, ImageStore, OnProgress, PullPolicy as Pull, default_folder};
use cofferdam_protocol::keeper;

use super::roots::{self, Root};
use crate::lock::lock;
use crate::options::{OnPull, PullPolicy, PullProgress};
use crate::{Error, ErrorCode, Result};

/// The roots that this program has used, by image name.
#[derive(Default)]
pub(super) struct ImageRoots {
    store: Mutex<Option<Arc<ImageStore>>>,
    used: Mutex<HashMap<String, Arc<Prepared>>>,
}

/// A root that is ready, and stays available.
pub(super) struct Prepared {
    pub(super) root: Root,
    /// Identifies its content, whatever it is called.
    pub(super) id: String,
    lease: Option<cofferdam_images::InUse>,
}

impl Prepared {
    /// The machine's own programs.
    pub(super) fn host() -> Result<Prepared> {
        let none = || Error::new(ErrorCode::Internal, "this machine has no programs of its own");
        let root = roots::resolve(roots::HOST)?.ok_or_else(none)?;
        Ok(Prepared { root, id: roots::HOST.to_owned(), lease: None })
    }

    /// The files that a keeper locks, so that the image stays as long as its box.
    pub(super) fn leases(&self) -> Vec<String> {
        let path = |lease: &cofferdam_images::InUse| {
            let fd = std::os::fd::AsRawFd::as_raw_fd(&lease.as_fd());
            std::fs::read_link(format!("/proc/self/fd/{fd}")).ok()?.into_os_string().into_string().ok()
        };
        self.lease.iter().filter_map(path).collect()
    }
}

impl ImageRoots {
    fn store(&self) -> Result<Arc<ImageStore>> {
        let mut store = lock(&self.store);
        if let Some(store) = &*store {
            return Ok(Arc::clone(store));
        }
        let made = Arc::new(ImageStore::new(default_folder().map_err(|error| refused("", error))?));
        *store = Some(Arc::clone(&made));
        Ok(made)
    }

    /// The resolved name of an image. A shortcut is the machine's own, unless its image is in the store.
    pub(super) async fn resolve_name(&self, name: &str) -> Result<String> {
        if roots::is_shortcut(name) {
            let image = crate::resolve_image(name)?;
            if self.store()?.prepare(&image, Pull::Never, None).await.is_ok() {
                return Ok(image);
            }
        }
        roots::resolve_name(name)
    }

    /// The root of an image, pulled if need be.
    pub(super) async fn prepare(
        &self,
        image: &str,
        pull: PullPolicy,
        on_pull: Option<&OnPull>,
    ) -> Result<Arc<Prepared>> {
        if pull != PullPolicy::Always
            && let Some(prepared) = lock(&self.used).get(image)
        {
            return Ok(Arc::clone(prepared));
        }
        if let Some(root) = roots::resolve(image)? {
            // Neither needs a cache or a lease.
            return Ok(Arc::new(Prepared { root, id: image.to_owned(), lease: None }));
        }
        let store = self.store()?;
        let (name, pull) = match Path::new(image).is_absolute() {
            true => (store.load(Path::new(image)).await.map_err(|error| refused(image, error))?, Pull::Never),
            false => (image.to_owned(), policy(pull)),
        };
        let on_progress = on_pull.cloned().map(told);
        let found = store.prepare(&name, pull, on_progress.as_ref()).await.map_err(|error| refused(image, error))?;
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        let env = found.config.env.iter().filter_map(|entry| entry.split_once('='));
        let root = Root {
            layers: keeper::Root::Layers(found.layers.into_iter().map(text).collect()),
            env: env.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            user: found.config.user.filter(|user| !user.is_empty()),
        };
        let prepared = Arc::new(Prepared { root, id: found.id, lease: Some(found.lease) });
        let mut used = lock(&self.used);
        used.insert(image.to_owned(), Arc::clone(&prepared));
        Ok(prepared)
    }
}

fn policy(pull: PullPolicy) -> Pull {
    match pull {
        PullPolicy::Missing => Pull::Missing,
        PullPolicy::Always => Pull::Always,
        PullPolicy::Never => Pull::Never,
    }
}

fn told(on_pull: OnPull) -> OnProgress {
    Arc::new(move |step| {
        on_pull(PullProgress {
            image: step.image,
            layer: step.layer,
            status: step.status,
            current_bytes: step.current_bytes,
            total_bytes: step.total_bytes,
        });
    })
}

fn refused(image: &str, error: ImageError) -> Error {
    let code = match error.kind {
        ImageErrorKind::InvalidReference => ErrorCode::InvalidArgument,
        ImageErrorKind::Unsupported | ImageErrorKind::WrongPlatform => ErrorCode::Unsupported,
        ImageErrorKind::TooLarge => ErrorCode::LimitExceeded,
        ImageErrorKind::NoSpace | ImageErrorKind::Storage => ErrorCode::Internal,
        _ => ErrorCode::ImageNotFound,
    };
    Error::new(code, error.message).with("image", image)
}
