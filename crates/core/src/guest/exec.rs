//! Runs a command: to its end with its output, or in the background.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cofferdam_protocol::{Exit, Kill, Killed, Output, Reply, Request, Stdin, signal_name};
use tokio_util::sync::CancellationToken;

use super::channel::{Channel, DataSender, unexpected};
use super::command::{MAX_RETAINED, SpawnRequest};
use super::connection::Guest;
use super::link::{Event, LinkEnd};
use super::output::StreamName;
use super::process::Process;
use super::retained::Retained;
use crate::clock::sleep_or_forever;
use crate::id::random_id;
use crate::{Error, ErrorCode, Result};

/// How much output the error of a command that was killed contains.
const DETAIL: usize = 4096;

/// The most killed processes that a result lists.
const MAX_KILLED: usize = 64;

/// How long after its time limit a command may go without an exit record before the guest counts as broken.
pub(super) const EXIT_TIMEOUT: Duration = Duration::from_secs(30);

/// A command to run to its end.
#[derive(Clone)]
pub struct ExecRequest {
    /// The command and its options.
    pub spawn: SpawnRequest,
    /// Its input (default: empty).
    pub stdin: Option<Bytes>,
    /// Ends the command early.
    pub cancel: CancellationToken,
}

impl ExecRequest {
    /// A shell command with all defaults.
    pub fn shell(script: impl Into<String>) -> ExecRequest {
        let spawn = SpawnRequest { timeout: Some(Duration::from_secs(300)), ..SpawnRequest::shell(script) };
        ExecRequest { spawn, stdin: None, cancel: CancellationToken::new() }
    }
}

/// The result of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecResult {
    /// Its id.
    pub exec_id: String,
    /// 128+n when a signal ended it.
    pub exit_code: u8,
    /// `SIGKILL`, …
    pub signal: Option<String>,
    /// Its standard output: head and tail.
    pub stdout: Vec<u8>,
    /// Its standard error: head and tail.
    pub stderr: Vec<u8>,
    /// Measured by the guest.
    pub duration: Duration,
    /// It reached its time limit.
    pub timed_out: bool,
    /// The kernel killed it for lack of memory.
    pub oom_killed: bool,
    /// Processes of its tree that had to be killed.
    pub killed: Vec<Killed>,
    /// Whether the middle of its output is missing.
    pub stdout_truncated: bool,
    /// The same for standard error.
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
            retained: [Retained::new(request.spawn.max_output), Retained::new(request.spawn.max_output)],
            seen: 0,
        };
        let stdin = request.stdin.clone();
        let exit = tokio::select! {
            exit = run.drive(&request.spawn, stdin) => exit?,
            () = request.cancel.cancelled() => {
                // Return only when it is gone: a caller that checks after an abort must not find it.
                self.abandon(&exec_id, request.spawn.kill_grace).await;
                return Err(Error::Aborted);
            }
            error = overdue(&request.spawn) => return Err(error),
        };
        let [stdout, stderr] = run.retained;
        result(exec_id, exit, stdout, stderr)
    }

    /// Ends a command that is no longer awaited; gives up if the guest does not answer.
    pub(super) async fn abandon(&self, exec_id: &str, grace: Duration) {
        let request = Request::Kill { exec_id: exec_id.to_owned(), how: Kill::Terminate };
        let _ = tokio::time::timeout(grace + EXIT_TIMEOUT, self.perform(&request)).await;
    }

    /// Starts a command in the background.
    pub async fn spawn(self: &Arc<Self>, request: SpawnRequest) -> Result<Process> {
        request.check()?;
        let exec_id = random_id("exec_");
        let stdin = if request.keep_stdin { Stdin::Open } else { Stdin::Empty };
        let start = Request::Start(request.start(&exec_id, stdin, Output::Hold));
        let pid = self.call(&start, started).await?;
        Ok(Process::new(Arc::clone(self), exec_id, pid))
    }

    /// A process of the sandbox, running or ended.
    pub async fn process(self: &Arc<Self>, exec_id: &str) -> Result<Process> {
        let request = Request::Attach { exec_id: exec_id.to_owned(), since_seq: 0, output: Output::Hold };
        let pid = self.call(&request, started).await?;
        Ok(Process::new(Arc::clone(self), exec_id.to_owned(), pid))
    }

    /// Waits for a process to end; returns its retained output.
    pub(super) async fn wait(self: &Arc<Self>, exec_id: &str) -> Result<ExecResult> {
        let mut run =
            Run { guest: self, exec_id, retained: [Retained::new(MAX_RETAINED), Retained::new(MAX_RETAINED)], seen: 0 };
        let exit = run.rejoin().await?;
        let [stdout, stderr] = run.retained;
        result(exec_id.to_owned(), exit, stdout, stderr)
    }
}

