//! The `/etc` of a box on the machine's own programs: what programs need to run, and nothing that says anything about the
//! machine, its people or its secrets. What is not known to be harmless is not seen.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};

/// What programs look up and nobody keeps a secret in.
const SEEN: [&str; 62] = [
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
    "profile.d",
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

/// Below what is seen, these are not.
const UNSEEN: [&str; 3] = ["ssl/private", "pki/tls/private", "pki/nssdb"];

fn is_seen(name: &str) -> bool {
    let is_python =
        || name.strip_prefix("python").is_some_and(|rest| rest.starts_with(|digit: char| digit.is_ascii_digit()));
    SEEN.contains(&name) || is_python()
}

/// Makes a folder to lay over the machine's: it hides, and has its own of what names people and machines.
pub(super) fn prepare(layer: &str) -> io::Result<()> {
    let layer = Path::new(layer);
    fs::create_dir(layer)?;
    for entry in fs::read_dir("/etc")?.flatten() {
        if !entry.file_name().to_str().is_some_and(is_seen) {
            hide(&layer.join(entry.file_name()))?;
        }
    }
    for path in UNSEEN {
        let (hidden, parent) = (layer.join(path), Path::new("/etc").join(path));
        if let (true, Some(above)) = (parent.exists(), hidden.parent()) {
            fs::create_dir_all(above)?;
            hide(&hidden)?;
        }
    }
    let own = [
        ("passwd", system_accounts(&read("/etc/passwd"))),
        ("group", without_members(&system_accounts(&read("/etc/group")))),
        ("hosts", "127.0.0.1 localhost sandbox\n::1 localhost ip6-localhost ip6-loopback\n".to_owned()),
        ("hostname", "sandbox\n".to_owned()),
        ("resolv.conf", String::new()),
    ];
    for (name, text) in own {
        let file = layer.join(name);
        // What hides the machine's own may be in its place.
        let _ = fs::remove_file(&file);
        fs::write(file, text)?;
    }
    symlink("/proc/self/mounts", layer.join("mtab")).or_else(|_| {
        fs::remove_file(layer.join("mtab"))?;
        symlink("/proc/self/mounts", layer.join("mtab"))
    })
}

/// To an overlay, a device with the number zero says that there is nothing.
fn hide(path: &Path) -> io::Result<()> {
    Ok(mknodat(CWD, path, FileType::CharacterDevice, Mode::empty(), 0)?)
}

fn read(file: &str) -> String {
    fs::read_to_string(file).unwrap_or_default()
}

/// Accounts of the system itself: who works on the machine is nobody's business.
fn system_accounts(text: &str) -> String {
    let is_system = |line: &&str| {
        let id = line.split(':').nth(2).and_then(|id| id.parse::<u32>().ok());
        id.is_some_and(|id| id < 1000 || id == 65534)
    };
    text.lines().filter(is_system).flat_map(|line| [line, "\n"]).collect()
}

/// Groups as they are, but not who is in them.
fn without_members(groups: &str) -> String {
    let bare = |line: &str| line.rsplit_once(':').map(|(group, _)| format!("{group}:\n"));
    groups.lines().filter_map(bare).collect()
}

/// Where the machine's own cannot be laid under: a copy of what is seen, with the layer's own files over it.
pub(super) fn copy(layer: &Path, target: &Path) -> io::Result<()> {
    fs::create_dir_all(target)?;
    for entry in fs::read_dir("/etc")?.flatten() {
        if entry.file_name().to_str().is_some_and(is_seen) {
            copy_tree(&entry.path(), &target.join(entry.file_name()))?;
        }
    }
    for path in UNSEEN {
        let _ = fs::remove_dir_all(target.join(path));
    }
    for name in ["passwd", "group", "hosts", "hostname", "resolv.conf"] {
        fs::copy(layer.join(name), target.join(name))?;
    }
    Ok(())
}

/// What may not be read is left out.
fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    let Ok(metadata) = fs::symlink_metadata(from) else { return Ok(()) };
    if metadata.is_symlink() {
        let _ = symlink(fs::read_link(from)?, to);
    } else if metadata.is_dir() {
        let Ok(entries) = fs::read_dir(from) else { return Ok(()) };
        fs::create_dir_all(to)?;
        for entry in entries.flatten() {
            copy_tree(&entry.path(), &to.join(entry.file_name()))?;
        }
    } else if metadata.is_file() {
        let _ = fs::copy(from, to);
    }
    Ok(())
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
    fn people_are_not_seen() {
        let groups = "root:x:0:\nsudo:x:27:ann,bob\nann:x:1000:\nnogroup:x:65534:\n";
        assert_eq!(without_members(&system_accounts(groups)), "root:x:0:\nsudo:x:27:\nnogroup:x:65534:\n");
    }
}
