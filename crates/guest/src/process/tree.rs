//! A command's whole tree: everything below its supervisor, whatever became of sessions, groups and parents.
//!
//! Orphans come to the supervisor because it is a child subreaper, so that being below it in `/proc` is the same as
//! having been started by the command. Needs no fork and little memory, for it is used against fork bombs.

use std::collections::{HashMap, HashSet};
use std::fs;

use rustix::process::{Pid, Signal, kill_process};

/// Passes over `/proc` before the stopped part of a tree is killed anyway.
const MAX_PASSES: usize = 64;

#[derive(Debug, Clone, Copy)]
struct Entry {
    pid: i32,
    parent: i32,
    zombie: bool,
}

/// Sends `signal` to every process below `supervisor`.
pub(crate) fn signal(supervisor: i32, signal: Signal) {
    send(&below(supervisor), signal);
}

/// Asks every process below `supervisor` to end; a stopped one is woken to hear it.
pub(crate) fn terminate(supervisor: i32) {
    let pids = below(supervisor);
    send(&pids, Signal::TERM);
    send(&pids, Signal::CONT);
}

/// Kills every process below `supervisor`. First all are stopped, over and over until no new one shows up: a process
/// that is stopped cannot fork, so that a tree that grows while it is killed comes to an end.
pub(crate) fn kill(supervisor: i32) {
    let mut stopped = HashSet::new();
    for _ in 0..MAX_PASSES {
        let fresh: Vec<i32> = below(supervisor).into_iter().filter(|pid| stopped.insert(*pid)).collect();
        if fresh.is_empty() {
            break;
        }
        send(&fresh, Signal::STOP);
    }
    send(&below(supervisor), Signal::KILL);
}

fn send(pids: &[i32], signal: Signal) {
    for pid in pids.iter().copied().filter_map(Pid::from_raw) {
        // One that has just ended is what we want anyway.
        let _ = kill_process(pid, signal);
    }
}

fn below(root: i32) -> Vec<i32> {
    let mut children: HashMap<i32, Vec<Entry>> = HashMap::new();
    for entry in entries() {
        children.entry(entry.parent).or_default().push(entry);
    }
    let mut found = Vec::new();
    let mut pending = vec![root];
    while let Some(parent) = pending.pop() {
        for entry in children.remove(&parent).unwrap_or_default() {
            pending.push(entry.pid);
            if !entry.zombie {
                found.push(entry.pid);
            }
        }
    }
    found
}

fn entries() -> impl Iterator<Item = Entry> {
    fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|entry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        parse_stat(pid, &stat)
    })
}

/// `pid (name) state parent …`, where the name may itself hold parentheses and spaces.
fn parse_stat(pid: i32, stat: &[u8]) -> Option<Entry> {
    let after_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
    let mut fields = stat[after_name..].split(|byte| *byte == b' ').filter(|field| !field.is_empty());
    let state = fields.next()?;
    let parent = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    Some(Entry { pid, parent, zombie: matches!(state, b"Z" | b"X") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_confuse() {
        let entry = parse_stat(7, b"7 (a) R 1 (b)) Z 42 7 7 0").unwrap();
        assert_eq!((entry.parent, entry.zombie), (42, true));
        assert!(parse_stat(7, b"garbage").is_none());
    }
}
