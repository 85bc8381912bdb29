//! The `/etc` of a box that uses the machine's own programs: what programs need to run, and nothing about the machine, its
//! users or its secrets. Only files known to be harmless are copied.

use std::collections::hash_map::DefaultHasher;
use std::ffi::OsStr;
use std::fs::{self, DirEntry, Permissions};
use std::hash::{Hash, Hasher};
use std::io;
use std::iter;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::removal::remove;

/// Where copies are in the state folder.
const FOLDER: &str = "etc";

/// What programs look up, and what holds no secrets.
const SEEN: [&str; 61] = [
    "ImageMagick-6",
    "R",
    "alpine-release",
    "alternatives",
    "arch-release",
    "bash.bashrc",
    "bash_completion.d",
    "bashrc",
    "bindresvport.blacklist",
    "ca-certificates",
    "ca-certificates.conf",
    "crypto-policies",
    "csh.cshrc",
    "csh.login",
    "debian_version",
    "dpkg",
    "emacs",
    "ethertypes",
    "fedora-release",
    "fonts",
    "gai.conf",
    "host.conf",
    "inputrc",
    "issue",
    "java-17-openjdk",
    "java-21-openjdk",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "libnl-3",
    "locale.alias",
    "locale.conf",
    "locale.gen",
    "localtime",
    "login.defs",
    "lsb-release",
    "magic",
    "magic.mime",
    "mailcap",
    "mime.types",
    "nanorc",
    "networks",
    "nsswitch.conf",
    "os-release",
    "perl",
    "pki",
    "profile",
    "protocols",
    "python3",
    "redhat-release",
    "rpc",
    "services",
    "shells",
    "skel",
    "ssl",
    "system-release",
    "terminfo",
    "timezone",
    "vim",
    "xattr.conf",
    "xdg",
];

/// Left out below the paths above.
const UNSEEN: [&str; 3] = ["ssl/private", "pki/tls/private", "pki/nssdb"];

fn is_seen(name: &str) -> bool {
    let is_python =
        || name.strip_prefix("python").is_some_and(|rest| rest.starts_with(|digit: char| digit.is_ascii_digit()));
    SEEN.contains(&name) || is_python()
}

/// A folder with the visible part of the machine's `/etc`, and its own files for users and host names.
///
/// It is a copy in the state folder, reused until `/etc` changes: a box does not see later changes. All of it is readable by
/// everybody, so a box's root may own it. `name` must be unique.
pub(super) fn copy(state: &Path, name: &OsStr) -> io::Result<PathBuf> {
    let kept = state.join(FOLDER).join(generation()?);
    if kept.exists() {
        return Ok(kept);
    }
    let draft = state.join(FOLDER).join(name);
    fs::create_dir_all(&draft)?;
    fill(Path::new("/etc"), &draft)?;
    match renameat_with(CWD, &draft, CWD, &kept, RenameFlags::NOREPLACE) {
        // Another keeper was faster.
        Err(Errno::EXIST) => remove(&draft)?,
        other => other?,
    }
    Ok(kept)
}

/// Changes with `/etc`, with what is visible of it, and with this program.
fn generation() -> io::Result<String> {
    let mut hasher = DefaultHasher::new();
    (env!("CARGO_PKG_VERSION"), SEEN).hash(&mut hasher);
    let mut seen: Vec<PathBuf> = seen(Path::new("/etc"))?.map(|entry| entry.path()).collect();
    seen.sort();
    for path in iter::once(PathBuf::from("/etc")).chain(seen) {
        let metadata = fs::symlink_metadata(&path)?;
        (path, metadata.ctime(), metadata.ctime_nsec()).hash(&mut hasher);
    }
    Ok(format!("{:016x}", hasher.finish()))
}

fn seen(etc: &Path) -> io::Result<impl Iterator<Item = DirEntry>> {
    let is_seen = |entry: &DirEntry| entry.file_name().to_str().is_some_and(is_seen);
    Ok(fs::read_dir(etc)?.flatten().filter(is_seen))
}

fn fill(etc: &Path, target: &Path) -> io::Result<()> {
    let unseen = UNSEEN.map(|path| etc.join(path));
    for entry in seen(etc)? {
        copy_tree(&entry.path(), &target.join(entry.file_name()), &unseen)?;
    }
    let read = |name: &str| fs::read_to_string(etc.join(name)).unwrap_or_default();
    let own = [
        ("passwd", system_accounts(&read("passwd"))),
        ("group", without_members(&system_accounts(&read("group")))),
        ("hosts", "127.0.0.1 localhost sandbox\n::1 localhost ip6-localhost ip6-loopback\n".to_owned()),
        ("hostname", "sandbox\n".to_owned()),
        ("resolv.conf", String::new()),
    ];
    for (name, text) in own {
        let file = target.join(name);
        fs::write(&file, text)?;
        fs::set_permissions(file, Permissions::from_mode(0o644))?;
    }
    symlink("/proc/self/mounts", target.join("mtab"))?;
    fs::set_permissions(target, Permissions::from_mode(0o755))
}

