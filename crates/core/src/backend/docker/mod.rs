//! The Docker backend: any engine that speaks Docker's API, from 20.10 (API 1.41) on, and Podman's.
//!
//! The engine is the only record. A container's name is its claim, because the engine keeps names unique; its labels carry what
//! never changes.

mod container;
mod direct_link;
mod discover;
mod engine;
mod error;
mod exit_events;
mod guest_volume;
mod images;
mod info;
mod layers;
mod maker;
mod prune;
mod reason;
mod records;
mod stream;
mod workspaces;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use bollard::models::ContainerUpdateBody;
use bollard::query_parameters::RenameContainerOptions;
use cofferdam_protocol::Lease;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};

use super::{
    Backend, BoxRecord, BoxSpec, BoxState, Claims, CommandUser, Creation, EngineInfo, ImageFacts, Images, Layers,
    LiveLimits, PruneReport, PruneRequest, Workspace, Workspaces,
};
use crate::guest::ByteStream;
use crate::key::SessionKey;
use crate::lock::lock;
use crate::options::{DockerOptions, Limits, OnPull, PullPolicy};
use crate::{Error, ErrorCode, Result};
use container::Order;
use engine::{Engine, find_engine};
use error::status;

/// No call to an engine takes longer, except pulls.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// A Docker engine, found on first use.
pub struct Docker {
    options: DockerOptions,
    engine: OnceLock<Arc<Engine>>,
    /// The search under way; shared, so that concurrent calls on a hanging engine fail together.
    finding: Mutex<Option<Finding>>,
    images: Mutex<HashMap<String, ImageFacts>>,
}

type Finding = Shared<BoxFuture<'static, Result<Arc<Engine>>>>;

impl Docker {
    /// Does nothing yet.
    pub fn new(options: DockerOptions) -> Docker {
        Docker { options, engine: OnceLock::new(), finding: Mutex::default(), images: Mutex::default() }
    }

    /// Whether the caller or the environment says which engine to use.
    pub(crate) fn is_named(&self) -> bool {
        discover::named(&self.options).is_some()
    }

    async fn engine(&self) -> Result<&Engine> {
        if let Some(engine) = self.engine.get() {
            return Ok(engine);
        }
        let finding = {
            let mut finding = lock(&self.finding);
            finding.get_or_insert_with(|| find_engine(self.options.clone()).boxed().shared()).clone()
        };
        let outcome = finding.clone().await;
        let mut current = lock(&self.finding);
        if current.as_ref().is_some_and(|current| current.ptr_eq(&finding)) {
            *current = None;
        }
        drop(current);
        let found = outcome?;
        Ok(self.engine.get_or_init(|| found))
    }

    /// The user that a box's image names, where the box takes it from there.
    async fn image_user(&self, spec: &BoxSpec) -> Result<Option<String>> {
        match spec.user {
            CommandUser::Named(_) => Ok(None),
            CommandUser::Image => match self.cached_image(&spec.image) {
                Some(facts) => Ok(facts.user),
                None => Ok(images::inspect(self.engine().await?, &spec.image).await?.and_then(|facts| facts.user)),
            },
        }
    }

    fn cached_image(&self, image: &str) -> Option<ImageFacts> {
        lock(&self.images).get(image).cloned()
    }

    fn cache_image(&self, image: &str, facts: Option<ImageFacts>) {
        let mut images = lock(&self.images);
        match facts {
            Some(facts) => images.insert(image.to_owned(), facts),
            None => images.remove(image),
        };
    }
}

