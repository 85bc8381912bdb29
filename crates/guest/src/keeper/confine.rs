//! What a sandbox must not have: more resources than it was given, inherited signal settings, privileges, capabilities that
//! no program in it needs, and system calls known from sandbox escapes.

use cofferdam_protocol::keeper::{Plan, Step};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::calls::{Outcome, Tried, check_int};
use super::seccomp::{self, MemoryKeeper};

/// What package managers, servers and the guest itself need; the same as on every backend. CHOWN, DAC_OVERRIDE, FOWNER,
/// FSETID, KILL, SETGID, SETUID, NET_BIND_SERVICE, SYS_CHROOT.
const CAPABILITIES: u64 = 1 << 0 | 1 << 1 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 10 | 1 << 18;

/// Open files of PID 1 by default.
const OPEN_FILES: u64 = 1 << 20;

/// The size of a core dump: too small for a file. At zero, the kernel would still call the host's crash handler, as root.
const NO_CORE: u64 = 1;

/// How much a box may take of what the kernel also counts for the user who made it (128 watchers by default): never all.
const SHARED_COUNTS: [(&str, u64); 2] = [("max_inotify_instances", 32), ("max_inotify_watches", 32768)];

const CAPABILITY_VERSION: u32 = 0x2008_0522;

/// The last step before PID 1 is executed.
pub(super) fn confine(plan: &Plan) -> Outcome {
    limit(Resource::Core, NO_CORE)?;
    let most = getrlimit(Resource::Nofile).maximum.unwrap_or(OPEN_FILES);
    limit(Resource::Nofile, plan.open_files.unwrap_or(OPEN_FILES).min(most))?;
    reset_signals();
    // SAFETY: sets flags of this process only.
    let told = check_int(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) });
    told.tried(Step::Confinement, || "give up new privileges".to_owned())?;
    drop_capabilities()?;
    let watched = plan.watched_memory > 0;
    let memory = if watched { MemoryKeeper::Guest } else { MemoryKeeper::Kernel };
    seccomp::install(memory).tried(Step::Confinement, || "filter system calls".to_owned())
}

/// Early, while the machine's `/proc` is still mounted and writable: these numbers belong to the box's namespaces.
pub(super) fn share_counts(plan: &Plan) {
    // A kernel that does not count them has no limit to set.
    let set = |name: &str, count: u64| std::fs::write(format!("/proc/sys/{name}"), count.to_string());
    for (name, count) in SHARED_COUNTS {
        let _ = set(&format!("user/{name}"), count);
    }
    let watched = plan.watched_memory;
    if watched > 0 {
        // In pages, of segments that no process has to map: the guest could not see them.
        let _ = set("kernel/shmall", watched / 4 / rustix::param::page_size() as u64);
    }
}

fn limit(resource: Resource, count: u64) -> Outcome {
    let limit = Rlimit { current: Some(count), maximum: Some(count) };
    setrlimit(resource, limit).tried(Step::Confinement, || format!("limit {resource:?} to {count}"))
}

/// Signals as in a new login, whatever the host's program ignores or blocks.
fn reset_signals() {
    // SAFETY: this process's own dispositions and mask; it has one thread.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
        for signal in 1..=64 {
            libc::signal(signal, libc::SIG_DFL);
        }
    }
}

fn drop_capabilities() -> Outcome {
    for capability in 0..64 {
        if CAPABILITIES & (1 << capability) == 0 {
            // SAFETY: changes this process only. Those that the kernel does not know cannot be dropped.
            unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
        }
    }
    let (low, high) = (CAPABILITIES as u32, (CAPABILITIES >> 32) as u32);
    // The kernel's own layout: effective, permitted and inheritable, twice.
    let (header, sets) = ([CAPABILITY_VERSION, 0], [low, low, 0, high, high, 0]);
    // SAFETY: live arrays of the sizes that the version says.
    let set = unsafe {
        libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        libc::syscall(libc::SYS_capset, header.as_ptr(), sets.as_ptr())
    };
    check_int(set as libc::c_int).map(drop).tried(Step::Confinement, || "give up capabilities".to_owned())
}
