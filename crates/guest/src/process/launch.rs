//! Starts a command under its own supervisor.
//!
//! PID 1 starts the supervisor; the supervisor becomes a child subreaper, starts the command, and reports on a pipe. It
//! lives until nothing below it is left: the end of that pipe *is* the end of the command's tree.
//!
//! The supervisor is a process that shares PID 1's memory, on a stack of its own: to copy even a small address space,
//! and to fault it in again on both sides, would be a good part of what a short command costs. So until it is over it
//! must touch nothing but its [`Plan`] and its stack, and make no call that knows of threads: see [`super::raw`].

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr;

use cofferdam_protocol::{Fault, FaultCode, TerminalSize};

use super::command::Prepared;
use super::raw;
use super::streams::{Streams, pipe};
use crate::requests::fault;

/// More than PID 1's own, so that the kernel kills commands for memory and not the sandbox.
const OOM_SCORE: &[u8] = b"500";

/// Room for the few calls of a supervisor, and of a command before it executes.
const SUPERVISOR_STACK: usize = 16 * 1024;
const COMMAND_STACK: usize = 16 * 1024;

/// A command that was started, or is about to be.
#[derive(Debug)]
pub(crate) struct Launched {
    pub(crate) supervisor: i32,
    pub(crate) stdin: Option<OwnedFd>,
    pub(crate) stdout: OwnedFd,
    /// A terminal has one output.
    pub(crate) stderr: Option<OwnedFd>,
    pub(crate) terminal: Option<OwnedFd>,
    /// [`Report`]s, then end of file when the tree is gone.
    pub(crate) reports: OwnedFd,
    /// Of the supervisor; to be kept as long.
    pub(crate) memory: Box<Memory>,
}

/// What a supervisor says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Report {
    Started {
        pid: i32,
    },
    Failed {
        step: Step,
        errno: i32,
    },
    /// As `waitpid` gives it.
    Ended {
        status: i32,
    },
}

/// Where a start may fail after the fork.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(i32)]
pub(crate) enum Step {
    Fork = 1,
    User = 2,
    Folder = 3,
    Exec = 4,
}

impl Report {
    pub(crate) const SIZE: usize = 12;