#[async_trait]
impl Backend for Docker {
    fn name(&self) -> &'static str {
        "docker"
    }

    async fn info(&self) -> Result<EngineInfo> {
        Ok(info::info(self.engine().await?))
    }

    async fn create(&self, spec: &BoxSpec) -> Result<Creation> {
        let engine = self.engine().await?;
        let order = Order { spec, image_user: self.image_user(spec).await?, runtime: self.options.runtime.as_deref() };
        let outcome = container::create(engine, &order).await;
        if matches!(&outcome, Err(error) if error.code() == Some(ErrorCode::ImageNotFound)) {
            self.cache_image(&spec.image, None);
        }
        outcome
    }

    fn parallel_creates(&self) -> usize {
        2 * self.engine.get().map_or(1, |engine| engine.cpus as usize)
    }

    async fn find(&self, handle: &str) -> Result<Option<BoxRecord>> {
        let engine = self.engine().await?;
        match engine.client.inspect_container(handle, None).await {
            Ok(found) => Ok(records::from_inspect(found)),
            Err(error) if status(&error) == Some(404) => Ok(None),
            Err(error) => Err(engine.error("look for the sandbox", error)),
        }
    }

    async fn list(&self) -> Result<Vec<BoxRecord>> {
        let found = self.engine().await?.containers(records::ID, "list the sandboxes").await?;
        let records = found.into_iter().filter_map(records::from_summary);
        // A container that has ended is about to be removed.
        Ok(records.filter(|record| record.state != BoxState::Stopped).collect())
    }

    async fn link(&self, handle: &str) -> Result<ByteStream> {
        let engine = self.engine().await?;
        engine.exits.follow(&engine.client, handle);
        match direct_link::open(engine, handle).await {
            Some(stream) => Ok(stream),
            None => container::link(engine, handle).await,
        }
    }

    async fn direct_link(&self, handle: &str) -> Option<ByteStream> {
        direct_link::open(self.engine().await.ok()?, handle).await
    }

    async fn fate(&self, handle: &str) -> Option<Error> {
        container::fate(self.engine().await.ok()?, handle).await
    }

    async fn remove(&self, handle: &str) -> Result<()> {
        self.engine().await?.remove(handle).await
    }

    async fn prune(&self, request: &PruneRequest) -> Result<PruneReport> {
        prune::prune(self.engine().await?, request).await
    }

    fn images(&self) -> Option<&dyn Images> {
        Some(self)
    }

    fn workspaces(&self) -> Option<&dyn Workspaces> {
        Some(self)
    }

    fn layers(&self) -> Option<&dyn Layers> {
        Some(self)
    }

    fn live_limits(&self) -> Option<&dyn LiveLimits> {
        Some(self)
    }
}

#[async_trait]
impl Claims for Docker {
    async fn holder(&self, key: &SessionKey) -> Result<Option<BoxRecord>> {
        // The engine takes a name wherever it takes an id.
        Backend::find(self, &key.claim()).await
    }

    async fn assign(&self, handle: &str, key: &SessionKey, _: Lease) -> Result<bool> {
        let engine = self.engine().await?;
        let options = RenameContainerOptions { name: key.claim() };
        match engine.client.rename_container(handle, options).await {
            Ok(()) => Ok(true),
            Err(error) if error::is_name_taken(&error) => Ok(false),
            Err(error) => Err(container::lost(engine, handle, "claim the sandbox", error).await),
        }
    }
}

#[async_trait]
impl Images for Docker {
    async fn prepare(&self, image: &str, pull: PullPolicy, on_pull: Option<&OnPull>) -> Result<ImageFacts> {
        if pull != PullPolicy::Always
            && let Some(facts) = self.cached_image(image)
        {
            return Ok(facts);
        }
        let facts = images::prepare(self.engine().await?, image, pull, on_pull).await?;
        self.cache_image(image, Some(facts.clone()));
        Ok(facts)
    }

    async fn pull(&self, image: &str, on_pull: Option<&OnPull>) -> Result<()> {
        images::pull(self.engine().await?, image, on_pull).await
    }
}

#[async_trait]
impl Workspaces for Docker {
    async fn ensure(&self, spec: &BoxSpec) -> Result<Workspace> {
        let key = spec.key.as_ref().ok_or_else(|| Error::invalid("an unclaimed box has no workspace"))?;
        workspaces::ensure(self.engine().await?, key, spec).await
    }

    async fn find(&self, key: &SessionKey) -> Result<Option<Workspace>> {
        workspaces::find(self.engine().await?, key).await
    }

    async fn list(&self) -> Result<Vec<Workspace>> {
        let volumes = workspaces::list(self.engine().await?).await?;
        Ok(volumes.into_iter().map(|volume| volume.workspace).collect())
    }

    async fn remove(&self, key: &SessionKey) -> Result<()> {
        workspaces::remove(self.engine().await?, key).await
    }
}

#[async_trait]
impl Layers for Docker {
    async fn exists(&self, layer: &str) -> Result<bool> {
        layers::exists(self.engine().await?, layer).await
    }

    async fn commit(&self, handle: &str, layer: &str, image_id: &str) -> Result<()> {
        layers::commit(self.engine().await?, handle, layer, image_id).await
    }
}

#[async_trait]
impl LiveLimits for Docker {
    async fn set(&self, handle: &str, limits: Limits) -> Result<()> {
        let engine = self.engine().await?;
        let memory = container::bytes(limits.memory_mb);
        let update = ContainerUpdateBody {
            memory,
            // Without it, more memory than there was would be more than memory and swap together.
            memory_swap: memory,
            nano_cpus: container::nano_cpus(engine, &limits),
            pids_limit: container::pids(&limits),
            ..Default::default()
        };
        match engine.client.update_container(handle, update).await {
            Ok(()) => Ok(()),
            Err(error) if status(&error) == Some(404) => {
                Err(container::fate(engine, handle).await.unwrap_or_else(|| {
                    Error::new(ErrorCode::Unsupported, "this engine cannot change the limits of a running container")
                }))
            }
            Err(error) => Err(engine.error("change the sandbox's limits", error)),
        }
    }
}
