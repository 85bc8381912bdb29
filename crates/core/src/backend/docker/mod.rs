//! The Docker backend: any engine that speaks Docker's API, from 20.10 (API 1.41) on, and Podman's.
//!
//! The engine is the only record of a session. A container's name is the claim on it, because the engine keeps names
//! unique; its labels carry what never changes.

mod container;
mod data_volume;
mod discover;
mod error;
mod guest_volume;
mod images;
mod info;
mod layers;
mod maker;
mod obituaries;
mod prune;
mod reason;
mod records;
mod shortcut;
mod stream;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bollard::Docker as Client;
use bollard::models::{ContainerSummary, ContainerUpdateBody};
use bollard::query_parameters::{ListContainersOptions, RemoveContainerOptions, RenameContainerOptions};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};

use super::{
    Attempt, Backend, BoxRecord, BoxSpec, BoxState, Creation, EngineInfo, ImageFacts, PruneReport, PruneRequest,
};
use crate::guest::{Arch, ByteStream};
use crate::options::{DockerOptions, Limits, OnPull, PullPolicy};
use crate::{Error, ErrorCode, Result};
use discover::Discovery;
use error::{engine_error, status};

/// No single call to an engine takes longer, but for pulls.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// How long an engine may take to remove a container that has ended.
const REMOVAL: Duration = Duration::from_secs(10);

/// How long Podman may take to see that a container has ended.
const SETTLING: Duration = Duration::from_secs(2);

/// A Docker engine, found and asked on first use.
pub struct Docker {
    options: DockerOptions,
    engine: OnceLock<Arc<Engine>>,
    /// Under way; shared, so that many calls on an engine that hangs fail together.
    finding: Mutex<Option<Finding>>,
    images: Mutex<HashMap<String, ImageFacts>>,
}

type Finding = Shared<BoxFuture<'static, Result<Arc<Engine>>>>;

/// An engine that answered.
struct Engine {
    client: Client,
    host: String,
    found_by: String,
    /// Those that were tried before it.
    tried: Vec<Attempt>,
    /// `docker`, `podman`
    product: &'static str,
    version: String,
    api_version: String,
    arch: Option<Arch>,
    arch_name: String,
    cpus: f64,
    facts: bollard::models::SystemInfo,
    guest_ready: tokio::sync::Mutex<bool>,
    obituaries: obituaries::Obituaries,
}

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
            let mut finding = self.finding.lock().unwrap_or_else(PoisonError::into_inner);
            finding.get_or_insert_with(|| find_engine(self.options.clone()).boxed().shared()).clone()
        };
        let outcome = finding.clone().await;
        let mut current = self.finding.lock().unwrap_or_else(PoisonError::into_inner);
        if current.as_ref().is_some_and(|current| current.ptr_eq(&finding)) {
            *current = None;
        }
        drop(current);
        let found = outcome?;
        Ok(self.engine.get_or_init(|| found))
    }

    fn cached_image(&self, image: &str) -> Option<ImageFacts> {
        self.images.lock().unwrap_or_else(PoisonError::into_inner).get(image).cloned()
    }

    fn cache_image(&self, image: &str, facts: Option<ImageFacts>) {
        let mut images = self.images.lock().unwrap_or_else(PoisonError::into_inner);
        match facts {
            Some(facts) => images.insert(image.to_owned(), facts),
            None => images.remove(image),
        };
    }
}

async fn find_engine(options: DockerOptions) -> Result<Arc<Engine>> {
    let Discovery { client, place, tried } = discover::connect(&options).await?;
    let (host, found_by) = (place.host.clone(), place.source());
    let unreachable = |error| engine_error("ask the engine what it is", &host, error);
    let version = client.version().await.map_err(unreachable)?;
    let facts = client.info().await.map_err(unreachable)?;
    let arch_name = version.arch.unwrap_or_default();
    let components = version.components.unwrap_or_default();
    let is_podman = components.iter().any(|component| component.name.contains("Podman"));
    Ok(Arc::new(Engine {
        arch: Arch::parse(&arch_name),
        arch_name,
        found_by,
        tried,
        product: if is_podman { "podman" } else { "docker" },
        version: version.version.unwrap_or_default(),
        api_version: client.client_version().to_string(),
        cpus: facts.ncpu.map_or(1.0, |count| count as f64),
        facts,
        guest_ready: tokio::sync::Mutex::default(),
        obituaries: obituaries::Obituaries::default(),
        client,
        host,
    }))
}

impl Engine {
    fn error(&self, doing: &str, error: bollard::errors::Error) -> Error {
        engine_error(doing, &self.host, error)
    }

    /// All containers with a label, dead or alive.
    async fn containers(&self, label: &str, doing: &str) -> Result<Vec<ContainerSummary>> {
        let filters = HashMap::from([("label".to_owned(), vec![label.to_owned()])]);
        let options = ListContainersOptions { all: true, filters: Some(filters), ..Default::default() };
        let deadline = tokio::time::Instant::now() + SETTLING;
        loop {
            match self.client.list_containers(Some(options.clone())).await {
                Ok(found) => return Ok(found),
                Err(error) if error::is_between_states(&error) && tokio::time::Instant::now() < deadline => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                Err(error) => return Err(self.error(doing, error)),
            }
        }
    }

