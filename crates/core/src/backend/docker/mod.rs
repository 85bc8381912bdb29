//! The Docker backend: any engine that speaks Docker's API, from 20.10 (API 1.41) on, and Podman's.
//!
//! The engine is the only record of a session. A container's name is the claim on it, because the engine keeps names
//! unique; its labels carry what never changes.

mod container;
mod discover;
mod error;
mod guest_volume;
mod images;
mod records;
mod shortcut;
mod stream;

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bollard::Docker as Client;
use bollard::query_parameters::{ListContainersOptions, RemoveContainerOptions};
use tokio::sync::OnceCell;

use super::{Backend, BoxRecord, BoxSpec, Creation, Enforcement, EngineInfo, ImageFacts};
use crate::guest::{Arch, ByteStream};
use crate::options::{DockerOptions, OnPull, PullPolicy};
use crate::{Error, ErrorCode, Result};
use error::{engine_error, status};

/// No single call to an engine takes longer, but for pulls.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// A Docker engine, found and asked on first use.
pub struct Docker {
    options: DockerOptions,
    engine: OnceCell<Engine>,
    images: Mutex<HashMap<String, ImageFacts>>,
}

/// An engine that answered.
struct Engine {
    client: Client,
    host: String,
    version: String,
    api_version: String,
    arch: Option<Arch>,
    arch_name: String,
    cpus: f64,
    facts: bollard::models::SystemInfo,
    guest_ready: Mutex<bool>,
}

impl Docker {
    /// Does nothing yet.
    pub fn new(options: DockerOptions) -> Docker {
        Docker { options, engine: OnceCell::new(), images: Mutex::default() }
    }

    async fn engine(&self) -> Result<&Engine> {
        self.engine
            .get_or_try_init(|| async {
                let (client, host) = discover::connect(&self.options).await?;
                let unreachable = |error| engine_error("ask the engine what it is", &host, error);
                let version = client.version().await.map_err(unreachable)?;
                let facts = client.info().await.map_err(unreachable)?;
                let arch_name = version.arch.unwrap_or_default();
                Ok(Engine {
                    arch: Arch::parse(&arch_name),
                    arch_name,
                    version: version.version.unwrap_or_default(),
                    api_version: client.client_version().to_string(),
                    cpus: facts.ncpu.map_or(1.0, |count| count as f64),
                    facts,
                    guest_ready: Mutex::new(false),
                    client,
                    host,
                })
            })
            .await
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

impl Engine {
    fn error(&self, doing: &str, error: bollard::errors::Error) -> Error {
        engine_error(doing, &self.host, error)
    }

    async fn remove(&self, handle: &str) -> Result<()> {
        let options = RemoveContainerOptions { force: true, v: true, link: false };
        match self.client.remove_container(handle, Some(options)).await {
            Ok(()) => Ok(()),
            // Gone, or on its way: the guest may have ended by itself in this moment.
            Err(error) if matches!(status(&error), Some(404 | 409)) => Ok(()),
            Err(error) => Err(self.error("remove the sandbox", error)),
        }
    }
}

#[async_trait]
impl Backend for Docker {
    async fn info(&self) -> Result<EngineInfo> {
        let engine = self.engine().await?;
        let facts = &engine.facts;
        let kept = |flag: Option<bool>| if flag.unwrap_or(false) { Enforcement::Enforced } else { Enforcement::None };
        let security = facts.security_options.clone().unwrap_or_default();
        let has = |word: &str| security.iter().any(|option| option.contains(word));
        let abilities = [
            ("host", engine.host.clone().into()),
            ("architecture", engine.arch_name.clone().into()),
            ("cgroupVersion", facts.cgroup_version.as_ref().map(ToString::to_string).into()),
            ("storageDriver", facts.driver.clone().into()),
            ("rootless", has("rootless").into()),
            ("seccomp", has("seccomp").into()),
            ("apparmor", has("apparmor").into()),
            ("userns", has("userns").into()),
            ("runtimes", facts.runtimes.as_ref().map(|all| all.keys().cloned().collect::<Vec<_>>().join(",")).into()),
        ];
        Ok(EngineInfo {
            backend: "docker",
            version: engine.version.clone(),
            api_version: Some(engine.api_version.clone()),
            abilities: abilities.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            limits: [
                ("cpus", kept(facts.cpu_cfs_quota)),
                ("memoryMb", kept(facts.memory_limit)),
                ("pids", kept(facts.pids_limit)),
                ("workspaceMb", Enforcement::None),
                ("openFiles", Enforcement::Enforced),
            ]
            .into(),
        })
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
        match self.shortcut(handle).await {
            Some(stream) => Ok(stream),
            None => container::link(self.engine().await?, handle).await,
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
        let filters = HashMap::from([("label".to_owned(), vec![records::ID.to_owned()])]);
        let options = ListContainersOptions { all: true, filters: Some(filters), ..Default::default() };
        let found = engine.client.list_containers(Some(options)).await;
        let found = found.map_err(|error| engine.error("list the sandboxes", error))?;
        Ok(found.into_iter().filter_map(records::from_summary).collect())
    }

    async fn remove(&self, handle: &str) -> Result<()> {
        self.engine().await?.remove(handle).await
    }
}
