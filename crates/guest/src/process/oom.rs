//! Kills for memory in this sandbox, by the cgroup's own counter: the engine's flag is wrong while a container runs.

use std::cell::Cell;
use std::fs;

thread_local! {
    /// Kills by the guest, where no cgroup enforces a limit.
    static OWN: Cell<u64> = const { Cell::new(0) };
}

/// Kills so far; `None` where the cgroup cannot be read, and the guest has killed none.
pub(crate) fn kills() -> Option<u64> {
    let v2 = || counter("/sys/fs/cgroup/memory.events");
    let own = Some(OWN.get()).filter(|own| *own > 0);
    counter("/sys/fs/cgroup/memory/memory.oom_control").or_else(v2).or(own)
}

/// The guest is about to kill a process for memory.
pub(crate) fn count() {
    OWN.set(OWN.get() + 1);
}

fn counter(path: &str) -> Option<u64> {
    parse(&fs::read_to_string(path).ok()?)
}

fn parse(file: &str) -> Option<u64> {
    file.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    #[test]
    fn both_cgroup_versions_are_read() {
        assert_eq!(super::parse("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"), Some(3));
        assert_eq!(super::parse("low 0\nmax 12\noom 4\noom_kill 2\noom_group_kill 0\n"), Some(2));
        assert_eq!(super::parse(""), None);
    }
}