/// Leaves out what is not readable by everybody.
fn copy_tree(from: &Path, to: &Path, unseen: &[PathBuf]) -> io::Result<()> {
    let Ok(metadata) = fs::symlink_metadata(from) else { return Ok(()) };
    let may_everybody = |bits: u32| metadata.mode() & bits == bits;
    if metadata.is_symlink() {
        symlink(fs::read_link(from)?, to)?;
    } else if metadata.is_dir() && may_everybody(0o005) && !unseen.iter().any(|path| path == from) {
        fs::create_dir(to)?;
        for entry in fs::read_dir(from)?.flatten() {
            copy_tree(&entry.path(), &to.join(entry.file_name()), unseen)?;
        }
        fs::set_permissions(to, Permissions::from_mode(0o755))?;
    } else if metadata.is_file() && may_everybody(0o004) {
        fs::copy(from, to)?;
    }
    Ok(())
}

/// System accounts only: a box does not learn who uses the machine.
fn system_accounts(text: &str) -> String {
    let is_system = |line: &&str| {
        let id = line.split(':').nth(2).and_then(|id| id.parse::<u32>().ok());
        id.is_some_and(|id| id < 1000 || id == 65534)
    };
    text.lines().filter(is_system).flat_map(|line| [line, "\n"]).collect()
}

/// Groups without their members.
fn without_members(groups: &str) -> String {
    let bare = |line: &str| line.rsplit_once(':').map(|(group, _)| format!("{group}:\n"));
    groups.lines().filter_map(bare).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_and_strangers_are_not_seen() {
        for name in ["shadow", "ssh", "sudoers", "docker", "machine-id", "environment", "fstab", "my-application"] {
            assert!(!is_seen(name), "{name}");
        }
        for name in ["ld.so.cache", "ssl", "python3", "python3.11", "localtime"] {
            assert!(is_seen(name), "{name}");
        }
        assert!(!is_seen("python-secrets"));
    }

    #[test]
    fn what_not_everybody_may_read_is_left_out() {
        let home = tempfile::tempdir().unwrap();
        let (etc, target) = (home.path().join("etc"), home.path().join("copy"));
        for folder in ["ssl/private", "ssl/certs", "profile.d", "ssh"] {
            fs::create_dir_all(etc.join(folder)).unwrap();
        }
        fs::create_dir(&target).unwrap();
        for (file, mode) in [
            ("shadow", 0o644),
            ("ssh/key", 0o644),
            ("ssl/private/key", 0o644),
            ("ssl/certs/own", 0o600),
            ("ssl/certs/all", 0o644),
            ("profile", 0o640),
            ("inputrc", 0o644),
        ] {
            fs::write(etc.join(file), "").unwrap();
            fs::set_permissions(etc.join(file), Permissions::from_mode(mode)).unwrap();
        }
        symlink("/usr/lib/os-release", etc.join("os-release")).unwrap();
        fs::write(etc.join("passwd"), "root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n").unwrap();
        fill(&etc, &target).unwrap();
        let is_there = |path: &str| target.join(path).symlink_metadata().is_ok();
        for path in ["ssl/certs/all", "inputrc", "os-release", "mtab", "hosts", "resolv.conf"] {
            assert!(is_there(path), "{path}");
        }
        for path in ["shadow", "ssh", "ssl/private", "ssl/certs/own", "profile"] {
            assert!(!is_there(path), "{path}");
        }
        assert_eq!(fs::read_to_string(target.join("passwd")).unwrap(), "root:x:0:0::/root:/bin/sh\n");
    }

    #[test]
    fn a_copy_is_made_once() {
        let state = tempfile::tempdir().unwrap();
        let first = copy(state.path(), OsStr::new("one")).unwrap();
        assert_eq!(copy(state.path(), OsStr::new("two")).unwrap(), first);
        assert_eq!(fs::read_dir(state.path().join(FOLDER)).unwrap().count(), 1);
    }

    #[test]
    fn people_are_not_seen() {
        let groups = "root:x:0:\nsudo:x:27:ann,bob\nann:x:1000:\nnogroup:x:65534:\n";
        assert_eq!(without_members(&system_accounts(groups)), "root:x:0:\nsudo:x:27:\nnogroup:x:65534:\n");
    }
}