    async fn remove(&self, handle: &str) -> Result<()> {
        self.obituaries.forget(handle);
        let options = RemoveContainerOptions { force: true, v: true, link: false };
        let deadline = tokio::time::Instant::now() + REMOVAL;
        loop {
            let outcome = self.client.remove_container(handle, Some(options.clone())).await;
            return match outcome {
                Ok(()) => Ok(()),
                Err(error) if status(&error) == Some(404) => Ok(()),
                // Podman, when the guest has ended by itself in this moment.
                Err(error) if error::is_ending(&error) && tokio::time::Instant::now() < deadline => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    continue;
                }
                // Docker in that moment: it removes what is left, as it was told when the container was made.
                Err(error) if status(&error) == Some(409) => {
                    while tokio::time::Instant::now() < deadline {
                        match self.client.inspect_container(handle, None).await {
                            Err(error) if status(&error) == Some(404) => break,
                            _ => tokio::time::sleep(Duration::from_millis(5)).await,
                        }
                    }
                    Ok(())
                }
                Err(error) => Err(self.error("remove the sandbox", error)),
            };
        }
    }
}

#[async_trait]
impl Backend for Docker {
    async fn info(&self) -> Result<EngineInfo> {
        Ok(info::info(self.engine().await?))
    }

    async fn prepare_image(&self, image: &str, pull: PullPolicy, on_pull: Option<&OnPull>) -> Result<ImageFacts> {
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

    async fn create(&self, spec: &BoxSpec) -> Result<Creation> {
        let engine = self.engine().await?;
        let outcome = container::create(engine, spec, self.options.runtime.as_deref()).await;
        if matches!(&outcome, Err(error) if error.code() == Some(ErrorCode::ImageNotFound)) {
            self.cache_image(&spec.image, None);
        }
        outcome
    }

    async fn link(&self, handle: &str) -> Result<ByteStream> {
        let engine = self.engine().await?;
        engine.obituaries.follow(&engine.client, handle);
        match shortcut::open(engine, handle).await {
            Some(stream) => Ok(stream),
            None => container::link(engine, handle).await,
        }
    }

    async fn fate(&self, handle: &str) -> Option<Error> {
        container::fate(self.engine().await.ok()?, handle).await
    }

    async fn shortcut(&self, handle: &str) -> Option<ByteStream> {
        shortcut::open(self.engine().await.ok()?, handle).await
    }

    async fn find(&self, name: &str) -> Result<Option<BoxRecord>> {
        let engine = self.engine().await?;
        match engine.client.inspect_container(name, None).await {
            Ok(found) => Ok(records::from_inspect(found)),
            Err(error) if status(&error) == Some(404) => Ok(None),
            Err(error) => Err(engine.error("look for the sandbox", error)),
        }
    }

    async fn list(&self) -> Result<Vec<BoxRecord>> {
        let engine = self.engine().await?;
        let found = engine.containers(records::ID, "list the sandboxes").await?;
        let mut records: Vec<_> = found.into_iter().filter_map(records::from_summary).collect();
        // A container that has ended is about to be removed: only what is kept of it counts.
        records.retain(|record| record.state != BoxState::Stopped);
        let running: HashSet<String> = records.iter().map(|record| record.id.clone()).collect();
        let kept = data_volume::list(engine).await?.into_iter().map(|volume| volume.record());
        records.extend(kept.filter(|record| !running.contains(&record.id)));
        Ok(records)
    }

    async fn remove(&self, handle: &str) -> Result<()> {
        self.engine().await?.remove(handle).await
    }

    async fn rename(&self, handle: &str, claim: &str, _: bool) -> Result<bool> {
        let engine = self.engine().await?;
        let options = RenameContainerOptions { name: claim.to_owned() };
        match engine.client.rename_container(handle, options).await {
            Ok(()) => Ok(true),
            Err(error) if error::is_name_taken(&error) => Ok(false),
            Err(error) => Err(engine.error("give the sandbox its name", error)),
        }
    }

    async fn set_limits(&self, handle: &str, limits: Limits) -> Result<()> {
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

    async fn keep(&self, spec: &BoxSpec) -> Result<BoxSpec> {
        data_volume::ensure(self.engine().await?, spec).await
    }

    async fn kept(&self, claim: &str) -> Result<Option<BoxSpec>> {
        data_volume::find(self.engine().await?, claim).await
    }

    async fn remove_data(&self, claim: &str) -> Result<()> {
        data_volume::remove(self.engine().await?, claim).await
    }

    async fn has_layer(&self, layer: &str) -> Result<bool> {
        layers::exists(self.engine().await?, layer).await
    }

    async fn commit(&self, handle: &str, layer: &str, image_id: &str) -> Result<()> {
        layers::commit(self.engine().await?, handle, layer, image_id).await
    }

    async fn prune(&self, request: &PruneRequest) -> Result<PruneReport> {
        prune::prune(self.engine().await?, request).await
    }
}
