//! Attempts on processes of the host, and on information about them.

use std::fs;

use serde_json::{Map, Value};

use crate::attempt::{At, Outcome, Refused, let_through, number, system_call};

pub(crate) fn real_uid() -> u32 {
    // SAFETY: has no preconditions.
    unsafe { libc::getuid() }
}

pub(crate) fn real_gid() -> u32 {
    // SAFETY: has no preconditions.
    unsafe { libc::getgid() }
}

/// Our ids and capabilities.
pub(crate) fn ids() -> Outcome {
    let status = fs::read_to_string("/proc/self/status").at("read")?;
    let told = ["Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp"];
    let fields = status.lines().filter_map(|line| line.split_once(':'));
    let fields = fields.filter(|(name, _)| told.contains(name));
    let fields =
        fields.map(|(name, value)| (name.to_owned(), value.split_whitespace().collect::<Vec<_>>().join(" ").into()));
    Ok(Value::Object(fields.collect::<Map<String, Value>>()))
}

/// `-1` is every process that we may kill.
pub(crate) fn kill(pid: &str, signal: &str) -> Outcome {
    let (pid, signal) = (number(pid)? as isize as usize, number(signal)? as usize);
    system_call("kill", libc::SYS_kill, &[pid, signal]).map(Value::from)
}

/// PTRACE_SEIZE, which does not stop it; it is released when we end.
pub(crate) fn trace(pid: &str) -> Outcome {
    system_call("ptrace", libc::SYS_ptrace, &[0x4206, number(pid)? as usize, 0, 0]).map(Value::from)
}

/// Its standard input.
pub(crate) fn take_descriptor(pid: &str) -> Outcome {
    let process = system_call("pidfd_open", libc::SYS_pidfd_open, &[number(pid)? as usize, 0])?;
    system_call("pidfd_getfd", libc::SYS_pidfd_getfd, &[process as usize, 0, 0]).map(Value::from)
}

/// At an invalid address: the permission check comes before that error.
pub(crate) fn read_memory(pid: &str) -> Outcome {
    let mut room = [0_u8; 8];
    let (here, there) = ([room.as_mut_ptr() as usize, room.len()], [0, room.len()]);
    let arguments = [number(pid)? as usize, here.as_ptr() as usize, 1, there.as_ptr() as usize, 1, 0];
    let_through(system_call("process_vm_readv", libc::SYS_process_vm_readv, &arguments))
}

/// Lowers the priority of one process, or of all of a user.
pub(crate) fn renice(which: &str, who: &str) -> Outcome {
    let which = if which == "user" { libc::PRIO_USER } else { libc::PRIO_PROCESS };
    system_call("setpriority", libc::SYS_setpriority, &[which as usize, number(who)? as usize, 3]).map(Value::from)
}

/// Whether a token is in any process's command line or environment.
pub(crate) fn seen(token: &str) -> Outcome {
    let entries = fs::read_dir("/proc").at("open")?.flatten();
    for process in entries.map(|entry| entry.path()) {
        for name in ["cmdline", "environ", "comm"] {
            let file = process.join(name);
            if fs::read(&file).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(token)) {
                return Ok(file.to_string_lossy().into());
            }
        }
    }
    Err(Refused::new("looked", libc::ESRCH))
}

pub(crate) fn hostname() -> Outcome {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").at("read")?;
    Ok(name.trim().into())
}
