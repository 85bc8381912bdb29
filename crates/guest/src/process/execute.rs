//! From the supervisor's child to the command: streams, limits, user, folder, program. It shares PID 1's memory until it
//! executes: see [`super::supervisor`].

use super::raw;
use super::report::Step;
use super::supervisor::Plan;

/// More than PID 1's own, so that the kernel kills commands for memory and not the sandbox.
const OOM_SCORE: &[u8] = b"500";

pub(super) extern "C" fn become_command(plan: *mut libc::c_void) -> libc::c_int {
    // SAFETY: the plan is the supervisor's, which waits for us.
    let plan = unsafe { &mut *plan.cast::<Plan>() };
    // SAFETY: every pointer is to the plan's own strings.
    let outcome = unsafe { execute(plan) };
    if let Err(failure) = outcome {
        plan.failure = Some(failure);
    }
    raw::exit(127)
}

/// Returns only with what went wrong.
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
            // Makes it the controlling terminal, so that keys become signals.
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
                // Fails above the box's own limit, which then applies.
                let _ = raw::call(libc::SYS_prlimit64, [0, resource as usize, limit.as_ptr() as usize, 0]);
            }
        }
        let user = |errno| (Step::User, errno);
        let (uid, gid) = (plan.uid as usize, plan.gid as usize);
        if raw::call(libc::SYS_getuid, []) == Ok(0) {
            let groups = [plan.groups.len(), plan.groups.as_ptr() as usize];
            match raw::call(libc::SYS_setgroups, groups) {
                // A box with one user has no groups to set.
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
