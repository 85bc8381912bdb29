//! Processes: starting, following, feeding and ending commands.

mod command;
mod execute;
mod failure;
mod launch;
mod log;
mod oom;
mod output;
mod pump;
mod raw;
mod report;
mod spill;
mod stat;
mod state;
mod streams;
mod supervisor;
mod table;
mod terminal;
mod tree;
pub(crate) mod usage;
pub(crate) mod users;

use std::rc::Rc;
use std::time::Duration;

use cofferdam_protocol::{FaultCode, Kill, Output, Reply, Start, Stdin, TerminalSize};

use crate::channel::{Channel, Inbound};
use crate::fd::Fd;
use crate::requests::{Failure, fault};
use crate::sandbox::Sandbox;
use pump::{Limits, Pump, Supervisor};
use report::Report;
use state::{Control, Process};
pub(crate) use table::Processes;
pub(crate) use tree::Written;

pub(crate) async fn serve_start(
    sandbox: &Rc<Sandbox>,
    client: u128,
    start: Start,
    channel: &Channel,
) -> Result<Reply, Failure> {
    let (stdin, output) = (start.stdin, start.output);
    // A task of its own: a link that breaks now must not leave an unknown command behind.
    let starting = sandbox.processes.starting(&start.exec_id);
    let begin = begin(Rc::clone(sandbox), client, start);
    let beginning = tokio::task::spawn_local(async move {
        let process = begin.await;
        drop(starting);
        process
    });
    let crashed = |error| fault(FaultCode::Internal, format!("starting the command failed: {error}"));
    let process = beginning.await.map_err(crashed)??;
    if output == Output::Hold {
        return Ok(Reply::Started { pid: process.pid.get() });
    }
    if stdin == Stdin::Channel {
        // Beside the output, because a command may end before it has read everything.
        let feeding = async {
            let _ = feed(&process, channel).await;
            std::future::pending().await
        };
        return tokio::select! {
            reply = serve_attach(&process, 0, output, channel) => reply,
            never = feeding => never,
        };
    }
    serve_attach(&process, 0, output, channel).await
}

/// Starts the command and waits for its supervisor's first report.
async fn begin(sandbox: Rc<Sandbox>, client: u128, start: Start) -> Result<Rc<Process>, Failure> {
    if let Ok(process) = sandbox.processes.get(&start.exec_id) {
        return Ok(process); // The same start, sent again after a link broke.
    }
    let command = command::prepare(&sandbox.setup(), &start)?;
    let started = tokio::time::Instant::now();
    let launched = launch::launch(&command, start.stdin != Stdin::Empty, start.terminal)?;
    sandbox.processes.supervise(launched.supervisor);
    let broken = |error: std::io::Error| fault(FaultCode::Internal, format!("a pipe of the command broke: {error}"));
    let reports = Fd::readable(launched.reports).map_err(broken)?;
    let pid = match reports.read(Report::SIZE, Report::decode_or_end).await.map_err(broken)? {
        Some(Report::Started { pid }) => pid,
        Some(Report::Failed { step, errno }) => {
            // It uses memory of ours: wait for its end.
            while reports.read(Report::SIZE, <[u8]>::len).await.is_ok_and(|count| count > 0) {}
            return Err(command.start_fault(step, errno).into());
        }
        _ => return Err(fault(FaultCode::Internal, "the command's supervisor was killed too early").into()),
    };
    let (process, control) = Process::new(
        start.exec_id,
        command.line,
        (launched.supervisor, started),
        (client, start.detached),
        start.keep_bytes as usize,
    );
    process.pid.set(pid as u32);
    *process.terminal.borrow_mut() = launched.terminal;
    if start.log_bytes > 0 {
        let owner = command.user.owner();
        *process.spill.borrow_mut() = Some(spill::Spill::open(&process.exec_id, start.log_bytes, owner)?);
    }
    // Also for the one who follows from the start on: it comes a moment later.
    process.holding.set(start.output != Output::Collect);
    if let Some(stdin) = launched.stdin {
        *process.stdin.borrow_mut() = Some(Rc::new(Fd::writable(stdin).map_err(broken)?));
    }
    let limits = Limits {
        timeout: (start.timeout_ms > 0).then(|| Duration::from_millis(start.timeout_ms)),
        grace: Duration::from_millis(start.grace_ms),
    };
    let supervisor = Supervisor { pid: launched.supervisor, reports, _memory: launched.memory };
    let outputs = (launched.stdout, launched.stderr);
    let pump = Pump::new(Rc::clone(&process), Rc::clone(&sandbox.processes), control, supervisor, outputs, limits);
    tokio::task::spawn_local(pump.map_err(broken)?.run());
    sandbox.processes.insert(&process);
    sandbox.workspace.wake();
    sandbox.memory.wake();
    Ok(process)
}

