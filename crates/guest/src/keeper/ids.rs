//! User ids: how the users of a box map to users of the machine.
//!
//! Root of the machine is never root of a box: it maps to a high range that nothing else uses. An ordinary user maps to
//! root alone, or with the range that `/etc/subuid` gives it.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use cofferdam_protocol::keeper::Step;

use super::calls::{Outcome, Tried};

/// The first uid of boxes that root of the machine makes.
const BASE: u32 = 1_500_000_000;

/// How many users a box has.
const COUNT: u32 = 65536;

const CAP_SYS_ADMIN: u32 = 21;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ids {
    /// Root of the machine makes it: root of the box is `BASE`.
    HighRange,
    /// An ordinary user, with a range from `/etc/subuid`.
    Subordinate { users: (u32, u32), groups: (u32, u32) },
    /// An ordinary user alone.
    Single,
}

impl Ids {
    /// What this process may map.
    pub(super) fn here() -> Ids {
        if is_root_of_machine() {
            return Ids::HighRange;
        }
        let (uid, gid) = own();
        let name = name_of(uid);
        let range = |file: &str| subordinate(&fs::read_to_string(file).ok()?, uid, name.as_deref());
        match (range("/etc/subuid"), range("/etc/subgid"), tool("newuidmap"), tool("newgidmap")) {
            (Some(users), Some(groups), Some(_), Some(_)) if uid != 0 || gid != 0 => Ids::Subordinate { users, groups },
            _ => Ids::Single,
        }
    }

    /// The uid of a box's root; `None` where it is the calling user.
    pub(super) fn root(&self) -> Option<u32> {
        (*self == Ids::HighRange).then_some(BASE)
    }

    /// Whether boxes have more than one user.
    pub(super) fn is_full(&self) -> bool {
        *self != Ids::Single
    }

    /// Writes the id maps of a process in a new user namespace; returns what it got.
    pub(super) fn give(self, pid: i32) -> Outcome<Ids> {
        let write = |file: &str, text: String| {
            fs::write(format!("/proc/{pid}/{file}"), &text).tried(Step::Ids, || format!("write {text:?} to {file}"))
        };
        let (uid, gid) = own();
        match self {
            Ids::HighRange => {
                write("uid_map", format!("0 {BASE} {COUNT}\n"))?;
                write("gid_map", format!("0 {BASE} {COUNT}\n"))?;
                Ok(self)
            }
            Ids::Subordinate { users, groups }
                if map_with("newuidmap", pid, uid, users) && map_with("newgidmap", pid, gid, groups) =>
            {
                Ok(self)
            }
            Ids::Subordinate { .. } | Ids::Single => {
                write("setgroups", "deny".to_owned())?;
                write("uid_map", format!("0 {uid} 1\n"))?;
                write("gid_map", format!("0 {gid} 1\n"))?;
                Ok(Ids::Single)
            }
        }
    }
}

fn own() -> (u32, u32) {
    (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
}

/// False for root of a container, which has other id maps, or may not mount.
fn is_root_of_machine() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let capabilities = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or_default();
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let sees_all = map.split_whitespace().eq(["0", "0", "4294967295"]);
    own().0 == 0 && sees_all && capabilities & (1 << CAP_SYS_ADMIN) != 0
}

fn name_of(uid: u32) -> Option<String> {
    let passwd = fs::read_to_string("/etc/passwd").ok()?;
    let uid = uid.to_string();
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == uid).then(|| name.to_owned())
    })
}

/// First id and length of a user's range.
fn subordinate(file: &str, uid: u32, name: Option<&str>) -> Option<(u32, u32)> {
    file.lines().find_map(|line| {
        let mut fields = line.split(':');
        let who = fields.next()?;
        let (first, count) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        (Some(who) == name || who == uid.to_string()).then_some((first, count))
    })
}

fn tool(name: &str) -> Option<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default();
    let folders = path.split(':').chain(["/usr/bin", "/bin"]);
    folders.map(|folder| PathBuf::from(folder).join(name)).find(|file| file.is_file())
}

fn map_with(name: &str, pid: i32, own: u32, (first, count): (u32, u32)) -> bool {
    let Some(tool) = tool(name) else { return false };
    let numbers = [pid as u32, 0, own, 1, 1, first, count.min(COUNT - 1)].map(|number| number.to_string());
    let mut command = Command::new(tool);
    command.args(numbers).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_found_by_name_or_by_number() {
        let file = "ann:100000:65536\n1001:165536:65536\nbroken\n";
        assert_eq!(subordinate(file, 1000, Some("ann")), Some((100_000, 65536)));
        assert_eq!(subordinate(file, 1001, None), Some((165_536, 65536)));
        assert_eq!(subordinate(file, 1002, Some("bob")), None);
    }
}
