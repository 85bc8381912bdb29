//! How further links get in: an abstract socket (it needs no writable file system, and lives in the sandbox's own
//! network namespace). What comes through is either a link itself, from a host that can reach into the namespace, or
//! `guest link`, which hands its own standard input and output to PID 1.
//!
//! Handing over the descriptors, instead of copying bytes between them and the socket, saves a process switch and two
//! copies on every message. Only root is let in, by the kernel's word for who connected.

use std::io::{self, IoSlice, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::rc::Rc;

use cofferdam_protocol::{DOOR, DOOR_HAND_OVER, DOOR_LINK};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};

use crate::fd::Fd;
use crate::link;
use crate::sandbox::Sandbox;

fn address() -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(DOOR)
}

/// `guest link`: hands over, then stays until PID 1 closes the door, because a container engine ends the stream with
/// the process.
pub(crate) fn hand_over() -> io::Result<()> {
    let mut stream = UnixStream::connect_addr(&address()?)?;
    let (input, output) = (io::stdin(), io::stdout());
    let descriptors = [input.as_fd(), output.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::Error::other("no room for the descriptors"));
    }
    sendmsg(&stream, &[IoSlice::new(&[DOOR_HAND_OVER])], &mut control, SendFlags::empty())?;
    // The link's ends are PID 1's now. Holding them here would hide the end of the stream from it and from the host.
    let null = std::fs::File::options().read(true).write(true).open("/dev/null");
    if let Ok(null) = null {
        rustix::stdio::dup2_stdin(&null)?;
        rustix::stdio::dup2_stdout(&null)?;
    }
    stream.read(&mut [0]).map(drop)
}

/// A door that somebody outside keeps: what comes through was let in by them.
pub(crate) fn inherited(words: &[&str]) -> io::Result<Option<OwnedFd>> {
    let [number] = words else { return Ok(None) };
    let number = number.parse().map_err(io::Error::other)?;
    // SAFETY: whoever started us says that it is ours; that it is open is asked.
    let door = unsafe { BorrowedFd::borrow_raw(number) };
    fcntl_setfd(door, FdFlags::CLOEXEC)?;
    // SAFETY: as above, and nobody else has it.
    Ok(Some(unsafe { OwnedFd::from_raw_fd(number) }))
}

/// Lets further links in, for as long as the sandbox lives.
pub(crate) async fn keep(sandbox: Rc<Sandbox>, inherited: Option<OwnedFd>) -> io::Result<()> {
    match inherited {
        Some(door) => keep_inherited(sandbox, door).await,
        None => keep_own(sandbox).await,
    }
}

async fn keep_inherited(sandbox: Rc<Sandbox>, door: OwnedFd) -> io::Result<()> {
    let door = Fd::readable(door)?;
    loop {
        if let Visitor::HandsOver(input, output) = door.receive(receive).await? {
            tokio::task::spawn_local(serve(Rc::clone(&sandbox), input, output));
        }
    }
}

async fn serve(sandbox: Rc<Sandbox>, input: OwnedFd, output: OwnedFd) {
    // How a link ends is the host's to notice.
    let _ = link::serve(sandbox, input, output).await;
}

async fn keep_own(sandbox: Rc<Sandbox>) -> io::Result<()> {
    let listener = UnixListener::bind_addr(&address()?)?;
    listener.set_nonblocking(true)?;
    let listener = tokio::net::UnixListener::from_std(listener)?;
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors, most likely: let some be given back.
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            continue;
        };
        if stream.peer_cred().is_ok_and(|peer| peer.uid() == 0) {
            tokio::task::spawn_local(admit(Rc::clone(&sandbox), stream));
        }
    }
}

async fn admit(sandbox: Rc<Sandbox>, stream: tokio::net::UnixStream) {
    let visitor = loop {
        if stream.readable().await.is_err() {
            return;
        }
        match stream.try_io(tokio::io::Interest::READABLE, || receive(stream.as_fd())) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            other => break other,
        }
    };
    // How a link ends is the host's to notice; a `guest link` ends with this socket.
    let _ = match visitor {
        Ok(Visitor::HandsOver(input, output)) => link::serve(sandbox, input, output).await,
        Ok(Visitor::IsLink) => match ends(stream) {
            Ok((input, output)) => link::serve(sandbox, input, output).await,
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

enum Visitor {
    IsLink,
    HandsOver(OwnedFd, OwnedFd),
}

fn receive(stream: BorrowedFd<'_>) -> io::Result<Visitor> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut word = [0];
    let received = recvmsg(stream, &mut [IoSliceMut::new(&mut word)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    if received.bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if word == [DOOR_LINK] {
        return Ok(Visitor::IsLink);
    }
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(mut descriptors) = message
            && let Some((input, output)) = descriptors.next().zip(descriptors.next())
        {
            return Ok(Visitor::HandsOver(input, output));
        }
    }
    Err(io::Error::other("neither a link nor one that hands one over"))
}
