//! A command from a caller, validated before a guest gets it.

use std::time::Duration;

use cofferdam_protocol::{Command, Output, Start, Stdin, TerminalSize};

use crate::{Error, Result};

/// Linux's own limit on one argument, with its closing NUL.
const MAX_ARGUMENT: usize = 128 * 1024 - 1;

/// The most output retained per stream: it takes memory in the sandbox and here.
pub(super) const MAX_RETAINED: usize = 64 * 1024 * 1024;

/// A command to run, and its options.
#[derive(Clone)]
pub struct SpawnRequest {
    /// A shell script, or a program with its arguments.
    pub command: Command,
    /// Working directory (default: the workdir).
    pub cwd: Option<String>,
    /// Added to the sandbox's environment; wins over it.
    pub env: Vec<(String, String)>,
    /// Default: the command user of the sandbox.
    pub user: Option<String>,
    /// Time limit.
    pub timeout: Option<Duration>,
    /// Time between TERM and KILL.
    pub kill_grace: Duration,
    /// Bytes retained of each stream.
    pub max_output: usize,
    /// Keep it running when this program ends.
    pub detached: bool,
    /// Whether stdin stays open until it is closed; otherwise it is empty. For spawned processes only.
    pub keep_stdin: bool,
    /// On a terminal of this size.
    pub terminal: Option<TerminalSize>,
    /// Also writes up to this many bytes of output to a file in the sandbox.
    pub log_bytes: Option<u64>,
}

impl SpawnRequest {
    /// A shell command with all defaults and no time limit.
    pub fn shell(script: impl Into<String>) -> SpawnRequest {
        SpawnRequest {
            command: Command::Shell(script.into()),
            cwd: None,
            env: Vec::new(),
            user: None,
            timeout: None,
            kill_grace: Duration::from_secs(2),
            max_output: 1024 * 1024,
            detached: false,
            keep_stdin: true,
            terminal: None,
            log_bytes: None,
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        let words: Vec<&str> = match &self.command {
            Command::Shell(script) => vec![script],
            Command::Program(words) => words.iter().map(String::as_str).collect(),
            Command::UserShell => vec!["shell"],
        };
        if words.first().is_none_or(|first| first.is_empty()) {
            return Err(Error::invalid("the command is empty"));
        }
        for (what, text) in
            words.iter().map(|word| ("the command", *word)).chain(self.cwd.as_deref().map(|cwd| ("cwd", cwd)))
        {
            if text.contains('\0') {
                return Err(Error::invalid(format!("{what} holds a NUL byte")));
            }
            if text.len() > MAX_ARGUMENT {
                return Err(Error::invalid(format!(
                    "{what} has an argument of {} bytes, more than the {MAX_ARGUMENT} that Linux allows; write it to a \
                     file, or pass it as stdin",
                    text.len()
                )));
            }
        }
        if self.max_output > MAX_RETAINED {
            let message = format!(
                "maxOutputBytes may be at most {MAX_RETAINED}, not {}; read more with for await",
                self.max_output
            );
            return Err(Error::invalid(message));
        }
        if self.cwd.as_deref() == Some("") {
            return Err(Error::invalid("cwd is empty; leave it out to run in the workdir"));
        }
        check_env(&self.env)
    }

    pub(super) fn start(&self, exec_id: &str, stdin: Stdin, output: Output) -> Start {
        Start {
            exec_id: exec_id.to_owned(),
            command: self.command.clone(),
            cwd: self.cwd.clone(),
            env: self.env.clone(),
            user: self.user.clone(),
            stdin,
            output,
            keep_bytes: self.max_output as u64,
            timeout_ms: self.timeout.map_or(0, |timeout| (timeout.as_millis() as u64).max(1)),
            grace_ms: self.kill_grace.as_millis() as u64,
            detached: self.detached,
            terminal: self.terminal,
            log_bytes: self.log_bytes.unwrap_or(0),
        }
    }
}

/// Rejects variables that the kernel would silently misread.
pub(crate) fn check_env<'a>(env: impl IntoIterator<Item = &'a (String, String)>) -> Result<()> {
    for (key, value) in env {
        if key.is_empty() || key.contains(['=', '\0']) {
            return Err(Error::invalid(format!(
                "{key:?} is not a variable's name: it may not be empty, nor hold = or NUL"
            )));
        }
        if value.contains('\0') {
            return Err(Error::invalid(format!("the value of the variable {key} holds a NUL byte")));
        }
        if key.len() + value.len() + 1 > MAX_ARGUMENT {
            return Err(Error::invalid(format!(
                "the variable {key} is longer than Linux allows ({MAX_ARGUMENT} bytes)"
            )));
        }
    }
    Ok(())
}
