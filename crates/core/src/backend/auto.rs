//! Which backend: the one that is asked for, or the best there is. A container engine where one answers, else this machine's
//! own namespaces; where there is neither, an error that says why for each, and what to do.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::OnceCell;

use super::docker::Docker;
use super::{Backend, BoxRecord, BoxSpec, Creation, EngineInfo, ImageFacts, PruneReport, PruneRequest};
use crate::guest::ByteStream;
use crate::options::{BackendKind, DockerOptions, Limits, ManagerOptions, OnPull, PullPolicy};
use crate::{Error, ErrorCode, Result};

/// The backend of a manager. Nothing is asked yet.
pub(crate) fn choose(options: &ManagerOptions) -> Arc<dyn Backend> {
    let docker = options.docker.clone();
    match options.backend {
        BackendKind::Docker => Arc::new(Docker::new(docker)),
        BackendKind::Namespaces => namespaces(),
        // Whoever names an engine means that one, and whoever names a runtime wants no sandbox without it.
        BackendKind::Auto if docker.host.is_some() || docker.runtime.is_some() => Arc::new(Docker::new(docker)),
        BackendKind::Auto => Arc::new(Auto { docker, chosen: OnceCell::new() }),
    }
}

#[cfg(all(target_os = "linux", feature = "namespaces"))]
fn namespaces() -> Arc<dyn Backend> {
    Arc::new(super::namespaces::Namespaces::new())
}

#[cfg(not(all(target_os = "linux", feature = "namespaces")))]
fn namespaces() -> Arc<dyn Backend> {
    Arc::new(Absent)
}

/// Chosen on first use.
struct Auto {
    docker: DockerOptions,
    chosen: OnceCell<Arc<dyn Backend>>,
}

impl Auto {
    async fn chosen(&self) -> Result<&Arc<dyn Backend>> {
        self.chosen.get_or_try_init(|| self.look()).await
    }

    async fn look(&self) -> Result<Arc<dyn Backend>> {
        let docker = Docker::new(self.docker.clone());
        let no_engine = match docker.info().await {
            Ok(_) => return Ok(Arc::new(docker)),
            // One that is named and does not answer is not to be passed by in silence.
            Err(error) if docker.is_named() => return Err(error),
            Err(error) => error,
        };
        let namespaces = namespaces();
        match namespaces.info().await {
            Ok(_) => Ok(namespaces),
            Err(error) => {
                let message = format!("{no_engine}. Nor can sandboxes be made without one: {error}");
                let tried = no_engine.detail("tried").cloned().unwrap_or_default();
                Err(Error::new(ErrorCode::EngineUnavailable, message).with("tried", tried))
            }
        }
    }
}

#[async_trait]
impl Backend for Auto {
    async fn info(&self) -> Result<EngineInfo> {
        self.chosen().await?.info().await
    }

    async fn resolve_image(&self, name: &str) -> Result<String> {
        self.chosen().await?.resolve_image(name).await
    }

    async fn prepare_image(&self, image: &str, pull: PullPolicy, on_pull: Option<&OnPull>) -> Result<ImageFacts> {
        self.chosen().await?.prepare_image(image, pull, on_pull).await
    }

    async fn pull(&self, image: &str, on_pull: Option<&OnPull>) -> Result<()> {
        self.chosen().await?.pull(image, on_pull).await
    }

    async fn create(&self, spec: &BoxSpec) -> Result<Creation> {
        self.chosen().await?.create(spec).await
    }

    async fn link(&self, handle: &str) -> Result<ByteStream> {
        self.chosen().await?.link(handle).await
    }

    async fn fate(&self, handle: &str) -> Option<Error> {
        self.chosen().await.ok()?.fate(handle).await
    }

    async fn shortcut(&self, handle: &str) -> Option<ByteStream> {
        self.chosen().await.ok()?.shortcut(handle).await
    }

    async fn find(&self, name: &str) -> Result<Option<BoxRecord>> {
        self.chosen().await?.find(name).await
    }

    async fn list(&self) -> Result<Vec<BoxRecord>> {
        self.chosen().await?.list().await
    }

    async fn remove(&self, handle: &str) -> Result<()> {
        self.chosen().await?.remove(handle).await
    }

    async fn rename(&self, handle: &str, claim: &str, is_lasting: bool) -> Result<bool> {
        self.chosen().await?.rename(handle, claim, is_lasting).await
    }

    async fn set_limits(&self, handle: &str, limits: Limits) -> Result<()> {
        self.chosen().await?.set_limits(handle, limits).await
    }

    async fn keep(&self, spec: &BoxSpec) -> Result<BoxSpec> {
        self.chosen().await?.keep(spec).await
    }

    async fn kept(&self, claim: &str) -> Result<Option<BoxSpec>> {
        self.chosen().await?.kept(claim).await
    }

    async fn remove_data(&self, claim: &str) -> Result<()> {
        self.chosen().await?.remove_data(claim).await
    }

    async fn has_layer(&self, layer: &str) -> Result<bool> {
        self.chosen().await?.has_layer(layer).await
    }

    async fn commit(&self, handle: &str, layer: &str, image_id: &str) -> Result<()> {
        self.chosen().await?.commit(handle, layer, image_id).await
    }

    async fn prune(&self, request: &PruneRequest) -> Result<PruneReport> {
        self.chosen().await?.prune(request).await
    }
}

/// Where there are no namespaces to make sandboxes of.
#[cfg(not(all(target_os = "linux", feature = "namespaces")))]
struct Absent;

#[cfg(not(all(target_os = "linux", feature = "namespaces")))]
impl Absent {
    fn error<T>(&self) -> Result<T> {
        let message = format!(
            "sandboxes without a container engine are made of Linux namespaces, which {} does not have; install Docker, \
             Colima, OrbStack or Podman, or run this program on Linux (on Windows: in WSL2)",
            std::env::consts::OS
        );
        Err(Error::new(ErrorCode::EngineUnavailable, message))
    }
}

#[cfg(not(all(target_os = "linux", feature = "namespaces")))]
#[async_trait]
impl Backend for Absent {
    async fn info(&self) -> Result<EngineInfo> {
        self.error()
    }

    async fn prepare_image(&self, _: &str, _: PullPolicy, _: Option<&OnPull>) -> Result<ImageFacts> {
        self.error()
    }

    async fn pull(&self, _: &str, _: Option<&OnPull>) -> Result<()> {
        self.error()
    }

    async fn create(&self, _: &BoxSpec) -> Result<Creation> {
        self.error()
    }

    async fn link(&self, _: &str) -> Result<ByteStream> {
        self.error()
    }

    async fn fate(&self, _: &str) -> Option<Error> {
        None
    }

    async fn find(&self, _: &str) -> Result<Option<BoxRecord>> {
        self.error()
    }

    async fn list(&self) -> Result<Vec<BoxRecord>> {
        self.error()
    }

    async fn remove(&self, _: &str) -> Result<()> {
        self.error()
    }
}
