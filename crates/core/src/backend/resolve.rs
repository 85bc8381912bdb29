//! Which backend a manager uses: the one that its options name, or the best one here. A container engine if one answers, else
//! this machine's own namespaces; if neither works, an error that says why for each and what to do.

use std::sync::Arc;

use tokio::sync::OnceCell;

use super::Backend;
use super::docker::Docker;
use crate::options::{BackendKind, DockerOptions, ManagerOptions};
use crate::{Error, ErrorCode, Result};

/// Decides on first use, once.
pub(crate) struct Resolver {
    kind: BackendKind,
    docker: DockerOptions,
    resolved: OnceCell<Arc<dyn Backend>>,
}

impl Resolver {
    /// Asks nobody yet.
    pub(crate) fn new(options: &ManagerOptions) -> Resolver {
        let docker = options.docker.clone();
        let kind = match options.backend {
            // Naming an engine or a runtime rules out everything else.
            BackendKind::Auto if docker.host.is_some() || docker.runtime.is_some() => BackendKind::Docker,
            kind => kind,
        };
        Resolver { kind, docker, resolved: OnceCell::new() }
    }

    pub(crate) fn fixed(backend: Arc<dyn Backend>) -> Resolver {
        Resolver {
            kind: BackendKind::default(),
            docker: DockerOptions::default(),
            resolved: OnceCell::new_with(Some(backend)),
        }
    }

    /// The backend of this manager. A failure is not remembered: the next call tries again.
    pub(crate) async fn backend(&self) -> Result<&Arc<dyn Backend>> {
        self.resolved
            .get_or_try_init(|| async {
                match self.kind {
                    BackendKind::Docker => Ok(Arc::new(Docker::new(self.docker.clone())) as Arc<dyn Backend>),
                    BackendKind::Namespaces => namespaces(),
                    BackendKind::Auto => self.best().await,
                }
            })
            .await
    }

    async fn best(&self) -> Result<Arc<dyn Backend>> {
        let docker = Docker::new(self.docker.clone());
        let no_engine = match docker.info().await {
            Ok(_) => return Ok(Arc::new(docker)),
            // An engine that DOCKER_HOST or a context names must not be ignored because it is down.
            Err(error) if docker.is_named() => return Err(error),
            Err(error) => error,
        };
        let usable = async {
            let namespaces = namespaces()?;
            namespaces.info().await.map(|_| namespaces)
        };
        usable.await.map_err(|error| {
            let message = format!("{no_engine}. Sandboxes without an engine do not work here either: {error}");
            let tried = no_engine.detail("tried").cloned().unwrap_or_default();
            Error::new(ErrorCode::EngineUnavailable, message).with("tried", tried)
        })
    }
}

#[cfg(all(target_os = "linux", feature = "namespaces"))]
fn namespaces() -> Result<Arc<dyn Backend>> {
    Ok(Arc::new(super::namespaces::Namespaces::new()))
}

#[cfg(not(all(target_os = "linux", feature = "namespaces")))]
fn namespaces() -> Result<Arc<dyn Backend>> {
    let message = format!(
        "sandboxes without a container engine need Linux namespaces, which {} does not have; install Docker, Colima, \
         OrbStack or Podman, or run this program on Linux (on Windows: in WSL2)",
        std::env::consts::OS
    );
    Err(Error::new(ErrorCode::EngineUnavailable, message))
}
