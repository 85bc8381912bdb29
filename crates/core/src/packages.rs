//! Packages that sandboxes start with: installed once per image and list, with network, into a layer on the engine.
//!
//! A layer's name is a hash of what it is made of, so that it is never stale. Its maker holds the claim of that name while it
//! installs: one program makes it, all others wait for it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cofferdam_protocol::{Bounds, Lease, Setup};
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use crate::backend::{BoxSpec, BoxState, Creation};
use crate::guest::{ExecRequest, ExecResult, Guest, SpawnRequest};
use crate::host::Host;
use crate::id::random_id;
use crate::sandbox::Linked;
use crate::{Command, Error, ErrorCode, Result};

/// Raised when the same list would be installed in another way.
const SCHEME: &str = "1";

/// Where installers keep what is not for the layer. Not the workdir: that must be as the image has it.
const SCRATCH: &str = "/tmp/.cofferdam-packages";

/// Lists are short: this is what a mistake looks like.
const MAX_PACKAGES: usize = 1000;
const MAX_NAME: usize = 4096;

/// One installer may take so long.
const INSTALL: Duration = Duration::from_secs(30 * 60);

/// A maker that is gone makes room for the next one after so long.
const ORPHAN: Duration = Duration::from_secs(10);

/// How long a maker may take from making its sandbox to starting it; one that died in between never does.
const STARTING: Duration = Duration::from_secs(30);

/// Between two looks at a layer that another program makes.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// How much of an installer's output its error tells.
const TOLD: usize = 2000;

/// What to install, by installer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Packages {
    /// For Python.
    pub pip: Vec<String>,
    /// For Node.js, where programs anywhere in the sandbox find them.
    pub npm: Vec<String>,
    /// For Debian and what is built on it.
    pub apt: Vec<String>,
}

impl Packages {
    /// Nothing to do.
    pub fn is_empty(&self) -> bool {
        self.lists().iter().all(|(_, list)| list.is_empty())
    }

    /// In the order of installing.
    fn lists(&self) -> [(&'static str, &[String]); 3] {
        [("apt", &self.apt), ("pip", &self.pip), ("npm", &self.npm)]
    }

    /// Names come from agents: none of them may be an option of its installer.
    pub(crate) fn check(&self) -> Result<()> {
        for (installer, list) in self.lists() {
            if list.len() > MAX_PACKAGES {
                let message = format!("packages.{installer} has {} entries, more than {MAX_PACKAGES}", list.len());
                return Err(Error::invalid(message));
            }
            for name in list {
                let is_bad = name.trim() != name || name.is_empty() || name.starts_with('-') || name.len() > MAX_NAME;
                if is_bad || name.chars().any(char::is_control) {
                    let shown: String = name.chars().take(80).collect();
                    let message = format!(
                        "packages.{installer} has {shown:?}, which is not a package; give names with or without a version, \
                         such as \"{}\"",
                        example(installer)
                    );
                    return Err(Error::invalid(message));
                }
            }
        }
        Ok(())
    }
}

fn example(installer: &str) -> &'static str {
    match installer {
        "apt" => "jq",
        "pip" => "pandas==2.2.3",
        _ => "left-pad@1",
    }
}

/// A layer to make: packages on an image.
pub(crate) struct Order<'a> {
    pub(crate) packages: &'a Packages,
    /// As a sandbox without the packages would be made.
    pub(crate) base: &'a BoxSpec,
    pub(crate) image_id: &'a str,
    pub(crate) network_allowed: bool,
    pub(crate) cancel: CancellationToken,
}

impl Order<'_> {
    /// Two orders with the same name give the same layer.
    fn layer(&self) -> String {
        let mut hash = Sha256::new();
        let mut add = |part: &str| {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        };
        add(SCHEME);
        add(self.image_id);
        for (installer, list) in self.packages.lists() {
            let mut list = list.to_vec();
            list.sort();
            list.dedup();
            add(installer);
            add(&list.len().to_string());
            list.iter().for_each(|name| add(name));
        }
        // Where packages come from is part of what they are.
        for (name, value) in settings(&self.base.env) {
            add(name);
            add(value);
        }
        let digits: String = hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        format!("cofferdam-packages:{digits}")
    }

    fn spec(&self, layer: &str) -> BoxSpec {
        let key = format!("packages:{layer}");
        BoxSpec {
            claim: crate::key::claim(&key),
            setup: Setup {
                sandbox_id: random_id("sbx_"),
                key,
                workdir: SCRATCH.to_owned(),
                user: Some("0:0".to_owned()),
                lease: Lease { idle_ms: 0, max_ms: 0, orphan_ms: ORPHAN.as_millis() as u64 },
                env: Vec::new(),
                labels: Vec::new(),
                bounds: Bounds::default(),
            },
            // Neither may end up in the layer.
            env: BTreeMap::new(),
            labels: BTreeMap::new(),
            network: true,
            read_only_root: false,
            persist: false,
            layer: None,
            ..self.base.clone()
        }
    }
}

