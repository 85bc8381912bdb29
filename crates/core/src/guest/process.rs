//! A background process: read its output, write its input, end it, wait for it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cofferdam_protocol::{Kill, LOG_DIR, ProcessInfo, Reply, Request, TerminalSize, signal_number};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::channel::{Channel, unexpected};
use super::connection::Guest;
use super::exec::ExecResult;
use super::link::Event;
use super::output::{Chunk, OutputStream};
use crate::clock::sleep_or_forever;
use crate::{Error, ErrorCode, Result};

/// A process in a sandbox, running or ended.
pub struct Process {
    guest: Arc<Guest>,
    exec_id: String,
    pid: u32,
    stdin: Mutex<Input>,
}

enum Input {
    Untouched,
    Open(Channel),
    Ended,
}

/// Retained output of a process after some chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recent {
    /// Oldest first.
    pub chunks: Vec<Chunk>,
    /// The output is complete.
    pub done: bool,
    /// Bytes that were not retained.
    pub lost_bytes: u64,
}

impl Guest {
    /// All processes that hosts started and the guest still knows.
    pub async fn processes(&self) -> Result<Vec<ProcessInfo>> {
        self.call(&Request::Processes, |reply| match reply {
            Reply::Processes(list) => Some(list),
            _ => None,
        })
        .await
    }
}

impl Process {
    pub(super) fn new(guest: Arc<Guest>, exec_id: String, pid: u32) -> Process {
        Process { guest, exec_id, pid, stdin: Mutex::new(Input::Untouched) }
    }

    /// Its id, valid in any host process.
    pub fn exec_id(&self) -> &str {
        &self.exec_id
    }

    /// Its pid in the sandbox.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// All output after `since`, without loss: a slow reader slows the process.
    pub fn output(&self, since: u64) -> OutputStream {
        OutputStream::new(Arc::clone(&self.guest), self.exec_id.clone(), since)
    }

    /// Retained output after `since`; waits up to `wait` for a first chunk.
    pub async fn read(&self, since: u64, max_chunks: u32, wait: Duration) -> Result<Recent> {
        let request = Request::Read {
            exec_id: self.exec_id.clone(),
            since_seq: since,
            max_chunks,
            wait_ms: wait.as_millis() as u64,
        };
        let request = &request;
        self.guest
            .with_link(|link| async move {
                let mut channel = match link.request(request, 1)? {
                    Ok(channel) => channel,
                    Err(error) => return Ok(Err(error)),
                };
                let mut chunks = Vec::new();
                loop {
                    match channel.next().await? {
                        Event::Output(stream, seq, data) if chunks.len() < max_chunks as usize => {
                            chunks.push(Chunk { seq, stream, data });
                        }
                        Event::Reply(Reply::Read { done, lost_bytes }) => {
                            return Ok(Ok(Recent { chunks, done, lost_bytes }));
                        }
                        Event::Reply(Reply::Fault(fault)) => return Ok(Err(fault.into())),
                        _ => return Ok(Err(unexpected())),
                    }
                }
            })
            .await
    }

    /// Writes to its input, as fast as it reads.
    pub async fn write(&self, bytes: Bytes) -> Result<()> {
        let mut stdin = self.stdin.lock().await;
        let mut channel = match std::mem::replace(&mut *stdin, Input::Ended) {
            Input::Untouched => self.open_stdin().await?,
            Input::Open(channel) => channel,
            Input::Ended => return Err(ended()),
        };
        let sender = channel.sender();
        let outcome = tokio::select! {
            outcome = sender.send(bytes) => outcome,
            // It replies before the end of input only when it accepts no more.
            reply = channel.reply() => match reply {
                Ok(reply) => return reply.and(Err(unexpected())),
                Err(end) => Err(end),
            },
        };
        match outcome {
            Ok(()) => {
                *stdin = Input::Open(channel);
                Ok(())
            }
            Err(end) => Err(self.guest.explain(end).await),
        }
    }

