//! Which program created a container: tells what a dead program left from what a live one is creating.

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;
    use std::sync::OnceLock;

    /// This boot of this machine, and its pid namespace.
    fn world() -> Option<&'static str> {
        static WORLD: OnceLock<Option<String>> = OnceLock::new();
        let world = WORLD.get_or_init(|| {
            let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
            let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
            Some(format!("{}:{}", boot.trim(), namespace.display()))
        });
        world.as_deref()
    }

    /// Pids are reused; together with the start time they are unique.
    fn started(pid: u32) -> Option<String> {
        // The kernel cuts the process name at 15 bytes, even inside a character.
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        String::from_utf8_lossy(&stat).rsplit_once(')')?.1.split_whitespace().nth(19).map(str::to_owned)
    }

    pub(super) fn program(pid: u32) -> Option<String> {
        Some(format!("{} {pid} {}", world()?, started(pid)?))
    }

    pub(super) fn is_dead(maker: &str) -> Option<bool> {
        let mut words = maker.rsplitn(3, ' ');
        let (then, pid, there) = (words.next()?, words.next()?.parse().ok()?, words.next()?);
        (there == world()?).then(|| started(pid).as_deref() != Some(then))
    }
}

/// For a label; empty where programs cannot be identified.
pub(super) fn this_program() -> String {
    #[cfg(target_os = "linux")]
    return linux::program(std::process::id()).unwrap_or_default();
    #[cfg(not(target_os = "linux"))]
    return String::new();
}

/// Whether the program has ended; `None` if that cannot be seen from here.
pub(super) fn is_dead(maker: &str) -> Option<bool> {
    #[cfg(target_os = "linux")]
    return linux::is_dead(maker);
    #[cfg(not(target_os = "linux"))]
    return Option::<bool>::None.filter(|_| maker.is_empty());
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::Read;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_program_lives_while_it_runs_and_others_cannot_be_judged_from_elsewhere() {
        assert_eq!(is_dead(&this_program()), Some(false));
        let rename = "printf 'long name in \\303' > /proc/$$/comm; echo renamed; read line";
        let mut child =
            Command::new("sh").args(["-c", rename]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0; "renamed\n".len()]).unwrap();
        let label = linux::program(child.id()).unwrap();
        assert_eq!(is_dead(&label), Some(false), "whatever it calls itself");
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(is_dead(&label), Some(true));
        let (_, rest) = label.split_once(' ').unwrap();
        assert_eq!(is_dead(&format!("another-boot:pid:[1] {rest}")), None);
        assert_eq!(is_dead(""), None);
    }
}
