//! Running a command: to its end with what it printed, or in the background.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cofferdam_protocol::{Command, Exit, Kill, Output, Reply, Request, Start, Stdin, signal_name};
use tokio_util::sync::CancellationToken;

use super::channel::{Channel, DataSender, unexpected};
use super::connection::Guest;
use super::kept::Kept;
use super::link::{Event, LinkEnd};
use super::output::StreamName;
use super::process::Process;
use crate::id::random_id;
use crate::{Error, ErrorCode, Result};

/// Linux's own limit on one argument, with its closing NUL.
const MAX_ARGUMENT: usize = 128 * 1024 - 1;

/// The most that may be kept of one stream: it is memory in the sandbox and here.
const MAX_KEPT: usize = 64 * 1024 * 1024;

/// A guest that has not said by then how a command with a time limit ended never will.
const SILENCE: Duration = Duration::from_secs(30);

/// What to run, and how.
#[derive(Clone)]
pub struct SpawnRequest {
    /// Through the shell, or as it is.
    pub command: Command,
    /// The workdir when absent.
    pub cwd: Option<String>,
    /// Over the sandbox's environment.
    pub env: Vec<(String, String)>,
    /// The sandbox's user when absent.
    pub user: Option<String>,
    /// When to end it.
    pub timeout: Option<Duration>,
    /// From TERM to KILL.
    pub kill_grace: Duration,
    /// How much of each stream is kept.
    pub max_output: usize,
    /// Keep it when this program goes away.
    pub detached: bool,
    /// Whether its input stays open until it is ended, or is at its end at once. For spawned processes only.
    pub keep_stdin: bool,
}

impl SpawnRequest {
    /// A command for the shell, with all defaults and no time limit.
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
        }
    }

    fn check(&self) -> Result<()> {
        let words: Vec<&str> = match &self.command {
            Command::Shell(script) => vec![script],
            Command::Program(words) => words.iter().map(String::as_str).collect(),
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
        if self.max_output > MAX_KEPT {
            let message =
                format!("maxOutputBytes may be at most {MAX_KEPT}, not {}; read more with for await", self.max_output);
            return Err(Error::invalid(message));
        }
        if self.cwd.as_deref() == Some("") {
            return Err(Error::invalid("cwd is empty; leave it out to run in the workdir"));
        }
        check_env(&self.env)
    }

    fn start(&self, exec_id: &str, stdin: Stdin, output: Output) -> Start {
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
        }
    }
}

/// Refuses what the kernel would silently take for something else.
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

/// A command to run to its end.
#[derive(Clone)]
pub struct ExecRequest {
    /// What and how.
    pub spawn: SpawnRequest,
    /// Its input; at its end at once when absent.
    pub stdin: Option<Bytes>,
    /// Ends the command early.
    pub cancel: CancellationToken,
}

impl ExecRequest {
    /// A command for the shell with all defaults.
    pub fn shell(script: impl Into<String>) -> ExecRequest {
        let spawn = SpawnRequest { timeout: Some(Duration::from_secs(300)), ..SpawnRequest::shell(script) };
        ExecRequest { spawn, stdin: None, cancel: CancellationToken::new() }
    }
}

/// How a command went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecResult {
    /// Its number.
    pub exec_id: String,
    /// 128+n when a signal ended it.
    pub exit_code: u8,
    /// `SIGKILL`, …
    pub signal: Option<String>,
    /// What it printed, head and tail.
    pub stdout: Vec<u8>,
    /// The same for its errors.
    pub stderr: Vec<u8>,
    /// As the guest measured it.
    pub duration: Duration,
    /// Its time was up.
    pub timed_out: bool,
    /// The kernel killed it for memory.
    pub oom_killed: bool,
    /// Whether the middle of its output is missing.
    pub stdout_truncated: bool,
    /// The same for its errors.
    pub stderr_truncated: bool,
}

impl Guest {
    /// Runs a command to its end. A command that fails is a result, not an error.
    pub async fn exec(self: &Arc<Self>, request: ExecRequest) -> Result<ExecResult> {
        request.spawn.check()?;
        let exec_id = random_id("exec_");
        let mut run = Run {
            guest: self,
            exec_id: &exec_id,
            kept: [Kept::new(request.spawn.max_output), Kept::new(request.spawn.max_output)],
            seen: 0,
        };
        let deadline = request.spawn.timeout.map(|timeout| timeout + request.spawn.kill_grace + SILENCE);
        let stdin = request.stdin.clone();
        let exit = tokio::select! {
            exit = run.drive(&request.spawn, stdin) => exit?,
            () = request.cancel.cancelled() => {
                // Not before it is really gone: who aborts and looks again must find nothing.
                self.abandon(&exec_id, request.spawn.kill_grace).await;
                return Err(Error::Aborted);
            }
            () = sleep_or_never(deadline) => {
                let what = "it never said how a command ended that must be over";
                return Err(LinkEnd::Protocol(what.to_owned()).into());
            }
        };
        let [stdout, stderr] = run.kept;
        Ok(result(exec_id, exit, stdout, stderr))
    }

    /// Ends a command that nobody waits for any more; gives up on a guest that does not answer.
    async fn abandon(&self, exec_id: &str, grace: Duration) {
        let request = Request::Kill { exec_id: exec_id.to_owned(), how: Kill::Terminate };
        let _ = tokio::time::timeout(grace + SILENCE, self.perform(&request)).await;
    }

