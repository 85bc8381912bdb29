//! Finds the engine as the docker command does: the option, `DOCKER_HOST`, the current context, then well-known sockets. A named
//! engine is used or rejected; well-known sockets are tried in turn.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bollard::{API_DEFAULT_VERSION, ClientVersion, Docker as Client};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::CALL_TIMEOUT;
use super::error::{describe, unavailable_at};
use super::reason::Reason;
use crate::backend::Attempt;
use crate::id::hex;
use crate::options::{DockerOptions, TlsFiles};
use crate::{Error, ErrorCode, Result};

/// How long an engine may take to answer a ping.
const FIRST_ANSWER: Duration = Duration::from_secs(5);

/// How long an engine that answers may take to say its version.
const VERSION_ANSWER: Duration = Duration::from_secs(20);

/// Docker 20.10, Podman 4.0.
const OLDEST_API: ClientVersion = ClientVersion { major_version: 1, minor_version: 41 };

/// An engine that answered, and how it was found.
pub(super) struct Discovery {
    pub(super) client: Client,
    pub(super) place: Place,
    /// Engines that did not answer before it.
    pub(super) tried: Vec<Attempt>,
}

/// The address of an engine, and where it comes from.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) host: String,
    source: Source,
}

#[derive(Debug, Clone)]
enum Source {
    /// The `docker.host` option.
    Option,
    Environment,
    /// The current one, by name.
    Context(String),
    /// A well-known socket.
    Default,
}

impl Place {
    /// Public, in `info()` and in details of errors.
    pub(super) fn source(&self) -> String {
        match &self.source {
            Source::Option => "option".to_owned(),
            Source::Environment => "DOCKER_HOST".to_owned(),
            Source::Context(name) => format!("context {name}"),
            Source::Default => "default".to_owned(),
        }
    }

    /// For messages.
    fn address(&self) -> String {
        match &self.source {
            Source::Option | Source::Default => self.host.clone(),
            Source::Environment => format!("{} (from DOCKER_HOST)", self.host),
            Source::Context(name) => format!("{} (of the docker context {name:?})", self.host),
        }
    }

    fn unavailable(&self, reason: Reason, why: &str) -> Error {
        unavailable_at(&self.host, &self.address(), reason, why)
    }

    fn attempt(&self, error: &Error) -> Attempt {
        let text = error.to_string();
        let why = text.split_once("cannot be used: ").map_or(text.as_str(), |(_, why)| why);
        let reason = error.detail("reason").and_then(|reason| reason.as_str());
        Attempt {
            host: self.host.clone(),
            source: self.source(),
            reason: reason.unwrap_or(Reason::Other.as_str()).to_owned(),
            problem: why.split(". ").next().unwrap_or(why).to_owned(),
        }
    }
}

fn details(tried: &[Attempt]) -> serde_json::Value {
    let of = |Attempt { host, source, reason, problem }: &Attempt| json!({ "host": host, "source": source, "reason": reason, "problem": problem });
    tried.iter().map(of).collect()
}

pub(super) async fn connect(options: &DockerOptions) -> Result<Discovery> {
    if let Some(place) = named(options) {
        return match try_place(&place, options.tls.as_ref()).await {
            Ok(client) => Ok(Discovery { client, place, tried: Vec::new() }),
            Err(error) => {
                let tried = details(&[place.attempt(&error)]);
                Err(error.with("tried", tried))
            }
        };
    }
    let mut tried = Vec::new();
    for place in known_places() {
        match try_place(&place, None).await {
            Ok(client) => return Ok(Discovery { client, place, tried }),
            Err(error) => tried.push(place.attempt(&error)),
        }
    }
    let list: Vec<_> = tried.iter().map(|Attempt { host, problem, .. }| format!("{host} ({problem})")).collect();
    let message = format!(
        "no container engine was found{}. Install Docker or Podman and start it, or set docker.host or DOCKER_HOST",
        if list.is_empty() { String::new() } else { format!("; tried {}", list.join(", ")) }
    );
    Err(Error::new(ErrorCode::EngineUnavailable, message).with("tried", details(&tried)))
}

/// The engine that the caller, the environment or the current context says.
pub(super) fn named(options: &DockerOptions) -> Option<Place> {
    let place = |source: Source| move |host: String| Place { host, source };
    let asked = options.host.clone().map(place(Source::Option));
    asked.or_else(|| from_environment().map(place(Source::Environment))).or_else(from_context)
}

async fn try_place(place: &Place, tls: Option<&TlsFiles>) -> Result<Client> {
    let client = client(place, tls)?;
    let failed = |error| place.unavailable(Reason::of(&error), &describe(&error));
    let silent = |limit: Duration| {
        move |_| place.unavailable(Reason::Silent, &format!("it did not answer within {} s", limit.as_secs()))
    };
    // Podman asks dpkg or rpm for its version, which is slow. A ping shows whether anything answers at all.
    tokio::time::timeout(FIRST_ANSWER, client.ping()).await.map_err(silent(FIRST_ANSWER))?.map_err(failed)?;
    let negotiating = tokio::time::timeout(VERSION_ANSWER, client.negotiate_version()).await;
    let client = negotiating.map_err(silent(VERSION_ANSWER))?.map_err(failed)?;
    match client.client_version() {
        api if api < OLDEST_API => {
            let why =
                format!("its API is {api}, and {OLDEST_API} (Docker 20.10, Podman 4.0) is the oldest that will do");
            Err(place.unavailable(Reason::OldApi, &why).with("apiVersion", api.to_string()))
        }
        _ => Ok(client),
    }
}

