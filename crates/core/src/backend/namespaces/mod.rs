//! The namespaces backend: sandboxes without an engine, and without root where the kernel lets ordinary users have namespaces.
//!
//! A box is a folder in the state folder, a keeper that makes it and stays with it, and the guest as PID 1 in namespaces
//! of its own. There is no daemon: what is on record is in the file system, and what lives holds a lock on it.

mod advice;
mod boxes;
mod cgroups;
mod data;
mod helper;
mod images;
mod info;
mod plan;
mod prune;
mod roots;
mod setup;
mod state;

use std::collections::HashSet;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use sha2::{Digest, Sha256};

use super::{Backend, BoxRecord, BoxSpec, Creation, EngineInfo, ImageFacts, PruneReport, PruneRequest};
use crate::guest::ByteStream;
use crate::options::{Limits, OnPull, PullPolicy};
use crate::{Error, ErrorCode, Result};
use cgroups::Hierarchy;
use helper::Helper;
use images::Images;
use state::State;

pub use setup::{SetupReport, setup};

/// A file of the kernel's, or nothing. Paths in it, where something is mounted, may be any bytes.
fn kernel_says(file: &str) -> String {
    std::fs::read(file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

/// Boxes of this machine's own kernel, made by this user.
#[derive(Default)]
pub struct Namespaces(Arc<Ground>);

/// What all calls stand on; found on first use.
#[derive(Default)]
struct Ground {
    found: OnceLock<Found>,
    /// The state folder's file system cannot be the upper layer of an overlay.
    in_memory: AtomicBool,
    /// Cgroups that seemed to be ours to make are not.
    without_cgroups: AtomicBool,
    images: Images,
    /// A box was made here.
    is_proven: AtomicBool,
}

struct Found {
    state: State,
    helper: &'static Helper,
    hierarchy: Hierarchy,
}

impl Ground {
    /// Where the cgroups of new boxes are.
    fn hierarchy<'a>(&self, found: &'a Found) -> &'a Hierarchy {
        if self.without_cgroups.load(Ordering::Relaxed) { &Hierarchy::Absent } else { &found.hierarchy }
    }

    fn found(&self) -> Result<&Found> {
        if let Some(found) = self.found.get() {
            return Ok(found);
        }
        let state = State::open()?;
        let helper = Helper::get(state.path())?;
        Ok(self.found.get_or_init(|| Found { state, helper, hierarchy: Hierarchy::here() }))
    }
}

/// How the cgroups of boxes in a state folder are named.
fn cgroup_prefix(state: &State) -> String {
    let digest = Sha256::digest(state.path().as_os_str().as_encoded_bytes());
    let digits: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!("cofferdam-{digits}-")
}

impl Namespaces {
    /// Does nothing yet.
    pub fn new() -> Namespaces {
        Namespaces::default()
    }

    /// Runs what blocks where that holds nobody up.
    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Ground, &Found) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let ground = Arc::clone(&self.0);
        let outcome = tokio::task::spawn_blocking(move || work(&ground, ground.found()?)).await;
        outcome.map_err(|error| Error::new(ErrorCode::Internal, format!("work on a sandbox crashed: {error}")))?
    }
}

/// What went wrong with the state folder.
fn broken(doing: &str) -> impl Fn(io::Error) -> Error + '_ {
    move |error| Error::new(ErrorCode::Internal, format!("cannot {doing} in the state folder: {error}"))
}

#[async_trait]
impl Backend for Namespaces {
    async fn info(&self) -> Result<EngineInfo> {
        self.work(info::info).await
    }

    async fn resolve_image(&self, name: &str) -> Result<String> {
        self.0.images.resolve_name(name).await
    }

    async fn prepare_image(&self, image: &str, pull: PullPolicy, on_pull: Option<&OnPull>) -> Result<ImageFacts> {
        let prepared = self.0.images.prepare(image, pull, on_pull).await?;
        Ok(ImageFacts { id: prepared.id.clone(), user: prepared.root.user.clone() })
    }

