//! What every Linux program expects beside its files: `/proc`, `/sys`, `/dev`, `/run`, a host name and a loopback device.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use cofferdam_protocol::keeper::{Cgroup, Plan, Step};
use libc::{MS_BIND, MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_RDONLY, MS_REC, MS_REMOUNT};

use super::calls::{Outcome, Tried, check_int, mount};
use super::place::Place;
use super::root::make_dir;

const QUIET: libc::c_ulong = MS_NOSUID | MS_NODEV | MS_NOEXEC;

/// Read-only parts of `/proc`.
const READ_ONLY: [&str; 5] = ["sys", "sysrq-trigger", "irq", "bus", "fs"];

/// Hidden parts of `/proc`, which describe the machine.
const MASKED_FILES: [&str; 9] =
    ["kcore", "keys", "timer_list", "kallsyms", "config.gz", "cmdline", "modules", "kmsg", "sched_debug"];
const MASKED_FOLDERS: [&str; 3] = ["acpi", "scsi", "asound"];

const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Mounts all of it in the new root.
pub(super) fn mount_all(plan: &Plan, has_groups: bool) -> Outcome {
    mount_proc()?;
    mount_sys(&plan.cgroups);
    mount_dev(plan.shared_memory, has_groups)?;
    let run = Place::at("/run").tried(Step::Mounts, || "make /run".to_owned())?;
    mount("tmpfs", run.path(), "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=64m")
        .tried(Step::Mounts, || "mount /run".to_owned())
}

/// Mounts at a path in the new root, and returns the mounted folder.
fn mount_at(path: &str, kind: &str, flags: libc::c_ulong, options: &str) -> std::io::Result<Place> {
    mount(kind, Place::at(path)?.path(), kind, flags, options)?;
    Place::at(path)
}

fn mount_proc() -> Outcome {
    let proc = mount_at("/proc", "proc", QUIET, "").tried(Step::Proc, || "mount /proc".to_owned())?;
    // Not every kernel has all of them.
    for name in READ_ONLY {
        let path = proc.below(name);
        if mount(&path, &path, "", MS_BIND | MS_REC, "").is_ok() {
            mount("", &path, "", MS_REMOUNT | MS_BIND | MS_RDONLY | QUIET, "")
                .tried(Step::Proc, || format!("make /proc/{name} read-only"))?;
        }
    }
    for name in MASKED_FILES.map(|name| proc.below(name)) {
        if Path::new(&name).exists() {
            mount("/dev/null", &name, "", MS_BIND, "").tried(Step::Proc, || format!("mask {name}"))?;
        }
    }
    for name in MASKED_FOLDERS.map(|name| proc.below(name)) {
        if Path::new(&name).exists() {
            mount("tmpfs", &name, "tmpfs", MS_RDONLY | QUIET, "size=0k")
                .tried(Step::Proc, || format!("mask {name}"))?;
        }
    }
    Ok(())
}

/// Read-only, and without the machine's firmware. Programs can do without it.
fn mount_sys(cgroups: &[Cgroup]) {
    let Ok(sys) = mount_at("/sys", "sysfs", MS_RDONLY | QUIET, "") else { return };
    for name in ["firmware", "kernel/security", "kernel/debug", "devices/virtual/powercap"] {
        let path = sys.below(name);
        if Path::new(&path).exists() && mount("tmpfs", &path, "tmpfs", MS_RDONLY | QUIET, "size=0k").is_err() {
            // Better nothing than too much.
            let _ = mount("tmpfs", sys.path(), "tmpfs", MS_RDONLY | QUIET, "size=0k");
            return;
        }
    }
    let _ = mount_cgroups(&sys.below("fs/cgroup"), cgroups);
}

/// The counters of the box's own cgroups.
fn mount_cgroups(target: &str, cgroups: &[Cgroup]) -> std::io::Result<()> {
    let bind = |from: &str, to: &str| {
        mount(from, to, "", MS_BIND, "")?;
        mount("", to, "", MS_REMOUNT | MS_BIND | MS_RDONLY | QUIET, "")
    };
    if !Path::new(target).exists() || cgroups.is_empty() {
        return Ok(());
    }
    if let Some(only) = cgroups.iter().find(|cgroup| cgroup.at.is_empty()) {
        return bind(&format!("g/_{}", only.at), target);
    }
    mount("tmpfs", target, "tmpfs", QUIET, "mode=755,size=64k")?;
    for cgroup in cgroups {
        let path = format!("{target}/{}", cgroup.at);
        fs::create_dir(&path)?;
        bind(&format!("g/_{}", cgroup.at), &path)?;
    }
    mount("", target, "", MS_REMOUNT | MS_RDONLY | QUIET, "mode=755,size=64k")
}

fn mount_dev(shared_memory: u64, has_groups: bool) -> Outcome {
    let making = |what: &str| format!("make /dev/{what}");
    let dev = mount_at("/dev", "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=755,size=64k");
    let dev = dev.tried(Step::Mounts, || making(""))?;
    for name in DEVICES {
        let path = dev.below(name);
        fs::write(&path, "").tried(Step::Mounts, || making(name))?;
        mount(Path::new("/dev").join(name), &path, "", MS_BIND, "").tried(Step::Mounts, || making(name))?;
    }
    let links = [
        ("/proc/self/fd", "fd"),
        ("/proc/self/fd/0", "stdin"),
        ("/proc/self/fd/1", "stdout"),
        ("/proc/self/fd/2", "stderr"),
        ("pts/ptmx", "ptmx"),
    ];
    for (target, name) in links {
        symlink(target, dev.below(name)).tried(Step::Mounts, || making(name))?;
    }
    for (name, mode) in [("pts", 0o755), ("shm", 0o1777), ("mqueue", 0o755)] {
        make_dir(dev.below(name), mode).tried(Step::Mounts, || making(name))?;
    }
    let group = if has_groups { ",gid=5" } else { "" };
    let options = format!("newinstance,ptmxmode=0666,mode=620{group}");
    mount("devpts", dev.below("pts"), "devpts", MS_NOSUID | MS_NOEXEC, &options)
        .tried(Step::Mounts, || making("pts"))?;
    mount("shm", dev.below("shm"), "tmpfs", QUIET, &format!("mode=1777,size={shared_memory}"))
        .tried(Step::Mounts, || making("shm"))?;
    let _ = mount("mqueue", dev.below("mqueue"), "mqueue", QUIET, "");
    Ok(())
}

/// A host name, and a network with nothing but the loopback device.
pub(super) fn name_and_loopback() -> Outcome {
    rustix::system::sethostname(b"sandbox").tried(Step::Mounts, || "name the box".to_owned())?;
    // SAFETY: plain data of the kernel's own layout, on a socket that is closed again.
    let up = unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = b'l' as libc::c_char;
        request.ifr_name[1] = b'o' as libc::c_char;
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        let up = check_int(libc::ioctl(socket, libc::SIOCSIFFLAGS as _, &raw mut request));
        libc::close(socket);
        up
    };
    up.map(drop).tried(Step::Mounts, || "bring the loopback device up".to_owned())
}