/// The caller's settings of installers, such as an index of their own.
fn settings(env: &BTreeMap<String, String>) -> impl Iterator<Item = (&String, &String)> {
    let is_one = |name: &str| ["PIP_", "NPM_CONFIG_", "npm_config_"].iter().any(|prefix| name.starts_with(prefix));
    env.iter().filter(move |(name, _)| is_one(name))
}

/// The layers that this program waits for, one maker at a time for each.
#[derive(Default)]
pub(crate) struct Layers(Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>);

impl Layers {
    /// The name of the layer that has the packages, made if need be.
    pub(crate) async fn prepare(&self, host: &Arc<Host>, order: &Order<'_>) -> Result<String> {
        let layer = order.layer();
        let turn = {
            let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
            Arc::clone(turns.entry(layer.clone()).or_default())
        };
        let _one_at_a_time = turn.lock().await;
        let mut starting: Option<(String, Instant)> = None;
        loop {
            if host.backend.has_layer(&layer).await? {
                return Ok(layer);
            }
            if !order.network_allowed {
                let message = "installing packages needs network, which the policy of this manager does not allow; install \
                               them once by a manager that may, use an image that has them, or change policy.network";
                return Err(Error::new(ErrorCode::PolicyDenied, message));
            }
            let spec = order.spec(&layer);
            match host.backend.create(&spec).await? {
                Creation::New { handle, stream } => {
                    let made = tokio::select! {
                        made = make(host, order, &layer, handle.clone(), stream) => made,
                        () = order.cancel.cancelled() => Err(Error::Aborted),
                    };
                    host.backend.remove(&handle).await?;
                    made?;
                }
                Creation::Taken => {
                    if let Some(record) = host.backend.find(&spec.claim).await? {
                        let is_over = match record.state {
                            BoxState::Stopped => true,
                            BoxState::Starting => {
                                let seen = starting.take().filter(|(handle, _)| *handle == record.handle);
                                let (_, since) =
                                    starting.insert(seen.unwrap_or_else(|| (record.handle.clone(), Instant::now())));
                                since.elapsed() > STARTING
                            }
                            _ => false,
                        };
                        if is_over {
                            host.backend.remove(&record.handle).await?;
                        }
                    }
                    tokio::select! {
                        () = tokio::time::sleep(LOOK_AGAIN) => {}
                        () = order.cancel.cancelled() => return Err(Error::Aborted),
                    }
                }
            }
        }
    }
}

async fn make(
    host: &Arc<Host>,
    order: &Order<'_>,
    layer: &str,
    handle: String,
    stream: crate::guest::ByteStream,
) -> Result<()> {
    let linked = Linked::new(host, handle.clone(), stream).await?;
    let guest = &linked.guest;
    for (installer, list) in order.packages.lists().into_iter().filter(|(_, list)| !list.is_empty()) {
        install(guest, order, installer, list).await?;
    }
    guest.remove(SCRATCH, true).await?;
    host.backend.commit(&handle, layer, order.image_id).await?;
    guest.close(Error::new(ErrorCode::SandboxClosed, "the packages are installed"));
    Ok(())
}