pub(crate) async fn serve_attach(
    process: &Rc<Process>,
    since_seq: u64,
    output: Output,
    channel: &Channel,
) -> Result<Reply, Failure> {
    match output {
        Output::Hold => return Ok(Reply::Started { pid: process.pid.get() }),
        Output::Follow => {
            let following = process.follow(since_seq);
            while let Some(chunk) = following.next().await {
                channel.send(chunk.stream.kind(), chunk.payload).await?;
            }
        }
        Output::Collect => {
            process.release();
            ended(process).await;
            let chunks = process.log.borrow_mut().since(since_seq, usize::MAX);
            for chunk in chunks {
                channel.send(chunk.stream.kind(), chunk.payload).await?;
            }
        }
    }
    match process.exit() {
        Some(exit) => Ok(Reply::Exited(exit, process.killed.borrow().clone())),
        None => Err(fault(FaultCode::Internal, "the process ended without an exit status").into()),
    }
}

async fn ended(process: &Process) {
    loop {
        let changed = process.changed.notified();
        if process.exit().is_some() {
            return;
        }
        changed.await;
    }
}

pub(crate) async fn serve_read(
    process: &Rc<Process>,
    since_seq: u64,
    max_chunks: u32,
    wait_ms: u64,
    channel: &Channel,
) -> Result<Reply, Failure> {
    let news = async {
        loop {
            let changed = process.changed.notified();
            if process.log.borrow().last_seq() > since_seq || process.exit().is_some() {
                return;
            }
            changed.await;
        }
    };
    let _ = tokio::time::timeout(Duration::from_millis(wait_ms), news).await;
    // Before the chunks: a process that ends while they are sent has more.
    let ended = process.exit().is_some();
    let (chunks, lost_bytes) = {
        let mut log = process.log.borrow_mut();
        let chunks = log.since(since_seq, max_chunks as usize);
        let lost = log.lost_since(since_seq, chunks.last().map_or(since_seq, |chunk| chunk.seq));
        (chunks, lost)
    };
    let read_to = chunks.last().map_or(since_seq, |chunk| chunk.seq);
    let done = ended && read_to >= process.log.borrow().last_seq();
    process.release();
    for chunk in chunks {
        channel.send(chunk.stream.kind(), chunk.payload).await?;
    }
    Ok(Reply::Read { done, lost_bytes })
}

pub(crate) async fn serve_stdin(process: &Rc<Process>, channel: &Channel) -> Result<Reply, Failure> {
    if feed(process, channel).await? {
        return Ok(Reply::Done);
    }
    let message = format!("the input of {} is closed: the process ended, or closed it", process.exec_id);
    Err(fault(FaultCode::InvalidArgument, message).into())
}

/// Writes what comes on the channel to the process until the end of input. False when the process reads no more; the
/// rest is still read, so the host never waits for credit.
async fn feed(process: &Rc<Process>, channel: &Channel) -> Result<bool, Failure> {
    let mut accepted = process.stdin.borrow().is_some();
    loop {
        match channel.recv().await? {
            Inbound::End => {
                process.stdin.take();
                return Ok(accepted);
            }
            Inbound::Data(bytes) => {
                let stdin = process.stdin.borrow().clone();
                accepted = match stdin {
                    Some(stdin) => tokio::select! {
                        outcome = stdin.write_all(&bytes) => outcome.is_ok(),
                        () = gone(process) => false,
                    },
                    None => false,
                };
                if !accepted {
                    process.stdin.take();
                }
            }
        }
    }
}

async fn gone(process: &Process) {
    loop {
        let changed = process.changed.notified();
        if process.is_dead() {
            return;
        }
        changed.await;
    }
}

/// The guest is about to kill a process for memory.
pub(crate) fn count_memory_kill() {
    oom::count();
}

/// Kills for memory so far.
pub(crate) fn oom_kills() -> u64 {
    oom::kills().unwrap_or(0)
}

pub(crate) fn resize(process: &Rc<Process>, size: TerminalSize) -> Result<Reply, Failure> {
    match &*process.terminal.borrow() {
        Some(terminal) => terminal::resize(terminal, size)?,
        None => {
            let message = format!("{} has no terminal", process.exec_id);
            return Err(fault(FaultCode::InvalidArgument, message).into());
        }
    }
    Ok(Reply::Done)
}

pub(crate) async fn serve_kill(process: &Rc<Process>, how: Kill) -> Result<Reply, Failure> {
    let (control, wait) = match how {
        Kill::Signal(signal) => (Control::Signal(signal), i32::from(signal) == libc::SIGKILL),
        Kill::Terminate => (Control::Terminate, true),
    };
    let _ = process.control.send(control);
    if wait {
        // The pump gives up on processes that the kernel cannot end; so does this.
        let _ = tokio::time::timeout(Duration::from_secs(30), gone(process)).await;
    }
    Ok(Reply::Done)
}
