//! Runs installers in the sandbox that becomes a layer.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::layer::LayerRequest;
use crate::guest::{ExecRequest, ExecResult, Guest, SpawnRequest};
use crate::{Command, Error, ErrorCode, Result};

/// For installer files that must not be in the layer. Not the workdir: that must stay as the image has it.
pub(super) const SCRATCH: &str = "/tmp/.cofferdam-packages";

/// Time limit of one installer step.
const STEP_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// How much of an installer's output its error quotes.
const MAX_SHOWN: usize = 2000;

pub(super) async fn install(
    guest: &Arc<Guest>,
    request: &LayerRequest<'_>,
    installer: &str,
    list: &[String],
) -> Result<()> {
    for program in programs(installer) {
        for (index, step) in steps(installer).iter().enumerate() {
            let mut words: Vec<String> = program.iter().chain(step.iter()).map(|word| (*word).to_owned()).collect();
            if step.last() == Some(&"--") {
                words.extend(list.iter().cloned());
            }
            match run(guest, request, words).await {
                Err(error) if error.code() == Some(ErrorCode::CommandNotFound) && index == 0 => break,
                Err(error) => return Err(error),
                Ok(result) if is_missing(installer, &result) => break,
                Ok(result) if result.exit_code != 0 => return Err(failure(request, installer, list, &result)),
                Ok(_) if index + 1 == steps(installer).len() => return Ok(()),
                Ok(_) => {}
            }
        }
    }
    let message = format!(
        "image \"{}\" has no {installer} to install {} with; use an image that has it, or leave packages.{installer} out",
        request.base.image,
        list.join(", ")
    );
    Err(Error::new(ErrorCode::CommandNotFound, message).with("installer", installer))
}

/// Commands for an installer; the first that exists is used.
fn programs(installer: &str) -> &'static [&'static [&'static str]] {
    match installer {
        "apt" => &[&["apt-get"]],
        "pip" => &[&["python", "-m", "pip"], &["python3", "-m", "pip"]],
        _ => &[&["npm"]],
    }
}

/// Arguments per step; the packages follow `--`.
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

/// Both `require` and `import` look in `/node_modules` from any folder. npm itself cannot install there.
const FOUND_ANYWHERE: &str = "test -e /node_modules || ln -s \"$(npm root --global)\" /node_modules";

/// Whether Python exists without pip.
fn is_missing(installer: &str, result: &ExecResult) -> bool {
    installer == "pip"
        && result.exit_code == 1
        && String::from_utf8_lossy(&result.stderr).contains("No module named pip")
}

async fn run(guest: &Arc<Guest>, request: &LayerRequest<'_>, words: Vec<String>) -> Result<ExecResult> {
    let own = [
        ("DEBIAN_FRONTEND", "noninteractive"),
        ("PIP_NO_CACHE_DIR", "1"),
        ("PIP_NO_INPUT", "1"),
        ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
        ("PIP_ROOT_USER_ACTION", "ignore"),
        // The sandbox is already the separate environment that Debian wants.
        ("PIP_BREAK_SYSTEM_PACKAGES", "1"),
        ("npm_config_cache", SCRATCH),
        ("npm_config_update_notifier", "false"),
    ];
    let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let callers = request.base.env.iter().map(|(name, value)| (name.clone(), value.clone()));
    let spawn = SpawnRequest {
        command: Command::Program(words),
        env: own.into_iter().chain(callers).collect(),
        user: Some("0:0".to_owned()),
        timeout: Some(STEP_TIMEOUT),
        ..SpawnRequest::shell("")
    };
    guest.exec(ExecRequest { spawn, stdin: None, cancel: CancellationToken::new() }).await
}

fn failure(request: &LayerRequest<'_>, installer: &str, list: &[String], result: &ExecResult) -> Error {
    let tail =
        |bytes: &[u8]| String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(MAX_SHOWN)..]).trim().to_owned();
    let said = Some(tail(&result.stderr)).filter(|said| !said.is_empty()).unwrap_or_else(|| tail(&result.stdout));
    let message = format!(
        "{installer} could not install {} on image \"{}\" (exit code {}): {said}",
        list.join(", "),
        request.base.image,
        result.exit_code
    );
    Error::invalid(message).with("installer", installer).with("exitCode", result.exit_code)
}