    fn encode(self) -> [u8; Self::SIZE] {
        let words = match self {
            Report::Started { pid } => [0, pid, 0],
            Report::Failed { step, errno } => [1, step as i32, errno],
            Report::Ended { status } => [2, status, 0],
        };
        let mut bytes = [0; Self::SIZE];
        for (index, word) in words.into_iter().enumerate() {
            bytes[index * 4..index * 4 + 4].copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Report> {
        let word = |index: usize| bytes[index * 4..].first_chunk().map(|word| i32::from_le_bytes(*word));
        Some(match (word(0)?, word(1)?, word(2)?) {
            (0, pid, _) => Report::Started { pid },
            (1, step, errno) => {
                let step =
                    [Step::Fork, Step::User, Step::Folder, Step::Exec].into_iter().find(|s| *s as i32 == step)?;
                Report::Failed { step, errno }
            }
            (2, status, _) => Report::Ended { status },
            _ => return None,
        })
    }
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
    let mut memory = Box::new(Memory {
        plan: Plan {
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
        },
        stacks: vec![0; SUPERVISOR_STACK + COMMAND_STACK],
    });
    let plan = ptr::from_mut(&mut memory.plan);
    let [supervisor_stack, command_stack] = memory.stack_tops();
    memory.plan.command_stack = command_stack;
    // SAFETY: `supervise` keeps to the plan, its stack and raw system calls, and never returns; both stay until the
    // end of its reports. No signal reaches it before it has put PID 1's handlers away, which would run them on PID 1's
    // own memory.
    let supervisor = unsafe {
        let blocked = block_signals();
        let pid = libc::clone(supervise, supervisor_stack, libc::CLONE_VM | libc::SIGCHLD, plan.cast());
        let error = io::Error::last_os_error();
        libc::sigprocmask(libc::SIG_SETMASK, &blocked, ptr::null_mut());
        if pid < 0 { Err(error) } else { Ok(pid) }
    };
    match supervisor {
        Ok(supervisor) => Ok(Launched { supervisor, stdin, stdout, stderr, terminal, reports, memory }),
        Err(error) => {
            let message =
                format!("no further process may be started in this sandbox: {error}; raise limits.pids, or end some");
            Err(fault(FaultCode::LimitExceeded, message))
        }
    }
}

unsafe fn block_signals() -> libc::sigset_t {
    // SAFETY: plain data, and this thread's own mask.
    unsafe {
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &all, &mut before);
        before
    }
}

/// What a supervisor and its command use of PID 1's memory: to be kept until the end of its reports.
#[derive(Debug)]
pub(crate) struct Memory {
    plan: Plan,
    stacks: Vec<u8>,
}

// SAFETY: the pointers are to the command's own strings; nobody but the supervisor follows them.
unsafe impl Send for Memory {}

impl Memory {
    /// Stacks grow down, and their tops are aligned as the ABI asks.
    fn stack_tops(&mut self) -> [*mut libc::c_void; 2] {
        let base = self.stacks.as_mut_ptr();
        [SUPERVISOR_STACK, SUPERVISOR_STACK + COMMAND_STACK].map(|end| {
            let top = base.wrapping_add(end);
            top.wrapping_sub(top as usize % 16).cast()
        })
    }
}

#[derive(Debug)]
struct Plan {
    program: *const libc::c_char,
    arguments: Vec<*const libc::c_char>,
    environment: Vec<*const libc::c_char>,
    cwd: *const libc::c_char,
    uid: u32,
    gid: u32,
    groups: Vec<u32>,
    has_terminal: bool,
    /// The kernel's `rlimit64`: soft and hard.
    open_files: Option<[u64; 2]>,
    pids: Option<[u64; 2]>,
    streams: [RawFd; 3],
    reports: RawFd,
    command_stack: *mut libc::c_void,
    failure: Option<(Step, i32)>,
}

impl Plan {
    fn report(&self, report: Report) {
        let bytes = report.encode();
        // SAFETY: a live buffer. PID 1 may be gone, which ends us anyway.
        let _ = unsafe { raw::call(libc::SYS_write, [self.reports as usize, bytes.as_ptr() as usize, bytes.len()]) };
    }
}

extern "C" fn supervise(plan: *mut libc::c_void) -> libc::c_int {
    // SAFETY: the plan is ours alone until our reports end. The clone's own wrapper touches nothing of PID 1's when it
    // succeeds, and CLONE_VFORK keeps us here until the command has executed or ended.
    unsafe {
        let plan = &mut *plan.cast::<Plan>();
        let _ = raw::call(libc::SYS_prctl, [libc::PR_SET_CHILD_SUBREAPER as usize, 1, 0, 0, 0]);
        let _ = raw::call(libc::SYS_prctl, [libc::PR_SET_NAME as usize, c"supervisor".as_ptr() as usize]);
        keep_only(plan.reports, &plan.streams);
        reset_signals();
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        let pid = libc::clone(become_command, plan.command_stack, flags, ptr::from_mut(plan).cast());
        for stream in plan.streams {
            let _ = raw::call(libc::SYS_close, [stream as usize]);
        }
        if pid < 0 {
            plan.failure = Some((Step::Fork, libc::EAGAIN));
        }
        if let Some((step, errno)) = plan.failure {
            plan.report(Report::Failed { step, errno });
            raw::exit(0);
        }
        plan.report(Report::Started { pid });
        loop {
            let mut status = 0i32;
            let any = -1isize as usize;
            match raw::call(libc::SYS_wait4, [any, ptr::from_mut(&mut status) as usize, 0, 0]) {
                Ok(ended) if ended == pid as usize => plan.report(Report::Ended { status }),
                Ok(_) | Err(libc::EINTR) => {}
                Err(_) => raw::exit(0),
            }
        }
    }
}

/// Closes every descriptor but these: the supervisor must not keep another command's pipes open.
unsafe fn keep_only(reports: RawFd, streams: &[RawFd; 3]) {
    let mut keep = [reports, streams[0], streams[1], streams[2]];
    keep.sort_unstable();
    let mut from: RawFd = 0;
    for fd in keep.into_iter().chain([RawFd::MAX]) {
        if fd > from {
            // SAFETY: closes descriptors of this process only, whose table is its own.
            unsafe {
                // Kernels before 5.9 and some sandboxed ones have no close_range.
                if raw::call(libc::SYS_close_range, [from as usize, (fd - 1) as usize, 0]).is_err() {
                    for open in from..fd.min(4096) {
                        let _ = raw::call(libc::SYS_close, [open as usize]);
                    }
                }
            }
        }
        from = fd.saturating_add(1);
    }
}

/// As the shell gives them to a command: nothing ignored, nothing blocked. Only what PID 1 ignores (PIPE) would outlive
/// the exec; what it handles is reset for the supervisor's own sake.
unsafe fn reset_signals() {
    const SET_SIZE: usize = 8;
    // The kernel's own `sigaction` and `sigset_t`: all zero is the default action, and the empty set.
    let nothing = [0u64; 4];
    let pointer = nothing.as_ptr() as usize;
    for signal in [libc::SIGPIPE, libc::SIGCHLD, libc::SIGTERM, libc::SIGINT] {
        // SAFETY: sets this process's own dispositions, whose table is its own.
        let _ = unsafe { raw::call(libc::SYS_rt_sigaction, [signal as usize, pointer, 0, SET_SIZE]) };
    }
    // SAFETY: sets this process's own mask.
    let _ = unsafe { raw::call(libc::SYS_rt_sigprocmask, [libc::SIG_SETMASK as usize, pointer, 0, SET_SIZE]) };
}

extern "C" fn become_command(plan: *mut libc::c_void) -> libc::c_int {
    // SAFETY: the plan is the supervisor's, which waits for us.
    let plan = unsafe { &mut *plan.cast::<Plan>() };
    // SAFETY: every pointer is to the plan's own strings.
    let outcome = unsafe { execute(plan) };
    if let Err(failure) = outcome {
        plan.failure = Some(failure);
    }
    raw::exit(127)
}

/// Comes back only with what went wrong.
unsafe fn execute(plan: &Plan) -> Result<(), (Step, i32)> {
    let number = |value: i32| value as usize;
    let here = number(libc::AT_FDCWD);
    // SAFETY: changes this process only, but for its memory; see the caller for the pointers.
    unsafe {
        let _ = raw::call(libc::SYS_setsid, []);
        // The streams may themselves be numbered 0 to 2: lift them out of the way first.
        let dup = number(libc::F_DUPFD_CLOEXEC);
        let lifted = plan.streams.map(|fd| raw::call(libc::SYS_fcntl, [number(fd), dup, 3]).unwrap_or(0));
        for (target, fd) in lifted.into_iter().enumerate() {
            let _ = raw::call(libc::SYS_dup3, [fd, target, 0]);
        }
        if plan.has_terminal {
            // Its session's own, so that keys become signals.
            let _ = raw::call(libc::SYS_ioctl, [0, libc::TIOCSCTTY as usize, 0]);
        }
        let score = c"/proc/self/oom_score_adj".as_ptr() as usize;
        if let Ok(file) = raw::call(libc::SYS_openat, [here, score, number(libc::O_WRONLY | libc::O_CLOEXEC), 0]) {
            let _ = raw::call(libc::SYS_write, [file, OOM_SCORE.as_ptr() as usize, OOM_SCORE.len()]);
        }
        let _ = raw::call(libc::SYS_umask, [0o022]);
        let limits = [(libc::RLIMIT_NOFILE, &plan.open_files), (libc::RLIMIT_NPROC, &plan.pids)];
        for (resource, limit) in limits {
            if let Some(limit) = limit {
                // More than the box itself may have is not to be had; then it stays at that.
                let _ = raw::call(libc::SYS_prlimit64, [0, resource as usize, limit.as_ptr() as usize, 0]);
            }
        }
        let user = |errno| (Step::User, errno);
        let (uid, gid) = (plan.uid as usize, plan.gid as usize);
        if raw::call(libc::SYS_getuid, []) == Ok(0) {
            let groups = [plan.groups.len(), plan.groups.as_ptr() as usize];
            match raw::call(libc::SYS_setgroups, groups) {
                // A box that has one user only has no groups to give up, nor to give.
                Err(libc::EPERM) if plan.uid == 0 => {}
                other => drop(other.map_err(user)?),
            }
        }
        raw::call(libc::SYS_setresgid, [gid, gid, gid]).map_err(user)?;
        raw::call(libc::SYS_setresuid, [uid, uid, uid]).map_err(user)?;
        raw::call(libc::SYS_chdir, [plan.cwd as usize]).map_err(|errno| (Step::Folder, errno))?;
        let lists = (plan.arguments.as_ptr() as usize, plan.environment.as_ptr() as usize);
        raw::call(libc::SYS_execve, [plan.program as usize, lists.0, lists.1]).map_err(|errno| (Step::Exec, errno))?;
    }
    Ok(())
}

/// What a failed start means to the caller.
pub(crate) fn start_fault(step: Step, errno: i32, command: &Prepared) -> Fault {
    let error = io::Error::from_raw_os_error(errno);
    let program = command.program.to_string_lossy();
    let cwd = command.cwd.to_string_lossy();
    let (code, message) = match (step, errno) {
        (Step::Fork, _) => (
            FaultCode::LimitExceeded,
            format!("no further process may be started in this sandbox: {error}; raise limits.pids, or end some"),
        ),
        (Step::User, _) => {
            let advice = "where an ordinary user made the sandbox, that takes newuidmap and ranges in /etc/subuid and /etc/subgid";
            (FaultCode::PermissionDenied, format!("cannot run as uid {}: {error}; {advice}", command.user.uid))
        }
        (Step::Folder, libc::ENOENT) => {
            (FaultCode::FileNotFound, format!("cwd \"{cwd}\" does not exist in the sandbox"))
        }
        (Step::Folder, libc::ENOTDIR) => (FaultCode::NotADirectory, format!("cwd \"{cwd}\" is not a directory")),
        (Step::Folder, libc::EACCES) => {
            (FaultCode::PermissionDenied, format!("uid {} may not enter cwd \"{cwd}\"", command.user.uid))
        }
        (Step::Folder, _) => (FaultCode::InvalidArgument, format!("cannot enter cwd \"{cwd}\": {error}")),
        (Step::Exec, libc::ENOENT) if std::path::Path::new(&*program).exists() => (
            FaultCode::CommandNotFound,
            format!("\"{program}\" is there, but the interpreter or loader it asks for is not in this image"),
        ),
        (Step::Exec, libc::ENOENT | libc::ENOTDIR) => {
            (FaultCode::CommandNotFound, format!("there is no program \"{program}\" in the sandbox"))
        }
        (Step::Exec, libc::EACCES) => {
            (FaultCode::PermissionDenied, format!("\"{program}\" may not be executed: {error}"))
        }
        (Step::Exec, libc::E2BIG) => (
            FaultCode::InvalidArgument,
            "the arguments and environment are longer than Linux allows; write them to a file, or pass them as stdin"
                .to_owned(),
        ),
        (Step::Exec, _) => (FaultCode::InvalidArgument, format!("\"{program}\" cannot be executed: {error}")),
    };
    fault(code, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_survive_the_pipe() {
        for report in [
            Report::Started { pid: 77 },
            Report::Failed { step: Step::Folder, errno: 2 },
            Report::Ended { status: 0x8b },
        ] {
            assert_eq!(Report::decode(&report.encode()), Some(report));
        }
    }
}
