//! What all processes of the sandbox use, by the kernel's word for each: for where no cgroup adds it up.

use std::cell::Cell;
use std::fs;

thread_local! {
    static PEAK: Cell<u64> = const { Cell::new(0) };
}

/// All of them together, PID 1 included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Of living processes and of those they have waited for.
    pub(crate) cpu_us: u64,
    /// Their own: what several share is nobody's.
    pub(crate) memory_bytes: u64,
    /// Processes and threads.
    pub(crate) tasks: u64,
    /// The process with the most memory; never PID 1.
    pub(crate) largest: Option<i32>,
}

pub(crate) fn now() -> Usage {
    let tick_us = 1_000_000 / rustix::param::clock_ticks_per_second().max(1);
    let (mut usage, mut most) = (Usage::default(), 0);
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let Some((ticks, threads)) = parse_stat(&stat) else { continue };
        let memory = of(pid);
        usage.cpu_us += ticks * tick_us;
        usage.tasks += threads;
        usage.memory_bytes += memory;
        if pid != 1 && memory > most {
            (usage.largest, most) = (Some(pid), memory);
        }
    }
    peak(usage.memory_bytes);
    usage
}

/// Bytes of one process that are its own.
pub(crate) fn of(pid: i32) -> u64 {
    let statm = fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    parse_statm(&statm).unwrap_or_default() * rustix::param::page_size() as u64
}

/// The most that was ever seen.
pub(crate) fn peak(memory_bytes: u64) -> u64 {
    PEAK.set(PEAK.get().max(memory_bytes));
    PEAK.get()
}

/// Ticks of the processor, and threads. The name before may itself hold parentheses and spaces.
fn parse_stat(stat: &str) -> Option<(u64, u64)> {
    let fields: Vec<u64> =
        stat.rsplit_once(')')?.1.split_whitespace().skip(1).map(|word| word.parse().unwrap_or(0)).collect();
    // utime, stime, cutime and cstime are the 14th and following, num_threads the 20th; three were skipped.
    Some((fields.get(10..14)?.iter().sum(), *fields.get(16)?))
}

/// Pages that are resident and not shared.
fn parse_statm(statm: &str) -> Option<u64> {
    let mut pages = statm.split_whitespace().skip(1).map_while(|word| word.parse::<u64>().ok());
    let (resident, shared) = (pages.next()?, pages.next()?);
    Some(resident.saturating_sub(shared))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_words_are_read() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 100 0 0 0 5 6 7 8 20 0 3 0 100 1000 200";
        assert_eq!(parse_stat(stat), Some((26, 3)));
        assert_eq!(parse_statm("1000 300 100 1 0 50 0"), Some(200));
        assert_eq!((parse_stat(""), parse_statm("")), (None, None));
        assert!(now().memory_bytes > 0 && now().tasks > 0);
    }
}
