//! The filter of system calls: as container engines have it, by number and by the arguments that matter.
//!
//! It refuses calls that reach beyond the box (mounts, namespaces, keys, kernel modules, clocks, other processes'
//! memory), those common in kernel exploits (io_uring, userfaultfd, bpf), and all that are newer than this list:
//! programs take them for missing and fall back.

use std::io;

use libc::{c_long, sock_filter, sock_fprog};

const LOAD: u16 = 0x20;
const EQUAL: u16 = 0x15;
const AT_LEAST: u16 = 0x35;
const ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

const ALLOW: u32 = 0x7fff_0000;
const KILL: u32 = 0x8000_0000;
const ERRNO: u32 = 0x0005_0000;

/// Offsets in the kernel's `seccomp_data`; of an argument, the lower half.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const fn argument(index: u32) -> u32 {
    16 + 8 * index
}

#[cfg(target_arch = "x86_64")]
const OWN_ARCHITECTURE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const OWN_ARCHITECTURE: u32 = 0xC000_00B7;

/// `mseal`: later calls were not reviewed.
const NEWEST: u32 = 462;

const REFUSED: &[c_long] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_adjtimex,
    libc::SYS_bpf,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kcmp,
    libc::SYS_kexec_file_load,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_lookup_dcookie,
    libc::SYS_mbind,
    libc::SYS_migrate_pages,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_move_pages,
    libc::SYS_name_to_handle_at,
    libc::SYS_nfsservctl,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_madvise,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_set_mempolicy,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
    // set_mempolicy_home_node
    450,
    // statmount, listmount
    457,
    458,
    // lsm_get_self_attr, lsm_set_self_attr, lsm_list_modules
    459,
    460,
    461,
    #[cfg(target_arch = "x86_64")]
    libc::SYS__sysctl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_sysfs,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_uselib,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ustat,
];

/// Memory that no process has to map, so that only a cgroup counts it: `memfd_secret` is the second.
const UNSEEN_MEMORY: [c_long; 2] = [libc::SYS_memfd_create, 447];

/// What enforces the memory limit of a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MemoryKeeper {
    /// A cgroup, or nothing because there is no limit.
    Kernel,
    /// PID 1, which counts only what processes have mapped.
    Guest,
}

/// Personalities that weaken no protection of the kernel; the last one only asks.
const PERSONALITIES: [u32; 5] = [0, 8, 0x2_0000, 0x2_0008, u32::MAX];

const NAMESPACES: u32 = (libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP) as u32
    // CLONE_NEWTIME
    | 0x80;

/// Others may lead out of the network namespace: vsock reaches the hypervisor.
const FAMILIES: [i32; 4] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// Requests of `ioctl` that type into a terminal as if its user had.
const TERMINAL_INJECTION: [u32; 2] = [0x5412, 0x541C];

fn step(code: u16, value: u32) -> sock_filter {
    sock_filter { code, jt: 0, jf: 0, k: value }
}

/// Skips `yes` or `no` of the steps that follow.
fn branch(code: u16, value: u32, yes: usize, no: usize) -> sock_filter {
    sock_filter { code, jt: yes as u8, jf: no as u8, k: value }
}

/// Decides on one call by one of its arguments. Falls through for other calls.
fn examine(program: &mut Vec<sock_filter>, call: c_long, index: u32, verdict: Vec<sock_filter>) {
    program.push(branch(EQUAL, call as u32, 0, verdict.len() + 1));
    program.push(step(LOAD, argument(index)));
    program.extend(verdict);
}

/// Passes when the value is one of these, or none of them.
fn if_listed(values: &[u32], listed: u32, otherwise: u32) -> Vec<sock_filter> {
    let to_listed = |position: usize| values.len() - position;
    let tests = values.iter().enumerate().map(|(position, value)| branch(EQUAL, *value, to_listed(position), 0));
    tests.chain([step(RETURN, otherwise), step(RETURN, listed)]).collect()
}

fn refuse(errno: i32) -> u32 {
    ERRNO | errno as u32
}

