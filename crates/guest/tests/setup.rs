//! A guest knows nothing until its first frame has come: what it takes for a setup, what ends it, and what comes too late.

use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use cofferdam_protocol::{
    Bounds, Decoder, Ending, Frame, HANDS_OVER, Hello, Kind, LINK_CHANNEL, Lease, MAX_PAYLOAD, Setup, encode_header,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, sendmsg, socketpair,
};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);

const LINKS: i32 = 3;

struct Guest {
    child: Child,
    links: OwnedFd,
    _folder: tempfile::TempDir,
    setup: Setup,
}

impl Guest {
    /// With both ends of its first stream, where it has one.
    fn start(first: impl Into<Stdio>, second: impl Into<Stdio>) -> Guest {
        let folder = tempfile::tempdir().unwrap();
        let (links, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_guest"));
        command.args(["init", &LINKS.to_string()]).stdin(first).stdout(second).stderr(Stdio::piped());
        // SAFETY: one call that is allowed between fork and exec.
        unsafe { command.pre_exec(move || dup_to(theirs.as_raw_fd(), LINKS)) };
        let setup = Setup {
            sandbox_id: "sbx_1".to_owned(),
            key: "secret:key".to_owned(),
            workdir: folder.path().join("w").to_str().unwrap().to_owned(),
            user: None,
            lease: Lease { idle_ms: 0, max_ms: 0, orphan_ms: 0 },
            env: vec![],
            labels: vec![],
            bounds: Bounds::default(),
        };
        Guest { child: command.spawn().unwrap(), links, _folder: folder, setup }
    }

    fn with_stream() -> (Guest, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_read_timeout(Some(PATIENCE)).unwrap();
        let theirs = OwnedFd::from(theirs);
        (Guest::start(theirs.try_clone().unwrap(), theirs), ours)
    }

    fn link(&self) -> UnixStream {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_read_timeout(Some(PATIENCE)).unwrap();
        let descriptors = [theirs.as_fd(), theirs.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
        sendmsg(&self.links, &[IoSlice::new(&[HANDS_OVER])], &mut control, SendFlags::NOSIGNAL).unwrap();
        ours
    }

    fn end(&mut self) -> ExitStatus {
        let process = pidfd_open(Pid::from_child(&self.child), PidfdFlags::empty()).unwrap();
        let time = Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
        let ended = poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&time)).unwrap();
        assert_eq!(ended, 1, "the guest does not end");
        self.child.wait().unwrap()
    }

