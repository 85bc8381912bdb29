//! Starts a command under its own supervisor.
//!
//! PID 1 forks the supervisor; the supervisor becomes a child subreaper, starts the command, and reports on a pipe.
//! It lives until nothing below it is left: the end of that pipe *is* the end of the command's tree.
//!
//! After the fork only async-signal-safe calls are made and nothing is allocated, for other threads of PID 1 may have
//! held any lock at that moment.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr;

use cofferdam_protocol::{Fault, FaultCode};
use rustix::pipe::{PipeFlags, pipe_with};

use super::command::Prepared;
use crate::requests::fault;

/// More than PID 1's own, so that the kernel kills commands for memory and not the sandbox.
const OOM_SCORE: &[u8] = b"500";

/// Room for the calls between clone and exec.
const CHILD_STACK: usize = 32 * 1024;

/// A command that was started, or is about to be.
#[derive(Debug)]
pub(crate) struct Launched {
    pub(crate) supervisor: i32,
    pub(crate) stdin: Option<OwnedFd>,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
    /// [`Report`]s, then end of file when the tree is gone.
    pub(crate) reports: OwnedFd,
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

/// Forks the supervisor. Whether the command itself could be started is its first report.
pub(crate) fn launch(command: &Prepared, with_stdin: bool) -> Result<Launched, Fault> {
    let no_pipe =
        |error: rustix::io::Errno| fault(FaultCode::LimitExceeded, format!("no pipe for the command: {error}"));
    let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(no_pipe);
    let (stdout, stdout_end) = pipe()?;
    let (stderr, stderr_end) = pipe()?;
    let (reports, reports_end) = pipe()?;
    let (stdin_end, stdin) = match with_stdin {
        true => pipe().map(|(read, write)| (read, Some(write)))?,
        false => {
            let null = std::fs::File::open("/dev/null").map_err(|error| {
                fault(FaultCode::Internal, format!("the sandbox's /dev/null cannot be opened: {error}"))
            })?;
            (null.into(), None)
        }
    };
    let pointers = |strings: &[CString]| -> Vec<*const libc::c_char> {
        strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect()
    };
    let (arguments, environment) = (pointers(&command.arguments), pointers(&command.environment));
    let mut stack = vec![0u8; CHILD_STACK];
    let plan = Plan {
        program: command.program.as_ptr(),
        arguments: arguments.as_ptr(),
        environment: environment.as_ptr(),
        cwd: command.cwd.as_ptr(),
        uid: command.user.uid,
        gid: command.user.gid,
        groups: &command.user.groups,
        streams: [stdin_end.as_raw_fd(), stdout_end.as_raw_fd(), stderr_end.as_raw_fd()],
        failure: (Step::Fork, 0),
    };
    // SAFETY: the child runs `supervise` only, which keeps to async-signal-safe calls and never returns.
    match unsafe { libc::fork() } {
        -1 => {
            let error = io::Error::last_os_error();
            let message =
                format!("no further process may be started in this sandbox: {error}; raise limits.pids, or end some");
            Err(fault(FaultCode::LimitExceeded, message))
        }
        0 => supervise(plan, &mut stack, reports_end.as_raw_fd()),
        supervisor => Ok(Launched { supervisor, stdin, stdout, stderr, reports }),
    }
}

/// All that the new process needs; it shares the supervisor's memory until it executes.
struct Plan<'a> {
    program: *const libc::c_char,
    arguments: *const *const libc::c_char,
    environment: *const *const libc::c_char,
    cwd: *const libc::c_char,
    uid: u32,
    gid: u32,
    groups: &'a [u32],
    streams: [RawFd; 3],
    failure: (Step, i32),
}

fn supervise(mut plan: Plan<'_>, stack: &mut [u8], reports: RawFd) -> ! {
    let report = |report: Report| {
        let bytes = report.encode();
        // SAFETY: a plain write of a live buffer; PID 1 may be gone, which ends us anyway.
        unsafe { libc::write(reports, bytes.as_ptr().cast(), bytes.len()) };
    };
    // SAFETY: system calls on values this process owns. The stack's end is aligned as the ABI asks, and outlives the
    // child's use of it: CLONE_VFORK keeps us here until the child has executed or ended.
    unsafe {
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        libc::prctl(libc::PR_SET_NAME, c"supervisor".as_ptr(), 0, 0, 0);
        keep_only(reports, &plan.streams);
        reset_signals();
        let top = stack.as_mut_ptr().add(stack.len());
        let top = top.sub(top as usize % 16);
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        let pid = libc::clone(become_command, top.cast(), flags, ptr::from_mut(&mut plan).cast());
        for stream in plan.streams {
            libc::close(stream);
        }
        let failure = if pid < 0 { (Step::Fork, *libc::__errno_location()) } else { plan.failure };
        if failure.1 != 0 {
            report(Report::Failed { step: failure.0, errno: failure.1 });
            libc::_exit(0);
        }
        report(Report::Started { pid });
        loop {
            let mut status = 0;
            let ended = libc::waitpid(-1, &mut status, 0);
            if ended == pid {
                report(Report::Ended { status });
            } else if ended < 0 && *libc::__errno_location() != libc::EINTR {
                libc::_exit(0);
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
            // Kernels before 5.9 and some sandboxed ones have no close_range.
            // SAFETY: closes descriptors of this process only.
            unsafe {
                if libc::syscall(libc::SYS_close_range, from, fd - 1, 0) != 0 {
                    for open in from..fd.min(4096) {
                        libc::close(open);
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
    // SAFETY: sets dispositions and the mask of this process only.
    unsafe {
        for signal in [libc::SIGPIPE, libc::SIGCHLD, libc::SIGTERM, libc::SIGINT] {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, ptr::null_mut());
    }
}

extern "C" fn become_command(plan: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `plan` is the supervisor's, which waits for us. Ids are set by raw system calls because libc's own
    // would try to reach threads that do not exist here.
    unsafe {
        let plan = &mut *plan.cast::<Plan<'_>>();
        let errno = || *libc::__errno_location();
        libc::setsid();
        // The streams may themselves be numbered 0 to 2: lift them out of the way first.
        let lifted = plan.streams.map(|fd| libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 3));
        for (target, fd) in lifted.into_iter().enumerate() {
            libc::dup2(fd, target as RawFd);
        }
        let score = libc::open(c"/proc/self/oom_score_adj".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        libc::write(score, OOM_SCORE.as_ptr().cast(), OOM_SCORE.len());
        libc::close(score);
        libc::umask(0o022);
        let groups = (plan.groups.len(), plan.groups.as_ptr());
        let root = libc::getuid() == 0;
        if (root && libc::syscall(libc::SYS_setgroups, groups.0, groups.1) != 0)
            || libc::syscall(libc::SYS_setresgid, plan.gid, plan.gid, plan.gid) != 0
            || libc::syscall(libc::SYS_setresuid, plan.uid, plan.uid, plan.uid) != 0
        {
            plan.failure = (Step::User, errno());
        } else if libc::chdir(plan.cwd) != 0 {
            plan.failure = (Step::Folder, errno());
        } else {
            libc::execve(plan.program, plan.arguments, plan.environment);
            plan.failure = (Step::Exec, errno());
        }
        libc::_exit(127)
    }
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
        (Step::User, _) => (FaultCode::PermissionDenied, format!("cannot run as uid {}: {error}", command.user.uid)),
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
