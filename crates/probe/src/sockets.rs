//! Attempts through sockets: of the host, of its engine, of the hypervisor.

use std::net::{SocketAddr, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as LocalAddr, UnixStream};
use std::time::Duration;

use serde_json::Value;

use crate::attempt::{At, Outcome, Refused, number, system_call};

pub(crate) fn connect_abstract(name: &str) -> Outcome {
    let address = LocalAddr::from_abstract_name(name).at("address")?;
    UnixStream::connect_addr(&address).at("connect")?;
    Ok("connected".into())
}

pub(crate) fn connect_local(path: &str) -> Outcome {
    UnixStream::connect(path).at("connect")?;
    Ok("connected".into())
}

pub(crate) fn connect_tcp(address: &str) -> Outcome {
    let address: SocketAddr = address.parse().map_err(|_| Refused::new("address", libc::EINVAL))?;
    // A dropped packet counts as refused.
    match TcpStream::connect_timeout(&address, Duration::from_secs(3)) {
        Err(error) if error.kind() == std::io::ErrorKind::TimedOut => Err(Refused::new("connect", libc::ETIMEDOUT)),
        other => other.at("connect").map(|_| "connected".into()),
    }
}

/// A socket of any family.
pub(crate) fn make(family: &str, kind: &str, protocol: &str) -> Outcome {
    let arguments = [number(family)? as usize, number(kind)? as usize, number(protocol)? as usize];
    system_call("socket", libc::SYS_socket, &arguments).map(Value::from)
}

/// The visible network devices.
pub(crate) fn links() -> Outcome {
    let text = std::fs::read_to_string("/proc/self/net/dev").at("read")?;
    let names = text.lines().skip(2).filter_map(|line| Some(line.split_once(':')?.0.trim()));
    Ok(names.collect::<Vec<_>>().into())
}

/// Sets the loopback device's own flags again: nothing changes, but it takes permission.
pub(crate) fn set_link() -> Outcome {
    let socket = system_call("socket", libc::SYS_socket, &[libc::AF_INET as usize, libc::SOCK_DGRAM as usize, 0])?;
    // The kernel's `ifreq`: a name, then flags.
    let mut request = [0_u8; 40];
    request[..2].copy_from_slice(b"lo");
    let arguments = |call: libc::Ioctl| [socket as usize, call as usize, request.as_ptr() as usize];
    system_call("SIOCGIFFLAGS", libc::SYS_ioctl, &arguments(libc::SIOCGIFFLAGS))?;
    system_call("SIOCSIFFLAGS", libc::SYS_ioctl, &arguments(libc::SIOCSIFFLAGS)).map(Value::from)
}