async fn install(guest: &Arc<Guest>, order: &Order<'_>, installer: &str, list: &[String]) -> Result<()> {
    for program in programs(installer) {
        for (index, step) in steps(installer).iter().enumerate() {
            let mut words: Vec<String> = program.iter().chain(step.iter()).map(|word| (*word).to_owned()).collect();
            if step.last() == Some(&"--") {
                words.extend(list.iter().cloned());
            }
            match run(guest, order, words).await {
                Err(error) if error.code() == Some(ErrorCode::CommandNotFound) && index == 0 => break,
                Err(error) => return Err(error),
                Ok(result) if is_missing(installer, &result) => break,
                Ok(result) if result.exit_code != 0 => return Err(failure(order, installer, list, &result)),
                Ok(_) if index + 1 == steps(installer).len() => return Ok(()),
                Ok(_) => {}
            }
        }
    }
    let message = format!(
        "image \"{}\" has no {installer} to install {} with; use an image that has it, or leave packages.{installer} out",
        order.base.image,
        list.join(", ")
    );
    Err(Error::new(ErrorCode::CommandNotFound, message).with("installer", installer))
}

/// By which an installer is called, the first that is there.
fn programs(installer: &str) -> &'static [&'static [&'static str]] {
    match installer {
        "apt" => &[&["apt-get"]],
        "pip" => &[&["python", "-m", "pip"], &["python3", "-m", "pip"]],
        _ => &[&["npm"]],
    }
}

/// What it is asked to do; the packages come after `--`.
fn steps(installer: &str) -> &'static [&'static [&'static str]] {
    match installer {
        "apt" => {
            &[&["update", "--quiet"], &["install", "--yes", "--quiet", "--no-install-recommends", "--"], &["clean"]]
        }
        "pip" => &[&["install", "--"]],
        _ => &[
            &["install", "--global", "--no-audit", "--no-fund", "--"],
            &["exec", "--offline", "--call", FOUND_ANYWHERE],
        ],
    }
}

/// Programs in any folder look in the root's `node_modules`, whether they require or import. npm itself cannot install there.
const FOUND_ANYWHERE: &str = "test -e /node_modules || ln -s \"$(npm root --global)\" /node_modules";

/// Python is there, and pip is not.
fn is_missing(installer: &str, result: &ExecResult) -> bool {
    installer == "pip"
        && result.exit_code == 1
        && String::from_utf8_lossy(&result.stderr).contains("No module named pip")
}

async fn run(guest: &Arc<Guest>, order: &Order<'_>, words: Vec<String>) -> Result<ExecResult> {
    let own = [
        ("DEBIAN_FRONTEND", "noninteractive"),
        ("PIP_NO_CACHE_DIR", "1"),
        ("PIP_NO_INPUT", "1"),
        ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
        ("PIP_ROOT_USER_ACTION", "ignore"),
        // The sandbox is the environment of its own that Debian asks for.
        ("PIP_BREAK_SYSTEM_PACKAGES", "1"),
        ("npm_config_cache", SCRATCH),
        ("npm_config_update_notifier", "false"),
    ];
    let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let callers = order.base.env.iter().map(|(name, value)| (name.clone(), value.clone()));
    let spawn = SpawnRequest {
        command: Command::Program(words),
        env: own.into_iter().chain(callers).collect(),
        user: Some("0:0".to_owned()),
        timeout: Some(INSTALL),
        ..SpawnRequest::shell("")
    };
    guest.exec(ExecRequest { spawn, stdin: None, cancel: CancellationToken::new() }).await
}

fn failure(order: &Order<'_>, installer: &str, list: &[String], result: &ExecResult) -> Error {
    let tail = |bytes: &[u8]| String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(TOLD)..]).trim().to_owned();
    let said = Some(tail(&result.stderr)).filter(|said| !said.is_empty()).unwrap_or_else(|| tail(&result.stdout));
    let message = format!(
        "{installer} could not install {} on image \"{}\" (exit code {}): {said}",
        list.join(", "),
        order.base.image,
        result.exit_code
    );
    Error::invalid(message).with("installer", installer).with("exitCode", result.exit_code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_not_a_package() {
        for name in ["", " x", "-r", "--index-url=x", "a\nb", "a\0"] {
            let packages = Packages { pip: vec![name.to_owned()], ..Packages::default() };
            assert_eq!(packages.check().unwrap_err().code(), Some(ErrorCode::InvalidArgument), "{name:?}");
        }
        let fine = ["pandas==2.2.3", "uvicorn[standard]>=0.30", "@scope/name@^1", "git+https://example.org/x.git"];
        let packages = Packages { pip: fine.map(str::to_owned).to_vec(), ..Packages::default() };
        assert!(packages.check().is_ok());
    }
}
