//! Where further links arrive: an abstract socket (it needs no writable file system, and lives in the sandbox's own
//! network namespace). A connection is either a link itself, from a host that can enter the namespace, or `guest link`,
//! which hands its own standard input and output to PID 1.
//!
//! Handing over the descriptors, instead of copying bytes between them and the socket, saves a process switch and two
//! copies on every message. Only root is accepted, by the kernel's peer credentials.

use std::io::{self, IoSlice, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::rc::Rc;

use cofferdam_protocol::{HANDS_OVER, IS_LINK, LINK_SOCKET};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};

use crate::entry::Entry;
use crate::fd::Fd;

fn address() -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(LINK_SOCKET)
}

/// `guest link`: hands over, then stays until PID 1 closes the connection, because a container engine ends the stream
/// with the process.
pub(crate) fn hand_over() -> io::Result<()> {
    let mut stream = UnixStream::connect_addr(&address()?)?;
    let (input, output) = (io::stdin(), io::stdout());
    let descriptors = [input.as_fd(), output.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::Error::other("the descriptors do not fit one message"));
    }
    sendmsg(&stream, &[IoSlice::new(&[HANDS_OVER])], &mut control, SendFlags::empty())?;
    // The link's ends are PID 1's now. Holding them here would hide the end of the stream from it and from the host.
    let null = std::fs::File::options().read(true).write(true).open("/dev/null");
    if let Ok(null) = null {
        rustix::stdio::dup2_stdin(&null)?;
        rustix::stdio::dup2_stdout(&null)?;
    }
    stream.read(&mut [0]).map(drop)
}

/// A socket that the keeper sends links through; it has checked who they come from.
pub(crate) fn inherited(words: &[&str]) -> io::Result<Option<OwnedFd>> {
    let [number] = words else { return Ok(None) };
    let number = number.parse().map_err(io::Error::other)?;
    // SAFETY: the caller says that it is ours; the call below fails where it is not open.
    let socket = unsafe { BorrowedFd::borrow_raw(number) };
    fcntl_setfd(socket, FdFlags::CLOEXEC)?;
    // SAFETY: as above, and nothing else owns it.
    Ok(Some(unsafe { OwnedFd::from_raw_fd(number) }))
}

/// Accepts further links for as long as the sandbox lives.
pub(crate) async fn accept(entry: Rc<Entry>, inherited: Option<OwnedFd>) -> io::Result<()> {
    match inherited {
        Some(socket) => accept_inherited(entry, socket).await,
        None => listen(entry).await,
    }
}

async fn accept_inherited(entry: Rc<Entry>, socket: OwnedFd) -> io::Result<()> {
    let socket = Fd::readable(socket)?;
    loop {
        if let Arrival::HandsOver(input, output) = socket.receive(receive).await? {
            tokio::task::spawn_local(serve(Rc::clone(&entry), input, output));
        }
    }
}

async fn serve(entry: Rc<Entry>, input: OwnedFd, output: OwnedFd) {
    // The host sees how a link ends.
    let _ = entry.serve(input, output).await;
}

async fn listen(entry: Rc<Entry>) -> io::Result<()> {
    let listener = UnixListener::bind_addr(&address()?)?;
    listener.set_nonblocking(true)?;
    let listener = tokio::net::UnixListener::from_std(listener)?;
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Most likely out of descriptors: wait until some are closed.
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            continue;
        };
        if stream.peer_cred().is_ok_and(|peer| peer.uid() == 0) {
            tokio::task::spawn_local(admit(Rc::clone(&entry), stream));
        }
    }
}

async fn admit(entry: Rc<Entry>, stream: tokio::net::UnixStream) {
    let arrival = loop {
        if stream.readable().await.is_err() {
            return;
        }
        match stream.try_io(tokio::io::Interest::READABLE, || receive(stream.as_fd())) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            other => break other,
        }
    };
    // The host sees how a link ends; a `guest link` ends with this socket.
    let _ = match arrival {
        Ok(Arrival::HandsOver(input, output)) => entry.serve(input, output).await,
        Ok(Arrival::IsLink) => match ends(stream) {
            Ok((input, output)) => entry.serve(input, output).await,
            Err(error) => Err(error),
        },
        Err(error) => Err(error),
    };
}

fn ends(stream: tokio::net::UnixStream) -> io::Result<(OwnedFd, OwnedFd)> {
    let input = OwnedFd::from(stream.into_std()?);
    let output = input.try_clone()?;
    Ok((input, output))
}

enum Arrival {
    IsLink,
    HandsOver(OwnedFd, OwnedFd),
}

fn receive(stream: BorrowedFd<'_>) -> io::Result<Arrival> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut word = [0];
    let received = recvmsg(stream, &mut [IoSliceMut::new(&mut word)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    if received.bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if word == [IS_LINK] {
        return Ok(Arrival::IsLink);
    }
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(mut descriptors) = message
            && let Some((input, output)) = descriptors.next().zip(descriptors.next())
        {
            return Ok(Arrival::HandsOver(input, output));
        }
    }
    Err(io::Error::other("the connection is no link, and carries none"))
}
