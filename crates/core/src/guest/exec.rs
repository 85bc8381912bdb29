//! Running a command: to its end with what it printed, or in the background.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cofferdam_protocol::{Exit, Kill, Killed, Output, Reply, Request, Stdin, signal_name};
use tokio_util::sync::CancellationToken;

use super::channel::{Channel, DataSender, unexpected};
use super::command::{MAX_KEPT, SpawnRequest};
use super::connection::Guest;
use super::kept::Kept;
use super::link::{Event, LinkEnd};
use super::output::StreamName;
use super::process::Process;
use crate::id::random_id;
use crate::{Error, ErrorCode, Result};

/// How much of its output the error of a command that was ended tells.
const DETAIL: usize = 4096;

/// Of a tree that was killed, so many are told.
const MAX_KILLED: usize = 64;

/// A guest that has not said by then how a command with a time limit ended never will.
const SILENCE: Duration = Duration::from_secs(30);

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
    /// What of its tree did not end by itself, where it was ended.
    pub killed: Vec<Killed>,
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
        let stdin = request.stdin.clone();
        let exit = tokio::select! {
            exit = run.drive(&request.spawn, stdin) => exit?,
            () = request.cancel.cancelled() => {
                // Not before it is really gone: who aborts and looks again must find nothing.
                self.abandon(&exec_id, request.spawn.kill_grace).await;
                return Err(Error::Aborted);
            }
            error = overdue(&request.spawn) => return Err(error),
        };
        let [stdout, stderr] = run.kept;
        result(exec_id, exit, stdout, stderr)
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
        result(exec_id.to_owned(), exit, stdout, stderr)
    }
}

fn started(reply: Reply) -> Option<u32> {
    match reply {
        Reply::Started { pid } => Some(pid),
        _ => None,
    }
}

/// What to say of a guest when it has not told how a command with a time limit ended, and never will. Pending until then.
pub(crate) async fn overdue(spawn: &SpawnRequest) -> Error {
    match spawn.timeout {
        Some(timeout) => tokio::time::sleep(timeout + spawn.kill_grace + SILENCE).await,
        None => std::future::pending().await,
    }
    LinkEnd::Protocol("it never said how a command ended that must be over".to_owned()).into()
}

/// How a command ended.
struct Ended {
    exit: Exit,
    killed: Vec<Killed>,
}

/// One command on its way to its end, over as many links as it takes.
struct Run<'a> {
    guest: &'a Arc<Guest>,
    exec_id: &'a str,
    kept: [Kept; 2],
    seen: u64,
}

impl Run<'_> {
    async fn drive(&mut self, spawn: &SpawnRequest, stdin: Option<Bytes>) -> Result<Ended> {
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
        if stdin.is_some() || !matches!(end, LinkEnd::Broken(_)) {
            // Nobody knows how much of the input it has read; or there is nobody to come back to.
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

    /// Over as many links as it takes: that a sandbox is gone, the next link says; that it takes too long, the caller.
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
            // A link that is cut again and again must not keep us busy.
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
                    self.kept[stream as usize].push(&data);
                }
                Event::Reply(Reply::Exited(exit, killed)) => return Ok(Ok(Ended { exit, killed })),
                Event::Reply(Reply::Fault(fault)) => return Ok(Err(fault.into())),
                Event::Output(..) | Event::Data(_) | Event::End | Event::Reply(_) => return Ok(Err(unexpected())),
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

fn result(exec_id: String, Ended { exit, mut killed }: Ended, stdout: Kept, stderr: Kept) -> Result<ExecResult> {
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
