//! What the sandbox uses, by its cgroup's own counters, in both of their versions.

use std::fs;

use cofferdam_protocol::Stats;

use crate::process::usage;

/// All but the workspace, which the cgroup does not count.
pub(crate) fn read() -> Stats {
    let oom_kills = crate::process::oom_kills();
    if fs::exists("/sys/fs/cgroup/cgroup.controllers").unwrap_or(false) {
        Stats { oom_kills, ..second_version(&|file| fs::read_to_string(format!("/sys/fs/cgroup/{file}")).ok()) }
    } else if !fs::exists("/sys/fs/cgroup/memory").unwrap_or(false) {
        let usage = usage::now();
        Stats {
            oom_kills,
            cpu_us: usage.cpu_us,
            memory_bytes: usage.memory_bytes,
            memory_peak_bytes: usage::peak(usage.memory_bytes),
            pids: usage.tasks,
            ..Stats::default()
        }
    } else {
        Stats { oom_kills, ..first_version(&|file| fs::read_to_string(format!("/sys/fs/cgroup/{file}")).ok()) }
    }
}

type Files<'a> = &'a dyn Fn(&str) -> Option<String>;

fn number(files: Files<'_>, file: &str) -> u64 {
    files(file).and_then(|text| text.trim().parse().ok()).unwrap_or_default()
}

/// From lines of `name value`.
fn field(files: Files<'_>, file: &str, name: &str) -> u64 {
    let find =
        |text: String| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok());
    files(file).and_then(find).unwrap_or_default()
}

fn first_version(files: Files<'_>) -> Stats {
    let moved = |what: &str| -> u64 {
        let text = files("blkio/blkio.throttle.io_service_bytes").unwrap_or_default();
        text.lines().filter_map(|line| line.split_once(what)?.1.trim().parse::<u64>().ok()).sum()
    };
    let inactive = field(files, "memory/memory.stat", "total_inactive_file");
    Stats {
        cpu_us: number(files, "cpuacct/cpuacct.usage") / 1000,
        memory_bytes: number(files, "memory/memory.usage_in_bytes").saturating_sub(inactive),
        memory_peak_bytes: number(files, "memory/memory.max_usage_in_bytes"),
        pids: number(files, "pids/pids.current"),
        io_read_bytes: moved(" Read "),
        io_write_bytes: moved(" Write "),
        ..Stats::default()
    }
}

fn second_version(files: Files<'_>) -> Stats {
    let moved = |what: &str| -> u64 {
        let text = files("io.stat").unwrap_or_default();
        text.split_whitespace().filter_map(|word| word.strip_prefix(what)?.parse::<u64>().ok()).sum()
    };
    let now = number(files, "memory.current");
    Stats {
        cpu_us: field(files, "cpu.stat", "usage_usec"),
        memory_bytes: now.saturating_sub(field(files, "memory.stat", "inactive_file")),
        // Kernels before 5.19 do not keep it.
        memory_peak_bytes: number(files, "memory.peak").max(now),
        pids: number(files, "pids.current"),
        io_read_bytes: moved("rbytes="),
        io_write_bytes: moved("wbytes="),
        ..Stats::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_read() {
        let first = |file: &str| {
            let text = match file {
                "cpuacct/cpuacct.usage" => "5000000\n",
                "memory/memory.usage_in_bytes" => "1000\n",
                "memory/memory.stat" => "cache 5\ninactive_file 7\ntotal_inactive_file 400\n",
                "memory/memory.max_usage_in_bytes" => "2000\n",
                "pids/pids.current" => "3\n",
                "blkio/blkio.throttle.io_service_bytes" => "8:0 Read 10\n8:0 Write 20\n8:1 Read 1\nTotal 31\n",
                _ => return None,
            };
            Some(text.to_owned())
        };
        let second = |file: &str| {
            let text = match file {
                "cpu.stat" => "usage_usec 5000\nuser_usec 3\n",
                "memory.current" => "1000\n",
                "memory.stat" => "anon 1\ninactive_file 400\n",
                "memory.peak" => "2000\n",
                "pids.current" => "3\n",
                "io.stat" => "8:0 rbytes=10 wbytes=20 rios=1\n8:1 rbytes=1 wbytes=0\n",
                _ => return None,
            };
            Some(text.to_owned())
        };
        let expected = Stats {
            cpu_us: 5000,
            memory_bytes: 600,
            memory_peak_bytes: 2000,
            pids: 3,
            io_read_bytes: 11,
            io_write_bytes: 20,
            ..Stats::default()
        };
        assert_eq!(first_version(&first), expected);
        assert_eq!(second_version(&second), expected);
        assert_eq!(second_version(&|_| None), Stats::default());
    }
}
