//! Which program made a container, so that what it leaves half made can be told from what it is just making.

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;
    use std::sync::OnceLock;

    /// This boot of this machine, and the process numbers seen in it.
    fn world() -> Option<&'static str> {
        static WORLD: OnceLock<Option<String>> = OnceLock::new();
        let world = WORLD.get_or_init(|| {
            let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
            let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
            Some(format!("{}:{}", boot.trim(), namespace.display()))
        });
        world.as_deref()
    }

    /// Numbers are given again; the time of its start is a process's own.
    fn started(pid: u32) -> Option<String> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(19).map(str::to_owned)
    }

    pub(super) fn this_program() -> Option<String> {
        let pid = std::process::id();
        Some(format!("{} {pid} {}", world()?, started(pid)?))
    }

    pub(super) fn is_dead(maker: &str) -> Option<bool> {
        let mut words = maker.rsplitn(3, ' ');
        let (then, pid, there) = (words.next()?, words.next()?.parse().ok()?, words.next()?);
        (there == world()?).then(|| started(pid).as_deref() != Some(then))
    }
}

/// For a label; empty where programs cannot be told apart.
pub(super) fn this_program() -> String {
    #[cfg(target_os = "linux")]
    return linux::this_program().unwrap_or_default();
    #[cfg(not(target_os = "linux"))]
    return String::new();
}

/// Whether the maker has ended; `None` when that cannot be seen from here.
pub(super) fn is_dead(maker: &str) -> Option<bool> {
    #[cfg(target_os = "linux")]
    return linux::is_dead(maker);
    #[cfg(not(target_os = "linux"))]
    return Option::<bool>::None.filter(|_| maker.is_empty());
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_program_lives_while_it_runs_and_others_cannot_be_judged_from_elsewhere() {
        assert_eq!(is_dead(&this_program()), Some(false));
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let own = this_program();
        let world = own.rsplitn(3, ' ').nth(2).unwrap().to_owned();
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        let started = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().to_owned();
        let label = format!("{world} {} {started}", child.id());
        assert_eq!(is_dead(&label), Some(false));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(is_dead(&label), Some(true));
        assert_eq!(is_dead(&label.replace(&world, "another-boot:pid:[1]")), None);
        assert_eq!(is_dead(""), None);
    }
}