fn client(place: &Place, tls: Option<&TlsFiles>) -> Result<Client> {
    let timeout = CALL_TIMEOUT.as_secs();
    let version = API_DEFAULT_VERSION;
    let host = place.host.as_str();
    let made = match host.split_once("://") {
        #[cfg(unix)]
        Some(("unix", path)) => {
            // A socket that this user cannot even stat counts as existing.
            if Path::new(path).try_exists().is_ok_and(|exists| !exists) {
                return Err(place.unavailable(Reason::Missing, "there is no such socket"));
            }
            Client::connect_with_unix(path, timeout, version)
        }
        #[cfg(windows)]
        Some(("npipe", path)) => Client::connect_with_named_pipe(&path.replace('/', "\\"), timeout, version),
        Some(("tcp" | "http" | "https", _)) => match tls.cloned().or_else(tls_from_environment) {
            Some(files) => {
                let (key, cert, ca) = (Path::new(&files.key), Path::new(&files.cert), Path::new(&files.ca));
                Client::connect_with_ssl(host, key, cert, ca, timeout, version)
            }
            None => Client::connect_with_http(host, timeout, version),
        },
        #[cfg(unix)]
        Some(("ssh", _)) => Client::connect_with_ssh(host, timeout, version, None),
        #[cfg(not(unix))]
        Some(("ssh", _)) => {
            let message =
                format!("{host:?}: engines behind ssh cannot be reached from Windows yet; use tcp://host:port, or WSL");
            return Err(Error::new(ErrorCode::Unsupported, message));
        }
        _ => {
            let from = if matches!(place.source, Source::Option) {
                String::new()
            } else {
                format!(", of {},", place.source())
            };
            let message = format!(
                "{host:?}{from} is not an engine's address; use unix:///path, tcp://host:port or ssh://user@host"
            );
            return Err(Error::invalid(message).with("host", host).with("reason", Reason::BadAddress.as_str()));
        }
    };
    made.map_err(|error| place.unavailable(Reason::of(&error), &describe(&error)))
}

fn from_environment() -> Option<String> {
    std::env::var("DOCKER_HOST").ok().filter(|host| !host.is_empty())
}

fn tls_from_environment() -> Option<TlsFiles> {
    std::env::var("DOCKER_TLS_VERIFY").ok().filter(|verify| !verify.is_empty())?;
    let folder = std::env::var_os("DOCKER_CERT_PATH").map(PathBuf::from).or_else(|| Some(home()?.join(".docker")))?;
    let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
    Some(TlsFiles { ca: file("ca.pem"), cert: file("cert.pem"), key: file("key.pem") })
}

/// The endpoint of the context that `docker context use` chose.
fn from_context() -> Option<Place> {
    let folder = std::env::var_os("DOCKER_CONFIG").map(PathBuf::from).or_else(|| Some(home()?.join(".docker")))?;
    let named = std::env::var("DOCKER_CONTEXT").ok().filter(|name| !name.is_empty());
    let name = match named {
        Some(name) => name,
        None => {
            let config: serde_json::Value =
                serde_json::from_slice(&std::fs::read(folder.join("config.json")).ok()?).ok()?;
            config.get("currentContext")?.as_str()?.to_owned()
        }
    };
    if name == "default" {
        return None;
    }
    let digest = hex(&Sha256::digest(name.as_bytes()));
    let meta = std::fs::read(folder.join("contexts/meta").join(digest).join("meta.json")).ok()?;
    let meta: serde_json::Value = serde_json::from_slice(&meta).ok()?;
    let host = meta.pointer("/Endpoints/docker/Host")?.as_str()?.to_owned();
    Some(Place { host, source: Source::Context(name) })
}

fn home() -> Option<PathBuf> {
    std::env::home_dir()
}

/// Those that exist here.
fn known_places() -> Vec<Place> {
    let place = |host: String| Place { host, source: Source::Default };
    if cfg!(windows) {
        return vec![place("npipe:////./pipe/docker_engine".to_owned())];
    }
    let mut sockets = vec![PathBuf::from("/var/run/docker.sock")];
    if let Some(home) = home() {
        let under = [
            ".docker/run/docker.sock",
            ".docker/desktop/docker.sock",
            ".orbstack/run/docker.sock",
            ".colima/default/docker.sock",
            ".rd/docker.sock",
        ];
        sockets.extend(under.map(|path| home.join(path)));
    }
    if let Some(runtime) = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from) {
        sockets.extend(["docker.sock", "podman/podman.sock"].map(|path| runtime.join(path)));
    }
    sockets.push(PathBuf::from("/run/podman/podman.sock"));
    let may_exist = |path: &&PathBuf| path.try_exists().unwrap_or(true);
    sockets.iter().filter(may_exist).map(|path| place(format!("unix://{}", path.display()))).collect()
}