    /// What it says at its end, which is a failure.
    fn failure(mut self) -> String {
        let status = self.end();
        assert_eq!(status.code(), Some(1));
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        said
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn dup_to(from: i32, to: i32) -> std::io::Result<()> {
    // SAFETY: the descriptor below is nobody's in a program that is about to be executed.
    match unsafe { libc::dup2(from, to) } {
        -1 => Err(std::io::Error::last_os_error()),
        _ => Ok(()),
    }
}

fn send(mut stream: &UnixStream, frame: &Frame) {
    let mut bytes = BytesMut::new();
    frame.encode(&mut bytes);
    stream.write_all(&bytes).unwrap();
}

/// `None` when the stream ends without one.
fn hello(mut stream: &UnixStream) -> Option<Hello> {
    let (mut decoder, mut buffer, mut piece) = (Decoder::default(), BytesMut::new(), [0; 4096]);
    loop {
        if let Some(frame) = decoder.next(&mut buffer).unwrap() {
            return Some(Hello::from_frame(&frame).unwrap());
        }
        match stream.read(&mut piece).unwrap() {
            0 => return None,
            count => buffer.extend_from_slice(&piece[..count]),
        }
    }
}

#[test]
fn the_first_frame_sets_a_guest_up_and_its_command_line_says_nothing_of_it() {
    let (guest, stream) = Guest::with_stream();
    send(&stream, &guest.setup.to_frame().unwrap());
    assert_eq!(hello(&stream).unwrap().setup, guest.setup);
    let words = std::fs::read_to_string(format!("/proc/{}/cmdline", guest.child.id())).unwrap();
    assert!(words.ends_with("init\x003\0"), "{words:?}");
}

#[test]
fn a_link_that_came_before_the_setup_is_served_after_it() {
    let (guest, stream) = Guest::with_stream();
    let early = guest.link();
    send(&stream, &guest.setup.to_frame().unwrap());
    assert_eq!(hello(&early).unwrap().setup, guest.setup);
    assert_eq!(hello(&stream).unwrap().setup, guest.setup);
}

#[test]
fn a_guest_without_a_stream_of_its_own_is_set_up_by_its_first_link() {
    let guest = Guest::start(Stdio::null(), Stdio::null());
    let broken = guest.link();
    drop(broken);
    let first = guest.link();
    send(&first, &guest.setup.to_frame().unwrap());
    assert_eq!(hello(&first).unwrap().setup, guest.setup);
}

#[test]
fn a_second_setup_ends_its_link_and_changes_nothing() {
    let (guest, stream) = Guest::with_stream();
    send(&stream, &guest.setup.to_frame().unwrap());
    assert!(hello(&stream).is_some());
    let other = Setup { key: "other".to_owned(), ..guest.setup.clone() }.to_frame().unwrap();
    let link = guest.link();
    assert_eq!(hello(&link).unwrap().setup, guest.setup);
    send(&link, &other);
    assert!(hello(&link).is_none(), "the link has ended");
    send(&stream, &other);
    assert_eq!(hello(&guest.link()).unwrap().setup, guest.setup);
}

#[test]
fn a_guest_whose_first_stream_ends_without_a_setup_ends() {
    let (guest, stream) = Guest::with_stream();
    let _early = guest.link();
    drop(stream);
    assert_eq!(guest.failure(), "cofferdam guest: the first stream ended without a setup\n");
    // In the middle of one.
    let (guest, mut stream) = Guest::with_stream();
    stream.write_all(&encode_header(LINK_CHANNEL, Kind::Message, 100)).unwrap();
    drop(stream);
    assert_eq!(guest.failure(), "cofferdam guest: the first stream ended without a setup\n");
}

#[test]
fn any_other_first_frame_ends_a_guest() {
    let message = |payload: &[u8]| Frame::new(LINK_CHANNEL, Kind::Message, payload.to_vec());
    for (frame, words) in [
        (Frame::new(LINK_CHANNEL, Kind::Data, &b"x"[..]), "the first frame is not a setup"),
        (message(b"\x05"), "the first frame is not a setup"),
        (message(b"CFDS\x63\0"), "the peer speaks protocol generation 99"),
        (message(b"CFDS\x04\0\xff"), "a message could not be decoded"),
    ] {
        let (guest, stream) = Guest::with_stream();
        send(&stream, &frame);
        let said = guest.failure();
        assert!(said.contains(words), "{said}");
    }
    let (guest, mut stream) = Guest::with_stream();
    stream.write_all(&encode_header(LINK_CHANNEL, Kind::Message, MAX_PAYLOAD + 1)).unwrap();
    assert!(guest.failure().contains("more than the"));
    // By a further link as well.
    let guest = Guest::start(Stdio::null(), Stdio::null());
    let mut link = guest.link();
    link.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    assert!(guest.failure().contains("a frame announces"));
}

#[test]
fn a_guest_without_a_setup_ends_when_it_is_asked_to() {
    let (mut guest, _stream) = Guest::with_stream();
    let status = format!("/proc/{}/status", guest.child.id());
    let handles_it = || {
        let status = std::fs::read_to_string(&status).unwrap();
        let handled = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        u64::from_str_radix(handled.trim(), 16).unwrap() & 1 << (libc::SIGTERM - 1) != 0
    };
    let began = Instant::now();
    while !handles_it() {
        assert!(began.elapsed() < PATIENCE, "the guest does not start");
        std::thread::yield_now();
    }
    // SAFETY: our own child.
    unsafe { libc::kill(guest.child.id() as i32, libc::SIGTERM) };
    assert_eq!(guest.end().code(), Some(i32::from(Ending::Stopped.exit_code())));
}
