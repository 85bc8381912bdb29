//! The supervisor of a command: a child subreaper that starts the command, and reports on a pipe. It lives until nothing
//! below it is left.
//!
//! It is a process that shares PID 1's memory, on a stack of its own: to copy even a small address space, and to fault it
//! in again on both sides, would be a good part of what a short command costs. So until it is over it must touch nothing
//! but its [`Plan`] and its stack, and make no call that knows of threads: see [`super::raw`].

use std::io;
use std::os::fd::RawFd;
use std::ptr;

use super::execute::become_command;
use super::raw;
use super::report::{Report, Step};

/// Room for the few calls of a supervisor, and of a command before it executes.
const SUPERVISOR_STACK: usize = 16 * 1024;
const COMMAND_STACK: usize = 16 * 1024;

/// What a supervisor and its command use of PID 1's memory: to be kept until the end of its reports.
#[derive(Debug)]
pub(crate) struct Memory {
    plan: Plan,
    stacks: Vec<u8>,
}

// SAFETY: the pointers are to the command's own strings; nobody but the supervisor follows them.
unsafe impl Send for Memory {}

impl Memory {
    pub(super) fn new(plan: Plan) -> Box<Memory> {
        let mut memory = Box::new(Memory { plan, stacks: vec![0; SUPERVISOR_STACK + COMMAND_STACK] });
        let [_, command_stack] = memory.stack_tops();
        memory.plan.command_stack = command_stack;
        memory
    }

    /// Starts the supervisor.
    pub(super) fn start(&mut self) -> io::Result<i32> {
        let [supervisor_stack, _] = self.stack_tops();
        let plan = ptr::from_mut(&mut self.plan);
        // SAFETY: `supervise` keeps to the plan, its stack and raw system calls, and never returns; both stay until the
        // end of its reports. No signal reaches it before it has put PID 1's handlers away, which would run them on PID 1's
        // own memory.
        unsafe {
            let blocked = block_signals();
            let pid = libc::clone(supervise, supervisor_stack, libc::CLONE_VM | libc::SIGCHLD, plan.cast());
            let error = io::Error::last_os_error();
            libc::sigprocmask(libc::SIG_SETMASK, &blocked, ptr::null_mut());
            if pid < 0 { Err(error) } else { Ok(pid) }
        }
    }

    /// Stacks grow down, and their tops are aligned as the ABI asks.
    fn stack_tops(&mut self) -> [*mut libc::c_void; 2] {
        let base = self.stacks.as_mut_ptr();
        [SUPERVISOR_STACK, SUPERVISOR_STACK + COMMAND_STACK].map(|end| {
            let top = base.wrapping_add(end);
            top.wrapping_sub(top as usize % 16).cast()
        })
    }
}

/// What a supervisor and its command need to know. The pointers are to strings that stay until the first report.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) program: *const libc::c_char,
    pub(super) arguments: Vec<*const libc::c_char>,
    pub(super) environment: Vec<*const libc::c_char>,
    pub(super) cwd: *const libc::c_char,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) groups: Vec<u32>,
    pub(super) has_terminal: bool,
    /// The kernel's `rlimit64`: soft and hard.
    pub(super) open_files: Option<[u64; 2]>,
    pub(super) pids: Option<[u64; 2]>,
    pub(super) streams: [RawFd; 3],
    pub(super) reports: RawFd,
    /// [`Memory::new`] sets it.
    pub(super) command_stack: *mut libc::c_void,
    pub(super) failure: Option<(Step, i32)>,
}

impl Plan {
    fn report(&self, report: Report) {
        let bytes = report.encode();
        // SAFETY: a live buffer. PID 1 may be gone, which ends us anyway.
        let _ = unsafe { raw::call(libc::SYS_write, [self.reports as usize, bytes.as_ptr() as usize, bytes.len()]) };
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