    /// Starts a command that goes on by itself.
    pub async fn spawn(self: &Arc<Self>, request: SpawnRequest) -> Result<Process> {
        request.check()?;
        let exec_id = random_id("exec_");
        let stdin = if request.keep_stdin { Stdin::Open } else { Stdin::Empty };
        let start = Request::Start(request.start(&exec_id, stdin, Output::Hold));
        let pid = self.call(&start, started).await?;
        Ok(Process::new(Arc::clone(self), exec_id, pid))
    }

    /// A process that is or was in the sandbox.
    pub async fn process(self: &Arc<Self>, exec_id: &str) -> Result<Process> {
        let request = Request::Attach { exec_id: exec_id.to_owned(), since_seq: 0, output: Output::Hold };
        let pid = self.call(&request, started).await?;
        Ok(Process::new(Arc::clone(self), exec_id.to_owned(), pid))
    }

    /// Waits for a process to end, and gives what was kept of its output.
    pub(super) async fn wait(self: &Arc<Self>, exec_id: &str) -> Result<ExecResult> {
        let mut run = Run { guest: self, exec_id, kept: [Kept::new(MAX_KEPT), Kept::new(MAX_KEPT)], seen: 0 };
        let exit = run.rejoin().await?;
        let [stdout, stderr] = run.kept;
        Ok(result(exec_id.to_owned(), exit, stdout, stderr))
    }
}

fn started(reply: Reply) -> Option<u32> {
    match reply {
        Reply::Started { pid } => Some(pid),
        _ => None,
    }
}

async fn sleep_or_never(after: Option<Duration>) {
    match after {
        Some(after) => tokio::time::sleep(after).await,
        None => std::future::pending().await,
    }
}

/// One command on its way to its end, over as many links as it takes.
struct Run<'a> {
    guest: &'a Arc<Guest>,
    exec_id: &'a str,
    kept: [Kept; 2],
    seen: u64,
}

impl Run<'_> {
    async fn drive(&mut self, spawn: &SpawnRequest, stdin: Option<Bytes>) -> Result<Exit> {
        let input = if stdin.is_some() { Stdin::Channel } else { Stdin::Empty };
        let start = Request::Start(spawn.start(self.exec_id, input, Output::Collect));
        let link = self.guest.link().await?;
        let end = match link.request(&start, 1) {
            Ok(channel) => match self.take(channel?, stdin.clone()).await {
                Ok(outcome) => return outcome,
                Err(end) => end,
            },
            Err(end) => end,
        };
        if stdin.is_some() || matches!(end, LinkEnd::Protocol(_)) {
            // Nobody knows how much of the input it has read.
            return Err(self.guest.explain(end).await);
        }
        match self.rejoin().await {
            // The start itself was lost.
            Err(error) if error.code() == Some(ErrorCode::ProcessNotFound) && self.seen == 0 => {
                let link = self.guest.link().await?;
                match link.request(&start, 1) {
                    Ok(channel) => match self.take(channel?, None).await {
                        Ok(outcome) => outcome,
                        Err(end) => Err(self.guest.explain(end).await),
                    },
                    Err(end) => Err(self.guest.explain(end).await),
                }
            }
            other => other,
        }
    }

    async fn rejoin(&mut self) -> Result<Exit> {
        let mut broken = None;
        for _ in 0..3 {
            let request =
                Request::Attach { exec_id: self.exec_id.to_owned(), since_seq: self.seen, output: Output::Collect };
            let link = self.guest.link().await?;
            let end = match link.request(&request, 1) {
                Ok(channel) => match self.take(channel?, None).await {
                    Ok(outcome) => return outcome,
                    Err(end) => end,
                },
                Err(end) => end,
            };
            if matches!(end, LinkEnd::Protocol(_)) {
                return Err(end.into());
            }
            broken = Some(end);
        }
        let end = broken.unwrap_or_else(|| LinkEnd::Broken("it could not be made again".to_owned()));
        Err(self.guest.explain(end).await)
    }

    async fn take(&mut self, mut channel: Channel, stdin: Option<Bytes>) -> Result<Result<Exit>, LinkEnd> {
        let feeding = feed(channel.sender(), stdin);
        tokio::pin!(feeding);
        let mut fed = false;
        loop {
            let event = tokio::select! {
                biased;
                event = channel.next() => event?,
                outcome = &mut feeding, if !fed => {
                    outcome?;
                    fed = true;
                    continue;
                }
            };
            match event {
                Event::Output(stream, seq, data) if seq > self.seen => {
                    self.seen = seq;
                    self.kept[stream as usize].push(&data);
                }
                Event::Reply(Reply::Exited(exit)) => return Ok(Ok(exit)),
                Event::Reply(Reply::Fault(fault)) => return Ok(Err(fault.into())),
                Event::Output(..) | Event::Data(_) | Event::Reply(_) => return Ok(Err(unexpected())),
            }
        }
    }
}

async fn feed(sender: DataSender, stdin: Option<Bytes>) -> Result<(), LinkEnd> {
    if let Some(bytes) = stdin {
        sender.send(bytes).await?;
        sender.end();
    }
    Ok(())
}

fn result(exec_id: String, exit: Exit, stdout: Kept, stderr: Kept) -> ExecResult {
    let (stdout, stdout_truncated) = stdout.finish(exit.stdout);
    let (stderr, stderr_truncated) = stderr.finish(exit.stderr);
    ExecResult {
        exec_id,
        exit_code: exit.code,
        signal: exit.signal.map(signal_name),
        stdout,
        stderr,
        duration: Duration::from_micros(exit.duration_us),
        timed_out: exit.timed_out,
        oom_killed: exit.oom_killed,
        stdout_truncated,
        stderr_truncated,
    }
}

const _: () = assert!(StreamName::Stdout as usize == 0 && StreamName::Stderr as usize == 1);
