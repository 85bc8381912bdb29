//! Dispatches a request to the code that serves it, and turns its outcome into the reply.

use std::rc::Rc;

use cofferdam_protocol::{Fault, FaultCode, Reply, Request, Stats};

use crate::channel::Channel;
use crate::notices::Listener;
use crate::outbox::Gone;
use crate::sandbox::Sandbox;
use crate::{files, files::Place, ports, process, stats};

/// Why a request failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The reply is a fault.
    Fault(Fault),
    /// The link is gone: no reply.
    Gone,
}

impl From<Gone> for Failure {
    fn from(_: Gone) -> Failure {
        Failure::Gone
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Failure {
        Failure::Fault(fault)
    }
}

pub(crate) fn fault(code: FaultCode, message: impl Into<String>) -> Fault {
    Fault { code, message: message.into() }
}

/// The link that a request came on.
pub(crate) struct Caller {
    pub(crate) client: u128,
    pub(crate) listener: Rc<Listener>,
}

pub(crate) async fn serve(
    sandbox: &Rc<Sandbox>,
    caller: &Caller,
    request: Request,
    channel: &Channel,
) -> Result<(), Gone> {
    let reply = match answer(sandbox, caller, request, channel).await {
        Ok(reply) => reply,
        Err(Failure::Fault(fault)) => Reply::Fault(fault),
        Err(Failure::Gone) => return Err(Gone),
    };
    channel.reply(&reply).await
}

async fn answer(sandbox: &Rc<Sandbox>, caller: &Caller, request: Request, channel: &Channel) -> Result<Reply, Failure> {
    let place = |path: &str| Place::new(&sandbox.setup(), path);
    let processes = &sandbox.processes;
    match request {
        Request::Ping => Ok(Reply::Done),
        Request::Start(start) => process::serve_start(sandbox, caller.client, start, channel).await,
        Request::Attach { exec_id, since_seq, output } => {
            process::serve_attach(&processes.get(&exec_id)?, since_seq, output, channel).await
        }
        Request::Read { exec_id, since_seq, max_chunks, wait_ms } => {
            process::serve_read(&processes.get(&exec_id)?, since_seq, max_chunks, wait_ms, channel).await
        }
        Request::Stdin { exec_id } => process::serve_stdin(&processes.get(&exec_id)?, channel).await,
        Request::Kill { exec_id, how } => process::serve_kill(&processes.get_started(&exec_id).await?, how).await,
        Request::Processes => Ok(Reply::Processes(processes.list())),
        Request::Write(write) => files::write(place(&write.path)?, write, &sandbox.workspace, channel).await,
        Request::ReadFile { path, offset, limit } => files::read(place(&path)?, offset, limit, channel).await,
        Request::List { path, recursive, max_entries } => {
            files::list(place(&path)?, recursive, max_entries, channel).await
        }
        Request::Stat { path } => place(&path)?.brief(|place| files::stat(&place)).await,
        Request::Mkdir { path, mode } => place(&path)?.brief(move |place| files::mkdir(&place, mode)).await,
        Request::Move { from, to } => {
            let to = place(&to)?;
            place(&from)?.blocking(move |from| files::rename(&from, &to)).await
        }
        Request::Copy { from, to } => {
            let to = place(&to)?;
            sandbox.workspace.admit(&to.path, 1).await?;
            place(&from)?.blocking(move |from| files::copy(&from, &to)).await
        }
        Request::Remove { path, recursive: false } => place(&path)?.brief(|place| files::remove(&place, false)).await,
        Request::Remove { path, recursive } => {
            place(&path)?.blocking(move |place| files::remove(&place, recursive)).await
        }
        Request::Claim(setup) => {
            let is_ours = sandbox.claim(setup);
            if is_ours {
                processes.forget_ended();
            }
            Ok(Reply::Claimed(is_ours))
        }
        Request::Status => Ok(Reply::Status(sandbox.status())),
        Request::Extend { idle_ms, max_ms } => {
            sandbox.lease.extend(idle_ms, max_ms);
            Ok(Reply::Done)
        }
        Request::SetBounds(bounds) => {
            sandbox.set_bounds(bounds);
            Ok(Reply::Done)
        }
        Request::Watch => {
            caller.listener.watch();
            Ok(Reply::Done)
        }
        Request::End => {
            sandbox.end();
            std::future::pending().await
        }
        Request::Resize { exec_id, size } => process::resize(&processes.get(&exec_id)?, size),
        Request::Connect { port } => ports::connect(port, channel).await,
        Request::Stats => {
            let workspace_bytes = sandbox.workspace.recent().await;
            Ok(Reply::Stats(Stats { workspace_bytes, ..stats::read() }))
        }
        Request::Pack { path, filter, only } => files::pack(place(&path)?, filter, only, channel).await,
        Request::Unpack { path } => files::unpack(place(&path)?, &sandbox.workspace, channel).await,
        Request::Survey { path, filter } => files::survey(place(&path)?, filter, channel).await,
        Request::Compare { path, entries } => {
            place(&path)?.blocking(move |place| files::compare(&place, &entries)).await
        }
        Request::Resolve { path } => place(&path)?.brief(|place| Ok(files::resolve(&place))).await,
        Request::WatchFiles { path, recursive } => files::watch(place(&path)?, recursive, channel).await,
        Request::Glob(glob) => files::glob(place(&glob.path)?, &place(".")?, glob, channel).await,
        Request::Grep(grep) => files::grep(place(&grep.path)?, &place(".")?, grep, channel).await,
        Request::Replace(replace) => files::replace(place(&replace.path)?, replace, &sandbox.workspace).await,
        Request::ReadLines { path, from, to, limit } => {
            files::read_lines(place(&path)?, from, to, limit, channel).await
        }
        Request::WriteMany(contents) => {
            let setup = sandbox.setup().clone();
            files::write_many(&setup, contents, &sandbox.workspace, channel).await
        }
    }
}
