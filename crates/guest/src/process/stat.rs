//! One process, as in `/proc/<pid>/stat`.

use std::fs;
use std::path::Path;

/// Set while a task is exiting (`PF_EXITING` in the kernel's `sched.h`).
const EXITING: u64 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) parent: i32,
    /// Its own and of those it has waited for, in ticks of the processor.
    pub(super) ticks: u64,
    pub(super) threads: u64,
    /// This thread (by default the first) is exiting.
    is_ending: bool,
}

pub(super) fn pids() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Whether all of its threads have ended or are exiting.
pub(super) fn is_ending(pid: i32) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    threads.filter_map(|thread| Stat::read_at(&thread.path())).all(|stat| stat.is_ending)
}

impl Stat {
    /// None of a process that is gone.
    pub(super) fn read(pid: i32) -> Option<Stat> {
        Stat::read_at(Path::new(&format!("/proc/{pid}")))
    }

    fn read_at(folder: &Path) -> Option<Stat> {
        Stat::parse(&fs::read(folder.join("stat")).ok()?)
    }

    /// It does nothing any more. A process whose first thread has ended may go on with the others.
    pub(super) fn is_over(&self) -> bool {
        self.is_ending && self.threads <= 1
    }

    /// `pid (name) state parent …`, where the name may hold any bytes, parentheses and spaces included.
    fn parse(stat: &[u8]) -> Option<Stat> {
        let after_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
        let mut words = std::str::from_utf8(&stat[after_name..]).ok()?.split_whitespace();
        let state = words.next()?;
        let fields: Vec<i64> = words.map(|word| word.parse().unwrap_or(0)).collect();
        // The parent is the 4th of all, flags the 9th, the four times begin with the 14th, threads are the 20th.
        let [parent, flags, threads] = [*fields.first()?, *fields.get(5)?, *fields.get(16)?];
        let ticks: i64 = fields.get(10..14)?.iter().sum();
        let is_ending = matches!(state, "Z" | "X") || flags as u64 & EXITING != 0;
        Some(Stat { parent: parent as i32, ticks: ticks as u64, threads: threads as u64, is_ending })
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
        assert_eq!(parse("S 42", 4_194_560, 3), Stat { parent: 42, ticks: 26, threads: 3, is_ending: false });
        assert!(parse("Z 42", 4_227_148, 1).is_over());
        assert!(parse("R 42", 4_194_316, 1).is_over(), "exiting, and not yet a zombie");
        assert!(!parse("Z 42", 4_227_148, 2).is_over(), "only the first of its threads has ended");
        assert_eq!((Stat::parse(b""), Stat::parse(b"garbage"), Stat::parse(b"7 (cut) S 1")), (None, None, None));
    }

    #[test]
    fn we_are_among_the_living() {
        let own = std::process::id() as i32;
        assert!(pids().any(|pid| pid == own));
        assert!(Stat::read(own).is_some_and(|stat| !stat.is_over() && stat.threads > 0));
        assert!(!is_ending(own));
    }

    #[test]
    fn one_that_nobody_has_waited_for_is_ending() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id() as i32;
        while !is_ending(pid) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(Stat::read(pid).is_some(), "it is still there");
        child.wait().unwrap();
        assert!(is_ending(pid) && Stat::read(pid).is_none(), "and gone");
    }
}
