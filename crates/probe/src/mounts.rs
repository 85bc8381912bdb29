//! Attempts with mounts and namespaces.

use std::fs;

use serde_json::Value;

use crate::attempt::{At, Outcome, Refused, c_string, let_through, pointer, scratch, system_call};

fn mount_call(source: &str, target: &str, kind: &str, flags: libc::c_ulong, options: &str) -> Outcome<i64> {
    let words = [source, target, kind, options].map(c_string);
    let [source, target, kind, options] = words.each_ref().map(pointer);
    system_call("mount", libc::SYS_mount, &[source, target, kind, flags as usize, options])
}

/// A mount namespace to try in: with the present rights, or with those of a new user namespace.
pub(crate) fn fresh() -> Outcome<()> {
    let (uid, gid) = (crate::processes::real_uid(), crate::processes::real_gid());
    if system_call("unshare", libc::SYS_unshare, &[libc::CLONE_NEWNS as usize]).is_err() {
        system_call("unshare", libc::SYS_unshare, &[(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) as usize])?;
        fs::write("/proc/self/setgroups", "deny").at("setgroups")?;
        fs::write("/proc/self/uid_map", format!("0 {uid} 1")).at("uid_map")?;
        fs::write("/proc/self/gid_map", format!("0 {gid} 1")).at("gid_map")?;
    }
    mount_call("", "/", "", libc::MS_REC | libc::MS_PRIVATE, "").map(drop)
}

pub(crate) fn mount(kind: &str, words: &[&str]) -> Outcome {
    let folder = scratch("mount");
    fs::create_dir_all(&folder).at("mkdir")?;
    let target = folder.to_string_lossy().into_owned();
    let outcome = mount_at(kind, words, &target);
    let name = c_string(&target);
    let _ = system_call("umount2", libc::SYS_umount2, &[pointer(&name), libc::MNT_DETACH as usize]);
    let _ = fs::remove_dir(&folder);
    outcome
}

fn mount_at(kind: &str, words: &[&str], target: &str) -> Outcome {
    match (kind, words) {
        ("tmpfs", []) => mount_call("tmpfs", target, "tmpfs", 0, ""),
        ("proc", []) => mount_call("proc", target, "proc", 0, ""),
        ("sysfs", []) => mount_call("sysfs", target, "sysfs", 0, ""),
        ("bind", []) => mount_call("/", target, "", libc::MS_BIND | libc::MS_REC, ""),
        ("cgroup", []) => mount_call("cgroup", target, "cgroup", 0, "none,name=cofferdam-probe")
            .or_else(|_| mount_call("cgroup2", target, "cgroup2", 0, "")),
        ("device", [device, kind]) => match mount_call(device, target, kind, libc::MS_RDONLY, "") {
            // "Already mounted" means that the device was reached.
            Err(refused) if refused.errno == libc::EBUSY => Ok(0),
            other => other,
        },
        // Unmounts what hides and protects parts of /proc.
        ("unmask", [place]) => {
            let name = c_string(place);
            system_call("umount2", libc::SYS_umount2, &[pointer(&name), libc::MNT_DETACH as usize])
        }
        ("remount", [place]) => mount_call("", place, "", libc::MS_REMOUNT | libc::MS_BIND, ""),
        ("open-tree", []) => {
            let name = c_string("/");
            system_call("open_tree", libc::SYS_open_tree, &[libc::AT_FDCWD as usize, pointer(&name), 1])
        }
        ("fsopen", []) => {
            let name = c_string("tmpfs");
            system_call("fsopen", libc::SYS_fsopen, &[pointer(&name), 0])
        }
        // Changes the root of its own mounts.
        ("pivot-root", []) => {
            mount_call(target, target, "", libc::MS_BIND, "")?;
            let name = c_string(target);
            system_call("pivot_root", libc::SYS_pivot_root, &[pointer(&name), pointer(&name)])
        }
        // Of no mount of its own: that error means that it was let through.
        ("bare-pivot-root", []) => {
            let name = c_string(".");
            let pivoted = system_call("pivot_root", libc::SYS_pivot_root, &[pointer(&name), pointer(&name)]);
            return let_through(pivoted);
        }
        _ => Err(Refused::new("no such mount", libc::EINVAL)),
    }
    .map(Value::from)
}

/// A new user namespace, with this process as its root.
pub(crate) fn enter(kind: &str) -> Outcome {
    let user = libc::CLONE_NEWUSER as usize;
    match kind {
        "unshare" => system_call("unshare", libc::SYS_unshare, &[user]),
        "clone" => born(system_call("clone", libc::SYS_clone, &[user | libc::SIGCHLD as usize])),
        "clone3" => {
            // The kernel's `clone_args` as it was at first.
            let mut arguments = [0_u64; 8];
            arguments[0] = user as u64;
            arguments[4] = libc::SIGCHLD as u64;
            let size = size_of_val(&arguments);
            born(system_call("clone3", libc::SYS_clone3, &[arguments.as_mut_ptr() as usize, size]))
        }
        _ => Err(Refused::new("no such way", libc::EINVAL)),
    }
    .map(Value::from)
}

/// The child has nothing to do.
fn born(outcome: Outcome<i64>) -> Outcome<i64> {
    if matches!(outcome, Ok(0)) {
        // SAFETY: ends the child of a bare clone without running anything of the parent's.
        unsafe { libc::_exit(0) };
    }
    outcome
}
