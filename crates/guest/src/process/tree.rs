//! A command's whole tree: everything below its supervisor, whatever became of sessions, groups and parents.
//!
//! Orphans go to the supervisor because it is a child subreaper, so every process below it in `/proc` was started by the
//! command. Needs no fork and little memory, because it is used against fork bombs.

use std::collections::{HashMap, HashSet};
use std::fs;

use cofferdam_protocol::Killed;
use rustix::process::{Pid, Signal, kill_process};

use super::stat::{self, Stat};

/// At most this many are named.
const DESCRIBED: usize = 64;

/// Passes over `/proc` before the stopped part of a tree is killed anyway.
const MAX_PASSES: usize = 64;

/// Sends `signal` to every process below `supervisor`.
pub(crate) fn signal(supervisor: i32, signal: Signal) {
    send(&below(supervisor), signal);
}

/// Sends TERM to every process below `supervisor`, and CONT to stopped ones. Shells on a terminal end only on HUP. Returns
/// those that got it.
pub(crate) fn terminate(supervisor: i32, hang_up: bool) -> Vec<Killed> {
    let pids = below(supervisor);
    let asked = describe(&pids);
    if hang_up {
        send(&pids, Signal::HUP);
    }
    send(&pids, Signal::TERM);
    send(&pids, Signal::CONT);
    asked
}

/// Kills every process below `supervisor`. First all are stopped, over and over until no new one shows up: a process
/// that is stopped cannot fork, so a tree that grows while it is killed still ends.
pub(crate) fn kill(supervisor: i32) -> Vec<Killed> {
    let mut stopped = HashSet::new();
    for _ in 0..MAX_PASSES {
        let fresh: Vec<i32> = below(supervisor).into_iter().filter(|pid| stopped.insert(*pid)).collect();
        if fresh.is_empty() {
            break;
        }
        send(&fresh, Signal::STOP);
    }
    let last = below(supervisor);
    let killed = describe(&last);
    send(&last, Signal::KILL);
    killed
}

/// Names for some of them.
fn describe(pids: &[i32]) -> Vec<Killed> {
    let line = |pid: i32| -> Option<String> {
        let words = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let text = String::from_utf8_lossy(&words).replace('\0', " ");
        Some(text.trim().chars().take(200).collect())
    };
    pids.iter().take(DESCRIBED).filter_map(|pid| Some(Killed { pid: *pid as u32, command: line(*pid)? })).collect()
}

/// What a tree has written to disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// So far, with what its ended processes wrote.
    Bytes(u64),
    /// Unknown.
    Unknown,
}

/// What the tree below each supervisor has written to disk so far.
pub(crate) fn written(supervisors: &[i32]) -> HashMap<i32, Written> {
    let of = |pid: i32| -> Option<u64> {
        match fs::read_to_string(format!("/proc/{pid}/io")) {
            Ok(io) => io.lines().find_map(|line| line.strip_prefix("write_bytes: ")?.parse().ok()),
            // It has ended since it was listed, or is exiting, when the kernel may refuse: its parent's count gets what it
            // wrote.
            Err(_) if stat::is_ending(pid) => Some(0),
            Err(_) => None,
        }
    };
    let tree = |supervisor: i32| below(supervisor).into_iter().chain([supervisor]);
    let total = |supervisor: i32| match tree(supervisor).map(of).collect::<Option<Vec<u64>>>() {
        Some(counts) => Written::Bytes(counts.into_iter().sum()),
        None => Written::Unknown,
    };
    supervisors.iter().map(|supervisor| (*supervisor, total(*supervisor))).collect()
}

fn send(pids: &[i32], signal: Signal) {
    for pid in pids.iter().copied().filter_map(Pid::from_raw) {
        // It may have just ended.
        let _ = kill_process(pid, signal);
    }
}

fn below(root: i32) -> Vec<i32> {
    let mut children: HashMap<i32, Vec<(i32, Stat)>> = HashMap::new();
    for (pid, stat) in stat::pids().filter_map(|pid| Some((pid, Stat::read(pid)?))) {
        children.entry(stat.parent).or_default().push((pid, stat));
    }
    let mut found = Vec::new();
    let mut pending = vec![root];
    while let Some(parent) = pending.pop() {
        for (pid, stat) in children.remove(&parent).unwrap_or_default() {
            pending.push(pid);
            if !stat.is_over() {
                found.push(pid);
            }
        }
    }
    found
}
