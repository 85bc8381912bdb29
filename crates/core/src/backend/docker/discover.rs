//! Finding the engine, as the docker command does: what the caller says, `DOCKER_HOST`, the current context, then the
//! sockets that engines are known to have. What is named is used or refused; what is only known is tried in turn.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bollard::{API_DEFAULT_VERSION, Docker as Client};
use sha2::{Digest, Sha256};

use super::CALL_TIMEOUT;
use super::error::{engine_error, unavailable};
use crate::options::{DockerOptions, TlsFiles};
use crate::{Error, ErrorCode, Result};

/// How long an engine may take for its first answer.
const FIRST_ANSWER: Duration = Duration::from_secs(5);

/// A client for the engine, and where that is.
pub(super) async fn connect(options: &DockerOptions) -> Result<(Client, String)> {
    if let Some(host) = named(options) {
        let client = try_host(&host, options.tls.as_ref()).await?;
        return Ok((client, host));
    }
    let mut tried = Vec::new();
    for host in known_hosts() {
        match try_host(&host, None).await {
            Ok(client) => return Ok((client, host)),
            Err(error) => tried.push(format!("{host} ({})", short(&error))),
        }
    }
    let message = format!(
        "no container engine was found{}. Install Docker or Podman and start it, or set docker.host or DOCKER_HOST",
        if tried.is_empty() { String::new() } else { format!("; tried {}", tried.join(", ")) }
    );
    Err(Error::new(ErrorCode::EngineUnavailable, message).with("tried", tried))
}

/// The engine that the caller, the environment or the current context says.
pub(super) fn named(options: &DockerOptions) -> Option<String> {
    options.host.clone().or_else(from_environment).or_else(from_context)
}

fn short(error: &Error) -> String {
    let text = error.to_string();
    let why = text.split_once("cannot be used: ").map_or(text.as_str(), |(_, why)| why);
    why.split(". Start it").next().unwrap_or(why).to_owned()
}

async fn try_host(host: &str, tls: Option<&TlsFiles>) -> Result<Client> {
    let client = client(host, tls)?;
    match tokio::time::timeout(FIRST_ANSWER, client.negotiate_version()).await {
        Ok(Ok(client)) => Ok(client),
        Ok(Err(error)) => {
            let why = engine_error("say its version", host, error);
            Err(match why.code() {
                Some(ErrorCode::EngineUnavailable) => why,
                _ => unavailable(host, &why.to_string()),
            })
        }
        Err(_) => Err(unavailable(host, &format!("it did not answer within {} s", FIRST_ANSWER.as_secs()))),
    }
}

fn client(host: &str, tls: Option<&TlsFiles>) -> Result<Client> {
    let timeout = CALL_TIMEOUT.as_secs();
    let version = API_DEFAULT_VERSION;
    let made = match host.split_once("://") {
        #[cfg(unix)]
        Some(("unix", path)) => {
            if !Path::new(path).exists() {
                return Err(unavailable(host, "there is no such socket"));
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
        Some(("ssh", _)) => Client::connect_with_ssh(host, timeout, version, None),
        _ => {
            let message =
                format!("{host:?} is not an engine's address; use unix:///path, tcp://host:port or ssh://user@host");
            return Err(Error::invalid(message).with("host", host));
        }
    };
    made.map_err(|error| engine_error("be reached", host, error))
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
fn from_context() -> Option<String> {
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
    let digest: String = Sha256::digest(name.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    let meta = std::fs::read(folder.join("contexts/meta").join(digest).join("meta.json")).ok()?;
    let meta: serde_json::Value = serde_json::from_slice(&meta).ok()?;
    Some(meta.pointer("/Endpoints/docker/Host")?.as_str()?.to_owned())
}

fn home() -> Option<PathBuf> {
    std::env::home_dir()
}

/// Those that exist here.
fn known_hosts() -> Vec<String> {
    if cfg!(windows) {
        return vec!["npipe:////./pipe/docker_engine".to_owned()];
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
    sockets.iter().filter(|path| path.exists()).map(|path| format!("unix://{}", path.display())).collect()
}
