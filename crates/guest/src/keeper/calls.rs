//! System calls that neither `std` nor `rustix` has, and errors that say what was tried.
//!
//! Everything here is safe between fork and exec in a process with one thread, such as a keeper.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use cofferdam_protocol::keeper::{Refusal, Step};

/// The result of a step of making a box.
pub(super) type Outcome<T = ()> = Result<T, Refusal>;

/// Adds the step and what was tried to an error of the kernel.
pub(super) trait Tried<T> {
    fn tried(self, step: Step, what: impl FnOnce() -> String) -> Outcome<T>;
}

impl<T> Tried<T> for io::Result<T> {
    fn tried(self, step: Step, what: impl FnOnce() -> String) -> Outcome<T> {
        self.map_err(|error| Refusal {
            step,
            errno: error.raw_os_error().unwrap_or_default(),
            message: format!("{}: {error}", what()),
        })
    }
}

impl<T> Tried<T> for rustix::io::Result<T> {
    fn tried(self, step: Step, what: impl FnOnce() -> String) -> Outcome<T> {
        self.map_err(io::Error::from).tried(step, what)
    }
}

pub(super) fn c_string(path: impl AsRef<Path>) -> io::Result<CString> {
    Ok(CString::new(path.as_ref().as_os_str().as_bytes())?)
}

fn check(outcome: libc::c_long) -> io::Result<libc::c_long> {
    if outcome < 0 { Err(io::Error::last_os_error()) } else { Ok(outcome) }
}

pub(super) fn check_int(outcome: libc::c_int) -> io::Result<libc::c_int> {
    if outcome < 0 { Err(io::Error::last_os_error()) } else { Ok(outcome) }
}

/// `mount(2)`; empty strings stand for null pointers.
pub(super) fn mount(
    source: impl AsRef<Path>,
    target: impl AsRef<Path>,
    kind: &str,
    flags: libc::c_ulong,
    options: &str,
) -> io::Result<()> {
    let (source, target, kind, options) =
        (c_string(source)?, c_string(target)?, CString::new(kind)?, CString::new(options)?);
    let or_null = |word: &CString| if word.is_empty() { std::ptr::null() } else { word.as_ptr() };
    // SAFETY: every pointer is to a string that lives until the call is over, or is null.
    let outcome =
        unsafe { libc::mount(or_null(&source), target.as_ptr(), or_null(&kind), flags, or_null(&options).cast()) };
    check_int(outcome).map(drop)
}

pub(super) const OPEN_TREE_CLONE: u32 = 1;
const AT_RECURSIVE: u32 = 0x8000;
const MOVE_MOUNT_F_EMPTY_PATH: u32 = 4;
pub(super) const MOUNT_ATTR_RDONLY: u64 = 1;
pub(super) const MOUNT_ATTR_NOSUID: u64 = 2;
pub(super) const MOUNT_ATTR_NODEV: u64 = 4;
const MOUNT_ATTR_IDMAP: u64 = 0x0010_0000;

/// Whether mounts below a folder are copied with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    Alone,
    WithMounts,
}

impl Depth {
    fn flag(self) -> u32 {
        if self == Depth::WithMounts { AT_RECURSIVE } else { 0 }
    }
}

/// A detached copy of the mount at a path.
pub(super) fn clone_tree(path: impl AsRef<Path>, depth: Depth) -> io::Result<OwnedFd> {
    let path = c_string(path)?;
    let flags = OPEN_TREE_CLONE | libc::O_CLOEXEC as u32 | depth.flag();
    // SAFETY: a live string; what comes back is a new descriptor, or an error.
    unsafe {
        let fd = check(libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, path.as_ptr(), flags))?;
        Ok(OwnedFd::from_raw_fd(fd as RawFd))
    }
}

