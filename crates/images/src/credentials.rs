//! Credentials for registries, from docker's configuration and its helpers. They are never written, logged or shown.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;

use crate::error::{ImageError, ImageErrorKind, Result};
use crate::reference::Reference;

/// The timeout of a helper, which may have to ask a keyring.
const HELPER_PATIENCE: Duration = Duration::from_secs(30);

/// Credentials for a registry.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Credentials {
    /// A name and a password.
    Login { user: String, password: String },
    /// A token to get tokens with.
    Identity(String),
    /// A token for the registry itself.
    Token(String),
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Credentials(hidden)")
    }
}

impl Credentials {
    /// For the `Authorization` header.
    pub(crate) fn basic(user: &str, password: &str) -> String {
        format!("Basic {}", BASE64_STANDARD.encode(format!("{user}:{password}")))
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Config {
    auths: BTreeMap<String, Auth>,
    creds_store: Option<String>,
    cred_helpers: BTreeMap<String, String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Auth {
    auth: Option<String>,
    username: Option<String>,
    password: Option<String>,
    #[serde(rename = "identitytoken")]
    identity_token: Option<String>,
    #[serde(rename = "registrytoken")]
    registry_token: Option<String>,
}

/// Docker's configuration: `$DOCKER_CONFIG/config.json`, else the one in the home folder.
pub(crate) fn docker_config() -> Option<PathBuf> {
    let said = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = said("DOCKER_CONFIG").or_else(|| said("HOME").map(|home| home.join(".docker")))?;
    Some(folder.join("config.json"))
}

/// The credentials for a registry; `None` where the configuration has none.
pub(crate) async fn find(config: &Path, reference: &Reference) -> Result<Option<Credentials>> {
    let content = match std::fs::read(config) {
        Ok(content) => content,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unusable(config, &error.to_string())),
    };
    let config_file = config;
    let config: Config = serde_json::from_slice(&content).map_err(|error| unusable(config_file, &error.to_string()))?;
    let keys = reference.credential_keys();
    let helper_of = |key: &&str| config.cred_helpers.iter().find(|(name, _)| host(name) == host(key));
    let helper = keys.iter().find_map(helper_of).map(|(key, helper)| (key.as_str(), helper));
    let helper = helper.or(config.creds_store.as_ref().map(|store| (keys[0], store)));
    if let Some((server, helper)) = helper.filter(|(_, helper)| !helper.is_empty())
        && let Some(credentials) = ask(helper, server).await?
    {
        return Ok(Some(credentials));
    }
    let auth_of = |key: &&str| config.auths.iter().find(|(name, _)| host(name) == host(key));
    match keys.iter().find_map(auth_of) {
        Some((name, auth)) => auth.read().map_err(|why| unusable(config_file, &format!("for {name}: {why}"))),
        None => Ok(None),
    }
}

impl Auth {
    fn read(&self) -> std::result::Result<Option<Credentials>, String> {
        let said = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        if let Some(token) = said(&self.identity_token) {
            return Ok(Some(Credentials::Identity(token)));
        }
        if let Some(token) = said(&self.registry_token) {
            return Ok(Some(Credentials::Token(token)));
        }
        let Some(auth) = said(&self.auth) else {
            let login = said(&self.username).zip(said(&self.password));
            return Ok(login.map(|(user, password)| Credentials::Login { user, password }));
        };
        let text = BASE64_STANDARD.decode(auth.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let text = text.ok_or("\"auth\" is not base64")?;
        let (user, password) = text.split_once(':').ok_or("\"auth\" has no colon between name and password")?;
        let password = password.trim_end_matches('\0');
        Ok(Some(Credentials::Login { user: user.to_owned(), password: password.to_owned() }))
    }
}

/// `https://host:port/v1/` and `host:port` are the same registry.
fn host(key: &str) -> &str {
    let rest = key.strip_prefix("https://").or_else(|| key.strip_prefix("http://")).unwrap_or(key);
    rest.split('/').next().unwrap_or(rest)
}

/// Runs `docker-credential-<helper> get`.
async fn ask(helper: &str, server: &str) -> Result<Option<Credentials>> {
    let program = format!("docker-credential-{helper}");
    let failed = |why: String| {
        let message = format!(
            "{program}, which docker's configuration names for {server}, {why}. Install or repair it, or log in again with \
             docker login"
        );
        ImageError::new(ImageErrorKind::Unauthorized, message)
    };
    if helper.contains('/') {
        return Err(failed("is not a plain name".to_owned()));
    }
    let mut command = Command::new(&program);
    command.arg("get").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let child = command.spawn().map_err(|error| failed(format!("cannot be started ({error})")))?;
    let child = Arc::new(Mutex::new(child));
    let (asked, question) = (child.clone(), server.to_owned());
    let talking = tokio::task::spawn_blocking(move || converse(&asked, &question));
    let Ok(answer) = tokio::time::timeout(HELPER_PATIENCE, talking).await else {
        let _ = lock(&child).kill();
        return Err(failed(format!("did not answer within {} s", HELPER_PATIENCE.as_secs())));
    };
    let (succeeded, output) = match answer {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => return Err(failed(format!("failed ({error})"))),
        Err(error) => return Err(failed(format!("failed ({error})"))),
    };
    if !succeeded {
        // What every helper prints when it has none.
        return match output.contains("credentials not found") || output.trim().is_empty() {
            true => Ok(None),
            false => Err(failed(format!("says {:?}", output.trim().chars().take(200).collect::<String>()))),
        };
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Answer {
        username: String,
        secret: String,
    }
    let Answer { username, secret } =
        serde_json::from_str(&output).map_err(|_| failed("gave an answer that cannot be read".to_owned()))?;
    Ok(Some(match username.as_str() {
        "<token>" => Credentials::Identity(secret),
        _ => Credentials::Login { user: username, password: secret },
    }))
}

fn converse(child: &Mutex<Child>, question: &str) -> std::io::Result<(bool, String)> {
    let (stdin, stdout) = {
        let mut child = lock(child);
        (child.stdin.take(), child.stdout.take())
    };
    if let Some(mut stdin) = stdin {
        // A helper that does not read its input may have closed it.
        let _ = stdin.write_all(question.as_bytes());
    }
    let mut output = String::new();
    if let Some(stdout) = stdout {
        stdout.take(1024 * 1024).read_to_string(&mut output)?;
    }
    let status = lock(child).wait()?;
    Ok((status.success(), output))
}

fn lock(child: &Mutex<Child>) -> std::sync::MutexGuard<'_, Child> {
    child.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn unusable(config: &Path, why: &str) -> ImageError {
    let message =
        format!("docker's configuration {} cannot be used: {why}. Repair it, or log in again", config.display());
    ImageError::new(ImageErrorKind::Unauthorized, message)
}
