//! Signal names, as Linux numbers them on x64 and arm64. The host may be another system, so the numbers are here and
//! not taken from its libc.

const NAMES: [&str; 31] = [
    "SIGHUP",
    "SIGINT",
    "SIGQUIT",
    "SIGILL",
    "SIGTRAP",
    "SIGABRT",
    "SIGBUS",
    "SIGFPE",
    "SIGKILL",
    "SIGUSR1",
    "SIGSEGV",
    "SIGUSR2",
    "SIGPIPE",
    "SIGALRM",
    "SIGTERM",
    "SIGSTKFLT",
    "SIGCHLD",
    "SIGCONT",
    "SIGSTOP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGXCPU",
    "SIGXFSZ",
    "SIGVTALRM",
    "SIGPROF",
    "SIGWINCH",
    "SIGIO",
    "SIGPWR",
    "SIGSYS",
];

/// `9` → `"SIGKILL"`; real-time and unknown signals as `"SIG<n>"`.
pub fn signal_name(number: u8) -> String {
    match number.checked_sub(1).and_then(|index| NAMES.get(usize::from(index))) {
        Some(name) => (*name).to_owned(),
        None => format!("SIG{number}"),
    }
}

/// `"SIGKILL"` → `9`.
pub fn signal_number(name: &str) -> Option<u8> {
    let alias = match name {
        "SIGPOLL" => "SIGIO",
        "SIGIOT" => "SIGABRT",
        other => other,
    };
    NAMES.iter().position(|known| *known == alias).map(|index| index as u8 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_agree() {
        for number in 1..=31 {
            assert_eq!(signal_number(&signal_name(number)), Some(number));
        }
        assert_eq!(signal_name(9), "SIGKILL");
        assert_eq!(signal_name(15), "SIGTERM");
        assert_eq!(signal_name(34), "SIG34");
        assert_eq!(signal_number("SIGNOPE"), None);
    }
}
