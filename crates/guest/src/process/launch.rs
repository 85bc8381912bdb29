//! Starts a command under its own supervisor, and returns PID 1's ends of its streams.

use std::ffi::CString;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;

use cofferdam_protocol::{Fault, TerminalSize};

use super::command::Prepared;
use super::report::Step;
use super::streams::{Streams, pipe};
use super::supervisor::{Memory, Plan};

/// A command that was started, or is about to be.
#[derive(Debug)]
pub(crate) struct Launched {
    pub(crate) supervisor: i32,
    pub(crate) stdin: Option<OwnedFd>,
    pub(crate) stdout: OwnedFd,
    /// A terminal has one output.
    pub(crate) stderr: Option<OwnedFd>,
    pub(crate) terminal: Option<OwnedFd>,
    /// [`super::report::Report`]s, then end of file when the tree is gone.
    pub(crate) reports: OwnedFd,
    /// The supervisor uses it until its reports end.
    pub(crate) memory: Box<Memory>,
}

/// Starts the supervisor. Whether the command itself could be started is its first report; until then `command` must
/// stay where it is.
pub(crate) fn launch(command: &Prepared, with_stdin: bool, size: Option<TerminalSize>) -> Result<Launched, Fault> {
    let (reports, reports_end) = pipe()?;
    let Streams { theirs: [stdin_end, stdout_end, stderr_end], stdin, stdout, stderr, terminal } = match size {
        None => Streams::pipes(with_stdin)?,
        Some(size) => Streams::terminal(size, command.user.owner())?,
    };
    let pointers = |strings: &[CString]| -> Vec<*const libc::c_char> {
        strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect()
    };
    let mut memory = Memory::new(Plan {
        program: command.program.as_ptr(),
        arguments: pointers(&command.arguments),
        environment: pointers(&command.environment),
        cwd: command.cwd.as_ptr(),
        uid: command.user.uid,
        gid: command.user.gid,
        groups: command.user.groups.clone(),
        has_terminal: terminal.is_some(),
        open_files: command.open_files.map(|count| [count; 2]),
        pids: command.pids.map(|count| [count; 2]),
        streams: [stdin_end.as_raw_fd(), stdout_end.as_raw_fd(), stderr_end.as_raw_fd()],
        reports: reports_end.as_raw_fd(),
        command_stack: ptr::null_mut(),
        failure: None,
    });
    match memory.start() {
        Ok(supervisor) => Ok(Launched { supervisor, stdin, stdout, stderr, terminal, reports, memory }),
        Err(error) => Err(command.start_fault(Step::Fork, error.raw_os_error().unwrap_or(libc::EAGAIN))),
    }
}