/// The kernel's `mount_attr`.
#[repr(C)]
struct MountAttr {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// Sets attributes on a mount; `ids` is the user namespace that its file owners are mapped by.
pub(super) fn set_attributes(tree: &OwnedFd, attributes: u64, ids: Option<&OwnedFd>, depth: Depth) -> io::Result<()> {
    let attr = MountAttr {
        set: attributes | if ids.is_some() { MOUNT_ATTR_IDMAP } else { 0 },
        clear: 0,
        propagation: 0,
        user_namespace: ids.map_or(0, |ids| ids.as_raw_fd() as u64),
    };
    let flags = libc::AT_EMPTY_PATH as u32 | depth.flag();
    // SAFETY: a live structure of the size that is told.
    let outcome = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attr,
            size_of::<MountAttr>(),
        )
    };
    check(outcome).map(drop)
}

/// Attaches a detached tree at a path.
pub(super) fn attach(tree: &OwnedFd, target: impl AsRef<Path>) -> io::Result<()> {
    let target = c_string(target)?;
    // SAFETY: live strings.
    let outcome = unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            tree.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_FDCWD,
            target.as_ptr(),
            MOVE_MOUNT_F_EMPTY_PATH,
        )
    };
    check(outcome).map(drop)
}

/// The kernel's `clone_args`.
#[repr(C)]
#[derive(Default)]
struct CloneArgs {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Which side of a fork this is.
pub(super) enum Forked {
    Child,
    Parent { pid: i32, pidfd: OwnedFd },
}

/// `fork()` into new namespaces, and into a cgroup of the second version. Only from a process with one thread.
pub(super) fn fork_into(namespaces: libc::c_int, cgroup: Option<&OwnedFd>) -> io::Result<Forked> {
    let mut pidfd: RawFd = -1;
    let flags = namespaces as u32 as u64 | libc::CLONE_PIDFD as u64;
    let mut args = CloneArgs {
        flags: flags | if cgroup.is_some() { CLONE_INTO_CGROUP } else { 0 },
        pidfd: &raw mut pidfd as u64,
        exit_signal: libc::SIGCHLD as u64,
        cgroup: cgroup.map_or(0, |cgroup| cgroup.as_raw_fd() as u64),
        ..CloneArgs::default()
    };
    // SAFETY: without CLONE_VM it is a fork: the child goes on with a copy of everything.
    let outcome = check(unsafe { libc::syscall(libc::SYS_clone3, &raw mut args, size_of::<CloneArgs>()) });
    let outcome = match outcome {
        // An outer seccomp filter hides it, because it cannot check its flags.
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) && cgroup.is_none() => {
            let flags = flags | libc::SIGCHLD as u64;
            // SAFETY: as above.
            check(unsafe { libc::syscall(libc::SYS_clone, flags, 0, &raw mut pidfd, 0, 0) })
        }
        other => other,
    };
    match outcome? {
        0 => Ok(Forked::Child),
        // SAFETY: the kernel has just made it for us.
        pid => Ok(Forked::Parent { pid: pid as i32, pidfd: unsafe { OwnedFd::from_raw_fd(pidfd) } }),
    }
}

/// Makes a folder the root, and detaches the old root: nothing of it can be reached any more.
pub(super) fn pivot(new_root: &Path) -> io::Result<()> {
    rustix::process::chdir(new_root)?;
    let here = c".".as_ptr();
    // SAFETY: live strings.
    unsafe {
        check(libc::syscall(libc::SYS_pivot_root, here, here))?;
        check_int(libc::umount2(here, libc::MNT_DETACH))?;
    }
    Ok(rustix::process::chdir("/")?)
}

/// Executes the program behind a descriptor. Returns only with an error.
pub(super) fn execute(program: &OwnedFd, arguments: &[CString], environment: &[CString]) -> io::Error {
    let pointers = |strings: &[CString]| -> Vec<*const libc::c_char> {
        strings.iter().map(|string| string.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let (arguments, environment) = (pointers(arguments), pointers(environment));
    // SAFETY: arrays of live strings, each ended by a null.
    unsafe {
        libc::syscall(
            libc::SYS_execveat,
            program.as_raw_fd(),
            c"".as_ptr(),
            arguments.as_ptr(),
            environment.as_ptr(),
            libc::AT_EMPTY_PATH,
        );
    }
    io::Error::last_os_error()
}
