//! What to do when a box cannot be created: the kernel's error, and what it means on this machine.

use std::path::Path;

use cofferdam_protocol::keeper::{Refusal, Step};

use crate::backend::local::read_kernel_file;
use crate::{Error, ErrorCode};

/// Facts about the machine that explain failures.
#[derive(Debug, Clone, Copy, Default)]
struct Machine {
    /// Ubuntu since 23.10: AppArmor profiles say which programs may create user namespaces.
    apparmor_restricts: bool,
    /// `user.max_user_namespaces` is zero.
    none_allowed: bool,
    /// Debian's own switch is off.
    clone_forbidden: bool,
    in_container: bool,
}

impl Machine {
    fn here() -> Machine {
        let says = |file: &str, value: &str| read_kernel_file(file).trim() == value;
        let of_first = read_kernel_file("/proc/1/environ");
        Machine {
            apparmor_restricts: says("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"),
            none_allowed: says("/proc/sys/user/max_user_namespaces", "0"),
            clone_forbidden: says("/proc/sys/kernel/unprivileged_userns_clone", "0"),
            in_container: Path::new("/run/.containerenv").exists()
                || of_first.contains("container=")
                || is_root_an_overlay(&read_kernel_file("/proc/self/mountinfo")),
        }
    }
}

fn is_root_an_overlay(mounts: &str) -> bool {
    mounts.lines().any(|line| line.split(' ').nth(4) == Some("/") && line.contains(" - overlay "))
}

/// An error that says what was tried and what to do next.
pub(super) fn refused(refusal: &Refusal) -> Error {
    let (code, advice) = advise(refusal, Machine::here());
    let message = format!("a sandbox of namespaces could not be made: {}. {advice}", refusal.message);
    Error::new(code, message).with("step", format!("{:?}", refusal.step).to_lowercase()).with("errno", refusal.errno)
}

const CONTAINER: &str = "This program runs in a container itself, which needs more freedom for that: start it with \
    \"--security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined\", or give it \
    a container engine to use: mount its socket, or set DOCKER_HOST";

fn advise(refusal: &Refusal, machine: Machine) -> (ErrorCode, &'static str) {
    let is_denied = [libc_eperm(), libc_eacces()].contains(&refusal.errno);
    let advice = match refusal.step {
        Step::Namespaces | Step::Ids if machine.none_allowed => {
            "User namespaces are switched off: \"sysctl -w user.max_user_namespaces=10000\" as root allows them, or use a \
             container engine"
        }
        Step::Namespaces | Step::Ids if machine.clone_forbidden => {
            "User namespaces are for root only: \"sysctl -w kernel.unprivileged_userns_clone=1\" as root allows them, or \
             use a container engine"
        }
        Step::Namespaces | Step::Ids | Step::Sources | Step::Mounts if is_denied && machine.apparmor_restricts => {
            "AppArmor keeps programs of ordinary users from making user namespaces (Ubuntu since 23.10): \"sudo npx cofferdam \
             setup\" once installs a profile that allows it to cofferdam's helper alone; or use a container engine"
        }
        Step::Namespaces | Step::Ids | Step::Sources | Step::Overlay | Step::Proc | Step::Mounts
            if machine.in_container =>
        {
            CONTAINER
        }
        Step::Namespaces if refusal.errno == libc_enospc() => {
            "There are too many user namespaces: raise user.max_user_namespaces, or close some sandboxes"
        }
        Step::Namespaces | Step::Ids => "This kernel or its security policy does not allow it; use a container engine",
        Step::Begin | Step::Start if refusal.errno == libc_eagain() => {
            "This user may start no further process: raise its limit, or close some sandboxes"
        }
        Step::Begin | Step::Start => "Try again",
        Step::Cgroups => "Limits cannot be set; look at the cgroups of this program",
        Step::Sources | Step::Overlay | Step::Proc | Step::Mounts => {
            "This kernel may be too old (5.12 is the oldest), or the file system of the state folder cannot be used: set \
             COFFERDAM_STATE to a folder on another one"
        }
        Step::Confinement => "This kernel lacks seccomp filters",
    };
    let code = match refusal.step {
        Step::Begin | Step::Start => ErrorCode::Internal,
        _ => ErrorCode::EngineUnavailable,
    };
    (code, advice)
}

fn libc_eperm() -> i32 {
    rustix::io::Errno::PERM.raw_os_error()
}
fn libc_eacces() -> i32 {
    rustix::io::Errno::ACCESS.raw_os_error()
}
fn libc_enospc() -> i32 {
    rustix::io::Errno::NOSPC.raw_os_error()
}
fn libc_eagain() -> i32 {
    rustix::io::Errno::AGAIN.raw_os_error()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice(step: Step, machine: Machine) -> &'static str {
        let refusal = Refusal { step, errno: libc_eperm(), message: String::new() };
        advise(&refusal, machine).1
    }

    #[test]
    fn each_kind_of_machine_has_its_own_advice() {
        let ubuntu = Machine { apparmor_restricts: true, ..Machine::default() };
        assert!(advice(Step::Ids, ubuntu).contains("cofferdam setup"));
        let hardened = Machine { none_allowed: true, ..Machine::default() };
        assert!(advice(Step::Namespaces, hardened).contains("max_user_namespaces"));
        let container = Machine { in_container: true, ..Machine::default() };
        for step in [Step::Namespaces, Step::Overlay, Step::Proc] {
            assert!(advice(step, container).contains("seccomp=unconfined"));
        }
    }

    #[test]
    fn a_container_is_known_by_its_root() {
        assert!(is_root_an_overlay("1 0 0:1 / / rw - overlay overlay rw\n"));
        assert!(!is_root_an_overlay("1 0 0:1 / / rw - ext4 /dev/vda rw\n"));
    }
}