    async fn pull(&self, image: &str, on_pull: Option<&OnPull>) -> Result<()> {
        self.0.images.prepare(image, PullPolicy::Always, on_pull).await.map(drop)
    }

    async fn create(&self, spec: &BoxSpec) -> Result<Creation> {
        if spec.network {
            let message = "sandboxes of namespaces have no network beyond their own loopback device; open without \
                           network: true, or use a container engine";
            return Err(Error::new(ErrorCode::Unsupported, message));
        }
        // It is there, unless somebody starts again what another program has made.
        let prepared = self.0.images.prepare(&spec.image, PullPolicy::Missing, None).await?;
        let spec = spec.clone();
        match self.work(move |ground, found| boxes::create(ground, found, &spec, &prepared)).await? {
            Some((handle, socket)) => Ok(Creation::New { handle, stream: boxes::byte_stream(socket)? }),
            None => Ok(Creation::Taken),
        }
    }

    async fn link(&self, handle: &str) -> Result<ByteStream> {
        let handle = handle.to_owned();
        boxes::byte_stream(self.work(move |_, found| boxes::link(found, &handle)).await?)
    }

    async fn fate(&self, handle: &str) -> Option<Error> {
        let handle = handle.to_owned();
        self.work(move |_, found| Ok(boxes::fate(found, &handle))).await.ok()?
    }

    async fn find(&self, name: &str) -> Result<Option<BoxRecord>> {
        let name = name.to_owned();
        self.work(move |_, found| boxes::find(found, &name)).await
    }

    async fn list(&self) -> Result<Vec<BoxRecord>> {
        self.work(|_, found| {
            let mut records = boxes::list(found)?;
            let running: HashSet<String> = records.iter().map(|record| record.id.clone()).collect();
            let kept = data::list(&found.state).map_err(broken("list the persistent workspaces"))?;
            let stopped = kept.into_iter().map(data::Kept::record);
            records.extend(stopped.filter(|record| !running.contains(&record.id)));
            Ok(records)
        })
        .await
    }

    async fn remove(&self, handle: &str) -> Result<()> {
        let handle = handle.to_owned();
        self.work(move |_, found| boxes::remove(found, &handle)).await
    }

    async fn rename(&self, handle: &str, claim: &str, is_lasting: bool) -> Result<bool> {
        let (handle, claim) = (handle.to_owned(), claim.to_owned());
        self.work(move |_, found| boxes::rename(found, &handle, &claim, is_lasting)).await
    }

    async fn set_limits(&self, handle: &str, limits: Limits) -> Result<()> {
        let handle = handle.to_owned();
        self.work(move |_, found| boxes::set_limits(found, &handle, limits)).await
    }

    async fn keep(&self, spec: &BoxSpec) -> Result<BoxSpec> {
        let spec = spec.clone();
        self.work(move |_, found| data::ensure(&found.state, &spec).map_err(broken("make a persistent workspace")))
            .await
    }

    async fn kept(&self, claim: &str) -> Result<Option<BoxSpec>> {
        let claim = claim.to_owned();
        self.work(move |_, found| Ok(data::find(&found.state, &claim).map(|kept| kept.spec))).await
    }

    async fn remove_data(&self, claim: &str) -> Result<()> {
        let claim = claim.to_owned();
        let remove = move |_: &Ground, found: &Found| {
            let removed = data::remove(&found.state, found.helper, &claim);
            removed.map_err(broken("remove a persistent workspace"))
        };
        self.work(remove).await
    }

    async fn prune(&self, request: &PruneRequest) -> Result<PruneReport> {
        let request = *request;
        let prune = move |_: &Ground, found: &Found| {
            prune::prune(&found.state, found.helper, &found.hierarchy, &request).map_err(broken("clean up"))
        };
        self.work(prune).await
    }
}