fn program(memory: MemoryKeeper) -> Vec<sock_filter> {
    let mut program = vec![
        step(LOAD, ARCHITECTURE),
        branch(EQUAL, OWN_ARCHITECTURE, 1, 0),
        // Another architecture's calls have other numbers.
        step(RETURN, KILL),
        step(LOAD, NUMBER),
        // x32 calls too, which have a high bit set.
        branch(AT_LEAST, NEWEST + 1, 0, 1),
        step(RETURN, refuse(libc::ENOSYS)),
    ];
    for call in REFUSED {
        program.push(branch(EQUAL, *call as u32, 0, 1));
        program.push(step(RETURN, refuse(libc::EPERM)));
    }
    if memory == MemoryKeeper::Guest {
        for call in UNSEEN_MEMORY {
            program.push(branch(EQUAL, call as u32, 0, 1));
            program.push(step(RETURN, refuse(libc::ENOSYS)));
        }
    }
    // Its flags are in memory, where no filter sees them: programs fall back to clone.
    program.push(branch(EQUAL, libc::SYS_clone3 as u32, 0, 1));
    program.push(step(RETURN, refuse(libc::ENOSYS)));
    let spaces = vec![branch(ANY_BIT, NAMESPACES, 0, 1), step(RETURN, refuse(libc::EPERM)), step(RETURN, ALLOW)];
    examine(&mut program, libc::SYS_clone, 0, spaces);
    let families = FAMILIES.map(|family| family as u32);
    for call in [libc::SYS_socket, libc::SYS_socketpair] {
        examine(&mut program, call, 0, if_listed(&families, ALLOW, refuse(libc::EAFNOSUPPORT)));
    }
    examine(&mut program, libc::SYS_personality, 0, if_listed(&PERSONALITIES, ALLOW, refuse(libc::EPERM)));
    examine(&mut program, libc::SYS_ioctl, 1, if_listed(&TERMINAL_INJECTION, refuse(libc::EPERM), ALLOW));
    program.push(step(RETURN, ALLOW));
    program
}

/// Installs the filter for this process and all that it starts. `no_new_privs` must be set.
pub(super) fn install(memory: MemoryKeeper) -> io::Result<()> {
    let mut steps = program(memory);
    let filter = sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    const SET_MODE_FILTER: libc::c_int = 1;
    // SAFETY: the kernel copies the program before the call is over.
    let outcome = unsafe { libc::syscall(libc::SYS_seccomp, SET_MODE_FILTER, 0, &raw const filter) };
    if outcome < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The filter's answer to a call, as the kernel would compute it.
    fn verdict(number: u32, arguments: [u32; 2]) -> u32 {
        verdict_of(&program(MemoryKeeper::Kernel), number, arguments)
    }

    fn verdict_of(program: &[sock_filter], number: u32, arguments: [u32; 2]) -> u32 {
        let (mut at, mut loaded) = (0, 0);
        loop {
            let now = &program[at];
            at += 1;
            match now.code {
                LOAD => {
                    loaded = match now.k {
                        NUMBER => number,
                        ARCHITECTURE => OWN_ARCHITECTURE,
                        offset if offset == argument(0) => arguments[0],
                        _ => arguments[1],
                    }
                }
                RETURN => return now.k,
                test => {
                    let yes = match test {
                        EQUAL => loaded == now.k,
                        AT_LEAST => loaded >= now.k,
                        _ => loaded & now.k != 0,
                    };
                    at += usize::from(if yes { now.jt } else { now.jf });
                }
            }
        }
    }

    #[test]
    fn what_programs_need_passes_and_what_leads_out_does_not() {
        let call = |number: c_long, arguments: [u32; 2]| verdict(number as u32, arguments);
        for number in [libc::SYS_read, libc::SYS_execve, libc::SYS_chroot, libc::SYS_ptrace, libc::SYS_futex] {
            assert_eq!(call(number, [0, 0]), ALLOW, "{number}");
        }
        for number in REFUSED {
            assert_eq!(call(*number, [0, 0]), refuse(libc::EPERM), "{number}");
        }
        assert_eq!(call(libc::SYS_clone, [libc::CLONE_VM as u32, 0]), ALLOW);
        assert_eq!(call(libc::SYS_clone, [libc::CLONE_NEWUSER as u32, 0]), refuse(libc::EPERM));
        assert_eq!(call(libc::SYS_clone3, [0, 0]), refuse(libc::ENOSYS));
        assert_eq!(call(libc::SYS_socket, [libc::AF_INET as u32, 0]), ALLOW);
        assert_eq!(call(libc::SYS_socketpair, [libc::AF_UNIX as u32, 0]), ALLOW);
        assert_eq!(call(libc::SYS_socket, [libc::AF_VSOCK as u32, 0]), refuse(libc::EAFNOSUPPORT));
        assert_eq!(call(libc::SYS_personality, [u32::MAX, 0]), ALLOW);
        assert_eq!(call(libc::SYS_personality, [0x40_0000, 0]), refuse(libc::EPERM));
        assert_eq!(call(libc::SYS_ioctl, [0, 0x5413]), ALLOW);
        assert_eq!(call(libc::SYS_ioctl, [0, 0x5412]), refuse(libc::EPERM));
        assert_eq!(verdict(NEWEST + 1, [0, 0]), refuse(libc::ENOSYS));
        assert_eq!(verdict(0x4000_0000, [0, 0]), refuse(libc::ENOSYS));
    }

    #[test]
    fn memory_that_the_guest_cannot_see_is_refused_where_it_must_see_all() {
        for call in UNSEEN_MEMORY {
            let by = |keeper| verdict_of(&program(keeper), call as u32, [0, 0]);
            assert_eq!(by(MemoryKeeper::Kernel), ALLOW, "{call}");
            assert_eq!(by(MemoryKeeper::Guest), refuse(libc::ENOSYS), "{call}");
        }
    }
}
