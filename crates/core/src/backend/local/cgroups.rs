//! Where the cgroups of boxes are on this machine, and what is written to them.

use std::fs;
use std::path::{Path, PathBuf};

use cofferdam_protocol::keeper::Cgroup;
use rustix::fs::{Access, access};

use super::read_kernel_file;
use crate::options::Limits;

/// The controllers of cgroup v1 that we use.
const CONTROLLERS: [&str; 4] = ["memory", "pids", "cpu", "cpuacct"];

const PERIOD_US: f64 = 100_000.0;

/// Where this program may create cgroups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::backend) enum Hierarchy {
    /// Cgroup v1: one folder per controller.
    First(Vec<(&'static str, PathBuf)>),
    /// Cgroup v2: one folder, and its controllers.
    Second(PathBuf, Vec<String>),
    /// Nowhere.
    Absent,
}

impl Hierarchy {
    pub(in crate::backend) fn here() -> Hierarchy {
        let mounts = read_kernel_file("/proc/self/mountinfo");
        let own = read_kernel_file("/proc/self/cgroup");
        let first: Vec<_> = CONTROLLERS
            .into_iter()
            .filter_map(|controller| Some((controller, first_parent(&mounts, &own, controller)?)))
            .collect();
        if !first.is_empty() {
            return Hierarchy::First(first);
        }
        match second_parent(&mounts, &own) {
            Some((parent, controllers)) => Hierarchy::Second(parent, controllers),
            None => Hierarchy::Absent,
        }
    }

    /// Whether this controller enforces a limit.
    pub(in crate::backend) fn has(&self, controller: &str) -> bool {
        match self {
            Hierarchy::First(parents) => parents.iter().any(|(name, _)| *name == controller),
            Hierarchy::Second(_, controllers) => controllers.iter().any(|name| name == controller),
            Hierarchy::Absent => false,
        }
    }

    pub(in crate::backend) fn version(&self) -> &'static str {
        match self {
            Hierarchy::First(_) => "1",
            Hierarchy::Second(..) => "2",
            Hierarchy::Absent => "none",
        }
    }

    pub(in crate::backend) fn parents(&self) -> Vec<&Path> {
        match self {
            Hierarchy::First(parents) => parents.iter().map(|(_, parent)| parent.as_path()).collect(),
            Hierarchy::Second(parent, _) => vec![parent],
            Hierarchy::Absent => Vec::new(),
        }
    }

    /// The cgroups of a box of this name.
    pub(in crate::backend) fn plan(&self, name: &str, limits: &Limits) -> Vec<Cgroup> {
        let cgroup = |parent: &Path, at: &str, settings| Cgroup {
            folder: parent.join(name).to_string_lossy().into_owned(),
            at: at.to_owned(),
            settings,
        };
        match self {
            Hierarchy::First(parents) => parents
                .iter()
                .map(|(controller, parent)| cgroup(parent, controller, first_settings(controller, limits)))
                .collect(),
            Hierarchy::Second(parent, controllers) => {
                let settings = controllers.iter().flat_map(|controller| second_settings(controller, limits));
                vec![cgroup(parent, "", settings.collect())]
            }
            Hierarchy::Absent => Vec::new(),
        }
    }

    /// Changes them while the box runs.
    pub(in crate::backend) fn change(&self, name: &str, limits: &Limits) -> std::io::Result<()> {
        for cgroup in self.plan(name, limits) {
            let write = |(file, value): &(String, String)| fs::write(Path::new(&cgroup.folder).join(file), value);
            let is_missing = |error: &std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
            // Memory may never exceed memory plus swap: to raise both, raise the second first.
            let mut late = Vec::new();
            for setting in &cgroup.settings {
                match write(setting) {
                    Err(error) if is_missing(&error) && setting.0.contains("sw") => {}
                    Err(_) => late.push(setting),
                    Ok(()) => {}
                }
            }
            late.into_iter().try_for_each(write)?;
        }
        Ok(())
    }
}

fn setting(file: &str, value: impl ToString) -> (String, String) {
    (file.to_owned(), value.to_string())
}

