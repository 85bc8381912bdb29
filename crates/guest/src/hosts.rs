//! Adds `localhost` to `/etc/hosts` where neither the image nor its engine did: an engine writes that file only for
//! networks that it makes itself.

use std::fs::{DirBuilder, OpenOptions, read};
use std::io::{ErrorKind, Result, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

const LINES: &str = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n";

/// Longer files are left alone.
const MOST: usize = 1024 * 1024;

/// Does nothing on a read-only root.
pub(crate) fn name_localhost() {
    let _ = name_in(Path::new("/etc"));
}

fn name_in(folder: &Path) -> Result<()> {
    let file = folder.join("hosts");
    let before = match read(&file) {
        Ok(before) => before,
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    if before.len() > MOST || names_localhost(&before) {
        return Ok(());
    }
    match DirBuilder::new().mode(0o755).create(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let mut hosts =
        OpenOptions::new().append(true).create(true).mode(0o644).custom_flags(libc::O_NOFOLLOW).open(&file)?;
    let gap = if before.last().is_none_or(|last| *last == b'\n') { "" } else { "\n" };
    hosts.write_all(format!("{gap}{LINES}").as_bytes())
}

fn names_localhost(hosts: &[u8]) -> bool {
    let text = String::from_utf8_lossy(hosts);
    let said = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    said.into_iter().any(|line| line.split_whitespace().skip(1).any(|name| name == "localhost"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn localhost_is_named_once_and_the_rest_stays() {
        let folder = std::env::temp_dir().join(format!("cofferdam-hosts-{}", std::process::id()));
        let hosts = || std::fs::read_to_string(folder.join("hosts")).unwrap();
        name_in(&folder).unwrap();
        assert_eq!(hosts(), LINES);
        name_in(&folder).unwrap();
        assert_eq!(hosts(), LINES);
        std::fs::write(folder.join("hosts"), "10.0.0.1 db # localhost").unwrap();
        name_in(&folder).unwrap();
        assert_eq!(hosts(), format!("10.0.0.1 db # localhost\n{LINES}"));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
