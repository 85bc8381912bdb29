//! A way into a sandbox that does not pass through the engine: on the engine's own machine, root can step into the
//! sandbox's network namespace and knock at the guest's door there.
//!
//! Through the engine every byte is copied by two more programs, the daemon and its shim. Where this way is not open
//! (another machine, another user, another system, `COFFERDAM_SHORTCUT=off`) the engine's own is as good but for speed.
//! Whoever answers must still say hello as the very sandbox that is asked for.

use super::Engine;
use crate::guest::ByteStream;

/// `None` wherever there is no such way.
#[cfg(target_os = "linux")]
pub(super) async fn open(engine: &Engine, handle: &str) -> Option<ByteStream> {
    let is_off = std::env::var("COFFERDAM_SHORTCUT").is_ok_and(|value| value == "off");
    if is_off || !engine.host.starts_with("unix://") || !rustix::process::geteuid().is_root() {
        return None;
    }
    let container = engine.client.inspect_container(handle, None).await.ok()?;
    let pid = container.state?.pid.filter(|pid| *pid > 0)?;
    let socket = tokio::task::spawn_blocking(move || linux::knock(pid)).await.ok()?.ok()?;
    let (reader, writer) = tokio::net::UnixStream::from_std(socket).ok()?.into_split();
    Some(ByteStream { reader: Box::pin(reader), writer: Box::pin(writer) })
}

/// Namespaces are Linux's.
#[cfg(not(target_os = "linux"))]
pub(super) async fn open(_: &Engine, _: &str) -> Option<ByteStream> {
    None
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;
    use std::io::{self, Write};
    use std::os::fd::AsFd;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixStream};

    use cofferdam_protocol::{DOOR, DOOR_LINK};
    use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

    /// On a thread of its own, which ends in the namespace it went to: no other code ever runs there.
    pub(super) fn knock(pid: i64) -> io::Result<UnixStream> {
        let visit = move || -> io::Result<UnixStream> {
            let namespace = File::open(format!("/proc/{pid}/ns/net"))?;
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
            let mut socket = UnixStream::connect_addr(&SocketAddr::from_abstract_name(DOOR)?)?;
            socket.write_all(&[DOOR_LINK])?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        let thread = std::thread::Builder::new().name("cofferdam-knock".to_owned()).spawn(visit)?;
        thread.join().unwrap_or_else(|_| Err(io::Error::other("knocking failed")))
    }
}