fn started(reply: Reply) -> Option<u32> {
    match reply {
        Reply::Started { pid } => Some(pid),
        _ => None,
    }
}

/// Resolves to an error when the guest is overdue with the exit record of a command that has a time limit.
pub(crate) async fn overdue(spawn: &SpawnRequest) -> Error {
    sleep_or_forever(spawn.timeout.map(|timeout| timeout + spawn.kill_grace + EXIT_TIMEOUT)).await;
    never_ended()
}

pub(super) fn never_ended() -> Error {
    LinkEnd::Protocol("no exit record for a command that must have ended".to_owned()).into()
}

/// How a command ended.
pub(super) struct Ended {
    pub(super) exit: Exit,
    pub(super) killed: Vec<Killed>,
}

impl Ended {
    /// The host has read all output: what the guest did not retain is not lost.
    pub(super) fn with_all_output(mut self) -> Ended {
        (self.exit.stdout, self.exit.stderr) = Default::default();
        self
    }
}

/// One command on its way to its end, over as many links as it takes.
struct Run<'a> {
    guest: &'a Arc<Guest>,
    exec_id: &'a str,
    retained: [Retained; 2],
    seen: u64,
}

impl Run<'_> {
    async fn drive(&mut self, spawn: &SpawnRequest, stdin: Option<Bytes>) -> Result<Ended> {
        let input = if stdin.is_some() { Stdin::Channel } else { Stdin::Empty };
        let start = Request::Start(spawn.start(self.exec_id, input, Output::Collect));
        let link = self.guest.link().await.map_err(Error::unsent)?;
        let end = match link.request(&start, 1) {
            Ok(channel) => match self.take(channel?, stdin.clone()).await {
                Ok(outcome) => return outcome,
                Err(end) => end,
            },
            Err(end) => end,
        };
        if stdin.is_some() || !matches!(end, LinkEnd::Broken(_)) {
            // How much input it has read is unknown; or the link cannot be reopened.
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

    /// Attaches again until the command ends. The next link reports a lost sandbox; the caller sets the time limit.
    async fn rejoin(&mut self) -> Result<Ended> {
        let mut pause = Duration::from_millis(10);
        loop {
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
            if !matches!(end, LinkEnd::Broken(_)) {
                return Err(self.guest.explain(end).await);
            }
            // Avoid a busy loop when links keep breaking.
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }

    async fn take(&mut self, mut channel: Channel, stdin: Option<Bytes>) -> Result<Result<Ended>, LinkEnd> {
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
                    self.retained[stream as usize].push(&data);
                }
                Event::Reply(Reply::Exited(exit, killed)) => return Ok(Ok(Ended { exit, killed })),
                Event::Reply(Reply::Fault(fault)) => return Ok(Err(fault.into())),
                Event::Output(..) | Event::Data(_) | Event::End | Event::Reply(_) => return Ok(Err(unexpected())),
            }
        }
    }
}

pub(super) async fn feed(sender: DataSender, stdin: Option<Bytes>) -> Result<(), LinkEnd> {
    if let Some(bytes) = stdin {
        sender.send(bytes).await?;
        sender.end();
    }
    Ok(())
}

pub(super) fn result(
    exec_id: String,
    Ended { exit, mut killed }: Ended,
    stdout: Retained,
    stderr: Retained,
) -> Result<ExecResult> {
    let (stdout, stdout_truncated) = stdout.finish(exit.stdout);
    let (stderr, stderr_truncated) = stderr.finish(exit.stderr);
    // A hostile guest may send megabytes.
    killed.truncate(MAX_KILLED);
    killed.iter_mut().for_each(|killed| killed.command = killed.command.chars().take(200).collect());
    if exit.over_limit {
        let message = "the command was ended because it wrote while the workspace was beyond its limit; remove something, \
                       or raise limits.workspaceMb";
        let text = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(DETAIL)]).into_owned();
        return Err(Error::new(ErrorCode::LimitExceeded, message)
            .with("limit", "workspaceMb")
            .with("execId", exec_id)
            .with("stdout", text(&stdout))
            .with("stderr", text(&stderr)));
    }
    Ok(ExecResult {
        exec_id,
        exit_code: exit.code,
        signal: exit.signal.map(signal_name),
        stdout,
        stderr,
        duration: Duration::from_micros(exit.duration_us),
        timed_out: exit.timed_out,
        oom_killed: exit.oom_killed,
        killed,
        stdout_truncated,
        stderr_truncated,
    })
}

const _: () = assert!(StreamName::Stdout as usize == 0 && StreamName::Stderr as usize == 1);