    /// Ends its input.
    pub async fn end(&self) -> Result<()> {
        let mut stdin = self.stdin.lock().await;
        let mut channel = match std::mem::replace(&mut *stdin, Input::Ended) {
            Input::Untouched => self.open_stdin().await?,
            Input::Open(channel) => channel,
            Input::Ended => return Ok(()),
        };
        channel.sender().end();
        match channel.reply().await {
            // A process that has ended has closed its input, too.
            Ok(reply) => reply.map(drop).or_else(|error| match error.code() {
                Some(ErrorCode::InvalidArgument) => Ok(()),
                _ => Err(error),
            }),
            Err(end) => Err(self.guest.explain(end).await),
        }
    }

    async fn open_stdin(&self) -> Result<Channel> {
        let request = Request::Stdin { exec_id: self.exec_id.clone() };
        match self.guest.link().await?.request(&request, 1) {
            Ok(channel) => channel,
            Err(end) => Err(self.guest.explain(end).await),
        }
    }

    /// Ends the whole tree (TERM, the grace period, KILL), or sends it one signal.
    pub async fn kill(&self, signal: Option<&str>) -> Result<()> {
        let how = match signal {
            None => Kill::Terminate,
            Some(name) => Kill::Signal(signal_number(name).ok_or_else(|| {
                Error::invalid(format!("{name:?} is not a signal; give a name such as \"SIGTERM\" or \"SIGINT\""))
            })?),
        };
        self.guest.perform(&Request::Kill { exec_id: self.exec_id.clone(), how }).await
    }

    /// Resizes its terminal; programs on it get SIGWINCH.
    pub async fn resize(&self, size: TerminalSize) -> Result<()> {
        self.guest.perform(&Request::Resize { exec_id: self.exec_id.clone(), size }).await
    }

    /// The file with its whole output, if `log_bytes` was set.
    pub fn log_path(&self) -> String {
        format!("{LOG_DIR}/{}.log", self.exec_id)
    }

    /// Waits until a program listens on a port of the sandbox; fails if this process ends first.
    pub async fn wait_for_port(&self, port: u16, timeout: Option<Duration>, cancel: &CancellationToken) -> Result<()> {
        let listening = async {
            let mut pause = Duration::from_millis(5);
            while !self.guest.probe(port).await? {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_millis(100));
            }
            Ok(())
        };
        let ended = async {
            let result = self.guest.wait(&self.exec_id).await?;
            let errors = String::from_utf8_lossy(&result.stderr).into_owned();
            let last: String = errors.chars().rev().take(1000).collect::<Vec<_>>().into_iter().rev().collect();
            let message = format!(
                "{} ended with exit code {} before a program listened on port {port}: {}",
                self.exec_id,
                result.exit_code,
                last.trim()
            );
            Err(Error::new(ErrorCode::ProcessNotFound, message)
                .with("execId", self.exec_id.as_str())
                .with("exitCode", result.exit_code)
                .with("stderr", last))
        };
        tokio::select! {
            outcome = listening => outcome,
            outcome = ended => outcome,
            () = sleep_or_forever(timeout) => {
                let limit = timeout.unwrap_or_default().as_millis();
                Err(Error::new(ErrorCode::TimedOut, format!("no program listens on port {port} after {limit} ms")).with("port", port))
            }
            () = cancel.cancelled() => Err(Error::Aborted),
        }
    }

    /// Waits for its end. Giving up the wait does not end the process.
    pub async fn wait(&self, timeout: Option<Duration>, cancel: &CancellationToken) -> Result<ExecResult> {
        let waiting = self.guest.wait(&self.exec_id);
        let limited = async {
            match timeout {
                None => waiting.await,
                Some(limit) => tokio::time::timeout(limit, waiting).await.unwrap_or_else(|_| {
                    let message = format!("{} still runs after {} ms", self.exec_id, limit.as_millis());
                    Err(Error::new(ErrorCode::TimedOut, message).with("execId", self.exec_id.as_str()))
                }),
            }
        };
        tokio::select! {
            outcome = limited => outcome,
            () = cancel.cancelled() => Err(Error::Aborted),
        }
    }
}

fn ended() -> Error {
    Error::invalid("the input of this process was ended; nothing more can be written")
}
