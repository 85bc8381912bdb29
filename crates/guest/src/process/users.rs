//! The command user, from the sandbox's own `/etc/passwd` and `/etc/group`. Without name services: the guest is static,
//! and the image may have none.

use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::MetadataExt;

use cofferdam_protocol::{Fault, FaultCode};

use crate::requests::fault;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) groups: Vec<u32>,
    pub(crate) home: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) shell: Option<String>,
}

/// The owner of new files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// Root, as which the guest runs.
pub(crate) const ROOT: Owner = Owner { uid: 0, gid: 0 };

impl User {
    pub(crate) fn owner(&self) -> Owner {
        Owner { uid: self.uid, gid: self.gid }
    }
}

/// `uid[:gid]`, `name[:group]` or a mix; root when absent.
pub(crate) fn resolve(user: Option<&str>) -> Result<User, Fault> {
    thread_local! {
        static PASSWD: RefCell<Cached> = const { RefCell::new(Cached::of("/etc/passwd")) };
        static GROUP: RefCell<Cached> = const { RefCell::new(Cached::of("/etc/group")) };
    }
    PASSWD.with_borrow_mut(|passwd| {
        GROUP.with_borrow_mut(|group| resolve_in(user.unwrap_or("0"), passwd.read(), group.read()))
    })
}

/// A file that is read again only when it has changed: every command and every file asks for its user.
struct Cached {
    path: &'static str,
    stamp: Option<(u64, i64, i64, u64)>,
    text: String,
}

impl Cached {
    const fn of(path: &'static str) -> Cached {
        Cached { path, stamp: None, text: String::new() }
    }

    fn read(&mut self) -> &str {
        let stamp = |file: fs::Metadata| (file.ino(), file.mtime(), file.mtime_nsec(), file.len());
        let now = fs::metadata(self.path).ok().map(stamp);
        if now.is_none() || now != self.stamp {
            self.text = fs::read_to_string(self.path).unwrap_or_default();
            self.stamp = now;
        }
        &self.text
    }
}

fn resolve_in(user: &str, passwd: &str, group: &str) -> Result<User, Fault> {
    let (who, group_name) = match user.split_once(':') {
        Some((who, group)) => (who, Some(group)),
        None => (user, None),
    };
    let unknown = |what: &str, name: &str, file: &str| {
        let message =
            format!("there is no {what} \"{name}\" in the sandbox's {file}; use a numeric id, or add it first");
        fault(FaultCode::InvalidArgument, message)
    };
    // To the kernel the last number means "leave it as it is".
    let id = |text: &str| text.parse::<u32>().ok().filter(|id| *id != u32::MAX);
    let number = id(who);
    let account = records(passwd).find(|fields| match number {
        Some(uid) => field(fields, 2) == Some(uid),
        None => fields.first() == Some(&who),
    });
    let mut found = match (&account, number) {
        (Some(fields), _) => User {
            uid: field(fields, 2).unwrap_or_default(),
            gid: field(fields, 3).unwrap_or_default(),
            groups: Vec::new(),
            home: fields.get(5).map(|home| (*home).to_owned()),
            name: fields.first().map(|name| (*name).to_owned()),
            shell: fields.get(6).filter(|shell| !shell.is_empty()).map(|shell| (*shell).to_owned()),
        },
        (None, Some(uid)) => User { uid, ..User::default() },
        (None, None) => return Err(unknown("user", who, "/etc/passwd")),
    };
    if let Some(name) = group_name {
        let listed =
            || records(group).find(|fields| fields.first() == Some(&name)).and_then(|fields| field(&fields, 2));
        found.gid = id(name).or_else(listed).ok_or_else(|| unknown("group", name, "/etc/group"))?;
    } else if let Some(name) = found.name.clone() {
        let is_member = |fields: &Vec<&str>| fields.get(3).is_some_and(|list| list.split(',').any(|who| who == name));
        found.groups = records(group).filter(is_member).filter_map(|fields| field(&fields, 2)).collect();
    }
    Ok(found)
}

fn records(file: &str) -> impl Iterator<Item = Vec<&str>> {
    file.lines().map(|line| line.split(':').collect())
}

fn field(fields: &[&str], index: usize) -> Option<u32> {
    fields.get(index)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\nann:x:1000:100::/home/ann:/bin/bash\n";
    const GROUP: &str = "root:x:0:\nusers:x:100:\nwheel:x:10:bob,ann\n";

    fn ids(user: &str) -> Result<(u32, u32, Vec<u32>), FaultCode> {
        resolve_in(user, PASSWD, GROUP).map(|user| (user.uid, user.gid, user.groups)).map_err(|fault| fault.code)
    }

    #[test]
    fn names_numbers_and_mixes_resolve_as_docker_does() {
        assert_eq!(ids("ann"), Ok((1000, 100, vec![10])));
        assert_eq!(ids("1000"), Ok((1000, 100, vec![10])));
        assert_eq!(ids("1000:5"), Ok((1000, 5, vec![])));
        assert_eq!(ids("ann:wheel"), Ok((1000, 10, vec![])));
        assert_eq!(ids("4711"), Ok((4711, 0, vec![])));
        assert_eq!(ids("nobody-here"), Err(FaultCode::InvalidArgument));
        assert_eq!(ids("ann:nope"), Err(FaultCode::InvalidArgument));
        for bad in ["", "4294967295", "0:4294967295", "-1", "99999999999"] {
            assert_eq!(ids(bad), Err(FaultCode::InvalidArgument), "{bad}");
        }
    }
}
