//! What all processes of the sandbox use together, summed from `/proc`: for where no cgroup counts it.

use std::cell::Cell;
use std::fs;
use std::path::PathBuf;

use super::stat::{Stat, pids};

thread_local! {
    static PEAK: Cell<u64> = const { Cell::new(0) };
}

/// All of them together, PID 1 included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Of living processes and of those they have waited for.
    pub(crate) cpu_us: u64,
    /// Their private memory.
    pub(crate) memory_bytes: u64,
    /// Their resident memory; shared pages count for each of them.
    pub(crate) resident_bytes: u64,
    /// Processes and threads.
    pub(crate) tasks: u64,
}

pub(crate) fn now() -> Usage {
    let tick_us = 1_000_000 / rustix::param::clock_ticks_per_second().max(1);
    let mut usage = Usage::default();
    for pid in pids() {
        let Some(stat) = Stat::read(pid) else { continue };
        let (resident, memory) = sizes(pid);
        usage.cpu_us += stat.ticks * tick_us;
        usage.tasks += stat.threads;
        usage.memory_bytes += memory;
        usage.resident_bytes += resident;
    }
    peak(usage.memory_bytes);
    usage
}

/// The folders in `/proc` for a process: itself, then its threads. Once the first thread has ended, only the others show its
/// memory.
fn folders(pid: i32) -> impl Iterator<Item = PathBuf> {
    let whole = PathBuf::from(format!("/proc/{pid}"));
    let tasks = whole.join("task");
    let threads = std::iter::once_with(|| fs::read_dir(tasks).into_iter().flatten().flatten()).flatten();
    std::iter::once(whole).chain(threads.map(|thread| thread.path()))
}

/// Private bytes of one process.
pub(crate) fn of(pid: i32) -> u64 {
    sizes(pid).1
}

/// Resident bytes of one process, and its private ones.
fn sizes(pid: i32) -> (u64, u64) {
    let at = |folder: PathBuf| parse_statm(&fs::read_to_string(folder.join("statm")).ok()?);
    let (resident, own) = folders(pid).filter_map(at).find(|(resident, _)| *resident > 0).unwrap_or_default();
    let page = rustix::param::page_size() as u64;
    (resident * page, own * page)
}

/// The memory that all processes really use, and the one that uses the most; never PID 1.
///
/// Slow for many processes, so only for when the cheap sum of [`now`] is over a limit. Without file pages, which the kernel
/// can reclaim.
pub(crate) fn weigh(limit: u64) -> Option<(u64, i32)> {
    // Shared memory counts for each process: compute shares only if that sum is too much.
    let no_file = |pid: i32| sum(pid, "status", ["RssAnon:", "RssShmem:"]);
    if pids().filter_map(no_file).sum::<u64>() <= limit {
        return None;
    }
    let share = |pid: i32| (sum(pid, "smaps_rollup", ["Pss_Anon:", "Pss_Shmem:"]).unwrap_or_else(|| of(pid)), pid);
    let shares: Vec<(u64, i32)> = pids().map(share).collect();
    let all = shares.iter().map(|(bytes, _)| bytes).sum();
    let (_, largest) = shares.into_iter().filter(|(_, pid)| *pid != 1).max()?;
    Some((all, largest))
}

/// Lines of a file about a process, which are in KiB; those of another user may not be read.
fn sum(pid: i32, file: &str, names: [&str; 2]) -> Option<u64> {
    // The name in it may be any bytes.
    let at = |folder: PathBuf| parse_sum(&String::from_utf8_lossy(&fs::read(folder.join(file)).ok()?), names);
    folders(pid).filter_map(at).find(|bytes| *bytes > 0)
}

fn parse_sum(text: &str, names: [&str; 2]) -> Option<u64> {
    let value = |line: &str| line.split_whitespace().nth(1)?.parse::<u64>().ok();
    let wanted = text.lines().filter(|line| names.iter().any(|name| line.starts_with(name)));
    wanted.map(value).sum::<Option<u64>>().map(|kib| kib * 1024)
}

/// The most that was ever seen.
pub(crate) fn peak(memory_bytes: u64) -> u64 {
    PEAK.set(PEAK.get().max(memory_bytes));
    PEAK.get()
}

/// Resident pages, and private ones.
fn parse_statm(statm: &str) -> Option<(u64, u64)> {
    let mut pages = statm.split_whitespace().skip(1).map_while(|word| word.parse::<u64>().ok());
    let (resident, shared) = (pages.next()?, pages.next()?);
    Some((resident, resident.saturating_sub(shared)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_words_are_read() {
        assert_eq!(parse_statm("1000 300 100 1 0 50 0"), Some((300, 200)));
        assert_eq!(parse_statm(""), None);
        assert!(now().memory_bytes > 0 && now().tasks > 0);
        assert!(now().resident_bytes >= now().memory_bytes);
        let rollup = "Pss:   9 kB\nPss_Anon:   3 kB\nPss_File:   4 kB\nPss_Shmem:   2 kB\n";
        assert_eq!(parse_sum(rollup, ["Pss_Anon:", "Pss_Shmem:"]), Some(5 * 1024));
        assert!(weigh(0).is_some_and(|(bytes, largest)| bytes > 0 && largest != 1));
        assert_eq!(weigh(u64::MAX), None);
    }
}
