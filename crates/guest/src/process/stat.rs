//! One process, in the kernel's words: `/proc/<pid>/stat`.

use std::fs;

/// Set while a task is on its way out (`PF_EXITING` in the kernel's `sched.h`).
const EXITING: u64 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) parent: i32,
    /// Its own and of those it has waited for, in ticks of the processor.
    pub(super) ticks: u64,
    pub(super) threads: u64,
    /// It does nothing any more. One whose first thread alone has ended goes on with the others.
    pub(super) is_over: bool,
}

pub(super) fn pids() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

impl Stat {
    /// None of a process that is gone.
    pub(super) fn read(pid: i32) -> Option<Stat> {
        Stat::parse(&fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// `pid (name) state parent …`, where the name is any bytes, parentheses and spaces among them.
    fn parse(stat: &[u8]) -> Option<Stat> {
        let after_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
        let mut words = std::str::from_utf8(&stat[after_name..]).ok()?.split_whitespace();
        let state = words.next()?;
        let fields: Vec<i64> = words.map(|word| word.parse().unwrap_or(0)).collect();
        // The parent is the 4th of all, flags the 9th, the four times begin with the 14th, threads are the 20th.
        let [parent, flags, threads] = [*fields.first()?, *fields.get(5)?, *fields.get(16)?];
        let ticks: i64 = fields.get(10..14)?.iter().sum();
        let has_no_first = matches!(state, "Z" | "X") || flags as u64 & EXITING != 0;
        let threads = threads as u64;
        Some(Stat { parent: parent as i32, ticks: ticks as u64, threads, is_over: has_no_first && threads <= 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_words_are_read() {
        let parse = |start: &str, flags: u64, threads: u64| {
            let name = [b"7 (a) R 1 (\xff) ".as_slice(), start.as_bytes()].concat();
            let rest = format!(" 7 7 0 -1 {flags} 100 0 0 0 5 6 7 8 20 0 {threads} 0 100 1000 200\n");
            Stat::parse(&[name, rest.into_bytes()].concat()).unwrap()
        };
        assert_eq!(parse("S 42", 4_194_560, 3), Stat { parent: 42, ticks: 26, threads: 3, is_over: false });
        assert!(parse("Z 42", 4_227_148, 1).is_over);
        assert!(parse("R 42", 4_194_316, 1).is_over, "exiting, and not yet a zombie");
        assert!(!parse("Z 42", 4_227_148, 2).is_over, "only the first of its threads has ended");
        assert_eq!((Stat::parse(b""), Stat::parse(b"garbage"), Stat::parse(b"7 (cut) S 1")), (None, None, None));
    }

    #[test]
    fn we_are_among_the_living() {
        let own = std::process::id() as i32;
        assert!(pids().any(|pid| pid == own));
        assert!(Stat::read(own).is_some_and(|stat| !stat.is_over && stat.threads > 0));
    }
}
