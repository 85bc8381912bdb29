//! A link that bypasses the engine: on the engine's own machine, root can enter the sandbox's network namespace and connect to the
//! guest's listening socket there.
//!
//! Through the engine, two more programs copy every byte: the daemon and its shim. Where a direct link is impossible (another
//! machine, another user, another system, `COFFERDAM_SHORTCUT=off`), the engine's own stream does the same, only slower. Whoever
//! answers must still complete the handshake as the sandbox that was asked for.

use super::Engine;
use crate::guest::ByteStream;

/// `None` where that is impossible.
#[cfg(target_os = "linux")]
pub(super) async fn open(engine: &Engine, handle: &str) -> Option<ByteStream> {
    let is_off = std::env::var("COFFERDAM_SHORTCUT").is_ok_and(|value| value == "off");
    if is_off || !engine.host.starts_with("unix://") || !rustix::process::geteuid().is_root() {
        return None;
    }
    let container = engine.client.inspect_container(handle, None).await.ok()?;
    let pid = container.state?.pid.filter(|pid| *pid > 0)?;
    let socket = tokio::task::spawn_blocking(move || linux::connect(pid)).await.ok()?.ok()?;
    let (reader, writer) = tokio::net::UnixStream::from_std(socket).ok()?.into_split();
    Some(ByteStream { reader: Box::pin(reader), writer: Box::pin(writer) })
}

/// There are no namespaces on this system.
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

    use cofferdam_protocol::{IS_LINK, LINK_SOCKET};
    use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

    /// On a thread of its own, which never leaves the namespace it enters: no other code runs there.
    pub(super) fn connect(pid: i64) -> io::Result<UnixStream> {
        let connect = move || -> io::Result<UnixStream> {
            let namespace = File::open(format!("/proc/{pid}/ns/net"))?;
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
            let mut socket = UnixStream::connect_addr(&SocketAddr::from_abstract_name(LINK_SOCKET)?)?;
            socket.write_all(&[IS_LINK])?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        let thread = std::thread::Builder::new().name("cofferdam-link".to_owned()).spawn(connect)?;
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread panicked")))
    }
}
