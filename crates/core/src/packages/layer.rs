//! Layers with packages: how they are named, and which program builds them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cofferdam_protocol::Lease;
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use super::Packages;
use super::install::{SCRATCH, install};
use crate::backend::{BoxSpec, BoxState, CommandUser, Creation, Network};
use crate::guest::ByteStream;
use crate::host::Host;
use crate::id::{hex, random_id};
use crate::key::SessionKey;
use crate::lock::lock;
use crate::sandbox::Linked;
use crate::{Error, ErrorCode, Result};

/// Version of the installation steps: increment when they change.
const VERSION: &str = "1";

/// The sandbox of a builder that died ends after this time.
const ORPHAN_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a builder may take to start its sandbox. A builder that died before never starts it.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Poll interval for a layer that another program builds.
const POLL: Duration = Duration::from_millis(200);

/// A layer to build: packages on an image.
pub(crate) struct LayerRequest<'a> {
    pub(crate) packages: &'a Packages,
    /// The spec of the sandbox without packages.
    pub(crate) base: &'a BoxSpec,
    pub(crate) image_id: &'a str,
    pub(crate) network_allowed: bool,
    pub(crate) cancel: CancellationToken,
}

impl LayerRequest<'_> {
    /// The layer's name. Requests with equal names give equal layers.
    fn layer(&self) -> String {
        let mut hash = Sha256::new();
        let mut add = |part: &str| {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        };
        add(VERSION);
        add(self.image_id);
        for (installer, list) in self.packages.lists() {
            let mut list = list.to_vec();
            list.sort();
            list.dedup();
            add(installer);
            add(&list.len().to_string());
            list.iter().for_each(|name| add(name));
        }
        // The source of packages is part of their identity.
        for (name, value) in settings(&self.base.env) {
            add(name);
            add(value);
        }
        format!("cofferdam-packages:{}", hex(&hash.finalize()[..16]))
    }

    fn spec(&self, key: &SessionKey) -> BoxSpec {
        BoxSpec {
            sandbox_id: random_id("sbx_"),
            key: Some(key.clone()),
            workdir: SCRATCH.to_owned(),
            user: CommandUser::Named("0:0".to_owned()),
            lease: Lease { idle_ms: 0, max_ms: 0, orphan_ms: ORPHAN_TIMEOUT.as_millis() as u64 },
            // Neither may become part of the layer.
            env: BTreeMap::new(),
            labels: BTreeMap::new(),
            network: Network::Open,
            read_only_root: false,
            persist: false,
            layer: None,
            ..self.base.clone()
        }
    }
}

/// The holder of this key's claim builds the layer.
fn layer_key(layer: &str) -> SessionKey {
    SessionKey::internal("packages", layer)
}

/// The caller's installer settings, such as a private index.
fn settings(env: &BTreeMap<String, String>) -> impl Iterator<Item = (&String, &String)> {
    let is_one = |name: &str| ["PIP_", "NPM_CONFIG_", "npm_config_"].iter().any(|prefix| name.starts_with(prefix));
    env.iter().filter(move |(name, _)| is_one(name))
}

/// One lock per layer that this program builds or waits for.
#[derive(Default)]
pub(crate) struct Layers(Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>);

impl Layers {
    /// The name of the layer with the packages; builds it if necessary.
    pub(crate) async fn prepare(&self, host: &Arc<Host>, request: &LayerRequest<'_>) -> Result<String> {
        let layer = request.layer();
        let turn = {
            let mut turns = lock(&self.0);
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
            Arc::clone(turns.entry(layer.clone()).or_default())
        };
        let _one_at_a_time = turn.lock().await;
        let backend = host.backend().await?;
        let mut starting: Option<(String, Instant)> = None;
        loop {
            if backend.require_layers()?.exists(&layer).await? {
                return Ok(layer);
            }
            if !request.network_allowed {
                let message = "installing packages needs network, which the policy of this manager does not allow; install \
                               them once by a manager that may, use an image that has them, or change policy.network";
                return Err(Error::new(ErrorCode::PolicyDenied, message));
            }
            let key = layer_key(&layer);
            match backend.create(&request.spec(&key)).await? {
                Creation::New { handle, stream } => {
                    let built = tokio::select! {
                        built = build(host, request, &layer, handle.clone(), stream) => built,
                        () = request.cancel.cancelled() => Err(Error::Aborted),
                    };
                    backend.remove(&handle).await?;
                    built?;
                }
                Creation::Taken => {
                    if let Some(record) = backend.holder(&key).await? {
                        let is_over = match record.state {
                            BoxState::Stopped => true,
                            BoxState::Starting => {
                                let seen = starting.take().filter(|(handle, _)| *handle == record.handle);
                                let (_, since) =
                                    starting.insert(seen.unwrap_or_else(|| (record.handle.clone(), Instant::now())));
                                since.elapsed() > START_TIMEOUT
                            }
                            _ => false,
                        };
                        if is_over {
                            backend.remove(&record.handle).await?;
                        }
                    }
                    tokio::select! {
                        () = tokio::time::sleep(POLL) => {}
                        () = request.cancel.cancelled() => return Err(Error::Aborted),
                    }
                }
            }
        }
    }
}

async fn build(
    host: &Arc<Host>,
    request: &LayerRequest<'_>,
    layer: &str,
    handle: String,
    stream: ByteStream,
) -> Result<()> {
    let linked = Linked::new(host, handle.clone(), stream).await?;
    let guest = &linked.guest;
    for (installer, list) in request.packages.lists().into_iter().filter(|(_, list)| !list.is_empty()) {
        install(guest, request, installer, list).await?;
    }
    guest.remove(SCRATCH, true).await?;
    host.backend().await?.require_layers()?.commit(&handle, layer, request.image_id).await?;
    guest.close(Error::new(ErrorCode::SandboxClosed, "the packages are installed"));
    Ok(())
}
