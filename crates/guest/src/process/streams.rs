//! A command's three streams, as pipes or as a terminal: its ends, and ours.

use std::os::fd::OwnedFd;

use cofferdam_protocol::{Fault, FaultCode, TerminalSize};
use rustix::pipe::{PipeFlags, pipe_with};

use super::terminal;
use super::users::Owner;
use crate::requests::fault;

pub(super) fn pipe() -> Result<(OwnedFd, OwnedFd), Fault> {
    pipe_with(PipeFlags::CLOEXEC)
        .map_err(|error| fault(FaultCode::LimitExceeded, format!("cannot make a pipe for the command: {error}")))
}

/// A command's streams: its ends, and ours.
pub(super) struct Streams {
    pub(super) theirs: [OwnedFd; 3],
    pub(super) stdin: Option<OwnedFd>,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: Option<OwnedFd>,
    pub(super) terminal: Option<OwnedFd>,
}

impl Streams {
    pub(super) fn pipes(with_stdin: bool) -> Result<Streams, Fault> {
        let (stdout, stdout_end) = pipe()?;
        let (stderr, stderr_end) = pipe()?;
        let (stdin_end, stdin) = match with_stdin {
            true => pipe().map(|(read, write)| (read, Some(write)))?,
            false => {
                let null = std::fs::File::open("/dev/null").map_err(|error| {
                    fault(FaultCode::Internal, format!("cannot open /dev/null in the sandbox: {error}"))
                })?;
                (null.into(), None)
            }
        };
        let theirs = [stdin_end, stdout_end, stderr_end];
        Ok(Streams { theirs, stdin, stdout, stderr: Some(stderr), terminal: None })
    }

    pub(super) fn terminal(size: TerminalSize, owner: Owner) -> Result<Streams, Fault> {
        let (ours, theirs) = terminal::pair(size, owner)?;
        let again = |fd: &OwnedFd| {
            fd.try_clone()
                .map_err(|error| fault(FaultCode::LimitExceeded, format!("cannot copy a descriptor: {error}")))
        };
        Ok(Streams {
            theirs: [again(&theirs)?, again(&theirs)?, theirs],
            stdin: Some(again(&ours)?),
            stdout: again(&ours)?,
            stderr: None,
            terminal: Some(ours),
        })
    }
}
