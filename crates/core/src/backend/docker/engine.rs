//! An engine that answered, and the calls that several rooms make on it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bollard::Docker as Client;
use bollard::models::ContainerSummary;
use bollard::query_parameters::{ListContainersOptions, RemoveContainerOptions};
use tokio::time::{Instant, sleep};

use super::discover::{self, Discovery};
use super::error::{engine_error, is_between_states, is_ending, status};
use super::exit_events::ExitEvents;
use crate::backend::Attempt;
use crate::guest::Arch;
use crate::options::DockerOptions;
use crate::{Error, Result};

/// How long an engine may take to remove a container that has ended.
const REMOVAL: Duration = Duration::from_secs(10);

/// How long Podman may take to see that a container has ended.
const SETTLING: Duration = Duration::from_secs(2);

/// An engine that answered.
pub(super) struct Engine {
    pub(super) client: Client,
    pub(super) host: String,
    pub(super) found_by: String,
    /// Engines that were tried before it.
    pub(super) tried: Vec<Attempt>,
    /// `docker`, `podman`
    pub(super) product: &'static str,
    pub(super) version: String,
    pub(super) api_version: String,
    pub(super) arch: Option<Arch>,
    pub(super) arch_name: String,
    pub(super) cpus: f64,
    pub(super) facts: bollard::models::SystemInfo,
    pub(super) guest_ready: tokio::sync::Mutex<bool>,
    pub(super) exits: ExitEvents,
}

pub(super) async fn find_engine(options: DockerOptions) -> Result<Arc<Engine>> {
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
        exits: ExitEvents::default(),
        client,
        host,
    }))
}

impl Engine {
    pub(super) fn error(&self, doing: &str, error: bollard::errors::Error) -> Error {
        engine_error(doing, &self.host, error)
    }

    /// All containers with a label, dead or alive.
    pub(super) async fn containers(&self, label: &str, doing: &str) -> Result<Vec<ContainerSummary>> {
        let filters = HashMap::from([("label".to_owned(), vec![label.to_owned()])]);
        let options = ListContainersOptions { all: true, filters: Some(filters), ..Default::default() };
        let deadline = Instant::now() + SETTLING;
        loop {
            match self.client.list_containers(Some(options.clone())).await {
                Ok(found) => return Ok(found),
                Err(error) if is_between_states(&error) && Instant::now() < deadline => {
                    sleep(Duration::from_millis(50)).await;
                }
                Err(error) => return Err(self.error(doing, error)),
            }
        }
    }

    pub(super) async fn remove(&self, handle: &str) -> Result<()> {
        self.exits.forget(handle);
        let options = RemoveContainerOptions { force: true, v: true, link: false };
        let deadline = Instant::now() + REMOVAL;
        loop {
            let outcome = self.client.remove_container(handle, Some(options.clone())).await;
            return match outcome {
                Ok(()) => Ok(()),
                Err(error) if status(&error) == Some(404) => Ok(()),
                // Podman, when the guest has ended by itself in this moment.
                Err(error) if is_ending(&error) && Instant::now() < deadline => {
                    sleep(Duration::from_millis(20)).await;
                    continue;
                }
                // Docker in that moment: it removes the container itself, as it was created with auto-remove.
                Err(error) if status(&error) == Some(409) => {
                    while Instant::now() < deadline {
                        match self.client.inspect_container(handle, None).await {
                            Err(error) if status(&error) == Some(404) => break,
                            _ => sleep(Duration::from_millis(5)).await,
                        }
                    }
                    Ok(())
                }
                Err(error) => Err(self.error("remove the sandbox", error)),
            };
        }
    }
}