fn first_settings(controller: &str, limits: &Limits) -> Vec<(String, String)> {
    let bytes = limits.memory_mb.map(|mb| mb.saturating_mul(1 << 20));
    match controller {
        "memory" => bytes.map_or_else(Vec::new, |bytes| {
            // No swap beside it.
            vec![setting("memory.limit_in_bytes", bytes), setting("memory.memsw.limit_in_bytes", bytes)]
        }),
        "pids" => limits.pids.map(|pids| setting("pids.max", pids)).into_iter().collect(),
        "cpu" => limits.cpus.map(|cpus| setting("cpu.cfs_quota_us", quota(cpus))).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn second_settings(controller: &str, limits: &Limits) -> Vec<(String, String)> {
    let bytes = limits.memory_mb.map(|mb| mb.saturating_mul(1 << 20));
    match controller {
        "memory" => {
            bytes.map_or_else(Vec::new, |bytes| vec![setting("memory.max", bytes), setting("memory.swap.max", 0)])
        }
        "pids" => limits.pids.map(|pids| setting("pids.max", pids)).into_iter().collect(),
        "cpu" => {
            let quota = limits.cpus.map(|cpus| setting("cpu.max", format!("{} {PERIOD_US}", quota(cpus))));
            quota.into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// The kernel's minimum is one millisecond.
fn quota(cpus: f64) -> u64 {
    (cpus * PERIOD_US).max(1000.0) as u64
}

fn is_writable(path: &Path) -> bool {
    access(path, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

/// Mount points of a kind of file system, with their options.
fn mounted<'a>(mounts: &'a str, kind: &str) -> Vec<(&'a str, &'a str)> {
    let separator = format!(" - {kind} ");
    let parse = |line: &'a str| {
        let (place, rest) = line.split_once(separator.as_str())?;
        Some((place.split(' ').nth(4)?, rest.split(' ').nth(1)?))
    };
    mounts.lines().filter_map(parse).collect()
}

/// Below this program's own, so that what it was given is not passed; or at the top.
fn first_parent(mounts: &str, own: &str, controller: &str) -> Option<PathBuf> {
    let has = |list: &str| list.split(',').any(|name| name == controller);
    let (place, _) = mounted(mounts, "cgroup").into_iter().find(|(_, options)| has(options))?;
    let path = own.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let names = fields.nth(1)?;
        has(names).then(|| fields.next()).flatten()
    })?;
    let place = Path::new(place);
    let below = place.join(path.trim_start_matches('/'));
    [below.as_path(), place].into_iter().find(|path| is_writable(path)).map(Path::to_owned)
}

/// A folder that has no processes of its own, and whose controllers may be given on.
fn second_parent(mounts: &str, own: &str) -> Option<(PathBuf, Vec<String>)> {
    let (place, _) = mounted(mounts, "cgroup2").into_iter().next()?;
    let place = Path::new(place);
    let candidates = if rustix::process::geteuid().is_root() {
        vec![place.join("cofferdam")]
    } else {
        // The program's own has processes: only beside it there is room.
        let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
        let below = place.join(path.trim_start_matches('/'));
        below
            .parent()
            .filter(|parent| parent.starts_with(place))
            .map(|parent| parent.join("cofferdam"))
            .into_iter()
            .collect()
    };
    candidates.into_iter().find_map(|parent| {
        let above = parent.parent()?;
        let offered = fs::read_to_string(above.join("cgroup.controllers")).ok()?;
        let wanted: Vec<&str> = ["memory", "pids", "cpu"]
            .into_iter()
            .filter(|name| offered.split_whitespace().any(|o| o == *name))
            .collect();
        if wanted.is_empty() || !(parent.exists() || fs::create_dir(&parent).is_ok()) {
            return None;
        }
        for name in &wanted {
            let _ = fs::write(above.join("cgroup.subtree_control"), format!("+{name}"));
            let _ = fs::write(parent.join("cgroup.subtree_control"), format!("+{name}"));
        }
        let given = fs::read_to_string(parent.join("cgroup.subtree_control")).ok()?;
        let controllers: Vec<String> = given.split_whitespace().map(str::to_owned).collect();
        (!controllers.is_empty()).then_some((parent, controllers))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits =
        Limits { cpus: Some(0.5), memory_mb: Some(64), pids: Some(20), workspace_mb: None, open_files: None };

    #[test]
    fn both_versions_are_told_the_same() {
        let first = Hierarchy::First(vec![("memory", "/m".into()), ("pids", "/p".into()), ("cpu", "/c".into())]);
        let planned = first.plan("box", &LIMITS);
        let of = |number: usize| planned[number].settings[0].clone();
        assert_eq!(of(0), setting("memory.limit_in_bytes", 64 << 20));
        assert_eq!((of(1), of(2)), (setting("pids.max", 20), setting("cpu.cfs_quota_us", 50_000)));
        let second = Hierarchy::Second("/u".into(), ["memory", "pids", "cpu"].map(str::to_owned).to_vec());
        let [only] = second.plan("box", &LIMITS).try_into().unwrap();
        assert_eq!((only.folder.as_str(), only.at.as_str()), ("/u/box", ""));
        assert!(only.settings.contains(&setting("cpu.max", "50000 100000")));
        assert!(only.settings.contains(&setting("memory.max", 64 << 20)));
    }

    #[test]
    fn mount_points_are_found_by_kind() {
        let mounts =
            "30 24 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n31 24 0:27 / /u rw - cgroup2 cgroup2 rw\n";
        assert_eq!(mounted(mounts, "cgroup"), [("/sys/fs/cgroup/cpu", "rw,cpu")]);
        assert_eq!(mounted(mounts, "cgroup2"), [("/u", "rw")]);
    }
}
