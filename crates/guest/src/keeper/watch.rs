//! The keeper's main loop: it accepts links, knows from the kernel which programs use the box, and ends the box when asked
//! to, or when the last of those programs is gone.

use std::fs;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use cofferdam_protocol::HANDS_OVER;
use cofferdam_protocol::keeper::{LASTING, Plan};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg, sockopt};
use rustix::process::{PidfdFlags, pidfd_open};

use super::calls::check_int;

/// How much longer than its orphan timeout a guest may take to end by itself.
const GRACE: Duration = Duration::from_secs(5);

/// How long PID 1 may take to tell hosts why it ends.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// How a box ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// By itself, or killed, with this exit code.
    Exited(i32),
    /// Its keeper ended it: on request, or because no program used it any more.
    Ended,
}

pub(super) struct Watch {
    pid: i32,
    pidfd: OwnedFd,
    listener: UnixListener,
    links: OwnedFd,
    signals: OwnedFd,
    /// Programs that have had a link.
    hosts: Vec<(u32, OwnedFd)>,
    /// Since when there is none.
    alone: Option<Instant>,
}

impl Watch {
    pub(super) fn new(
        pid: i32,
        pidfd: OwnedFd,
        listener: UnixListener,
        links: OwnedFd,
        host: (u32, OwnedFd),
    ) -> io::Result<Watch> {
        listener.set_nonblocking(true)?;
        Ok(Watch { pid, pidfd, listener, links, signals: signals()?, hosts: vec![host], alone: None })
    }

    /// Returns when nothing of the box runs any more.
    pub(super) fn until_end(&mut self, plan: &Plan) -> Fate {
        loop {
            let wait = self.deadline(plan).map(|left| left.saturating_duration_since(Instant::now()));
            let (is_over, is_asked, has_connection, gone) = self.look(wait);
            if is_over {
                return Fate::Exited(reap(self.pid));
            }
            self.hosts.retain({
                let mut position = 0;
                move |_| {
                    position += 1;
                    !gone.contains(&(position - 1))
                }
            });
            if has_connection {
                self.accept();
            }
            if self.hosts.is_empty() {
                self.alone.get_or_insert_with(Instant::now);
            } else {
                self.alone = None;
            }
            if is_asked {
                self.ask_to_end();
            }
            if is_asked || self.deadline(plan).is_some_and(|end| end <= Instant::now()) {
                // The end of PID 1 is the end of all in its namespace.
                self.signal(libc::SIGKILL);
                reap(self.pid);
                return Fate::Ended;
            }
        }
    }

    /// PID 1 tells its hosts why it ends: it gets the time for that.
    fn ask_to_end(&self) {
        self.signal(libc::SIGTERM);
        let time = Timespec { tv_sec: 0, tv_nsec: LAST_WORDS.as_nanos() as i64 };
        let _ = poll(&mut [PollFd::new(&self.pidfd, PollFlags::IN)], Some(&time));
    }

    fn signal(&self, signal: libc::c_int) {
        // SAFETY: our own child, which is not yet waited for.
        unsafe { libc::kill(self.pid, signal) };
    }

    /// When a box that no program uses is ended.
    fn deadline(&self, plan: &Plan) -> Option<Instant> {
        let alone = self.alone?;
        let orphan_ms = match fs::read_to_string(LASTING) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Some(alone),
            Ok(text) => text.parse().unwrap_or(plan.orphan_ms),
            Err(_) => plan.orphan_ms,
        };
        // The guest's own lease ends it earlier, unless a command in the box prevents that.
        (orphan_ms != 0).then(|| alone + Duration::from_millis(orphan_ms) + GRACE)
    }

    /// Waits for an event: the end, a request to end, a connection, programs that are gone.
    fn look(&self, wait: Option<Duration>) -> (bool, bool, bool, Vec<usize>) {
        let own = [self.pidfd.as_fd(), self.signals.as_fd(), self.listener.as_fd()];
        let all = own.into_iter().chain(self.hosts.iter().map(|(_, host)| host.as_fd()));
        let mut watched: Vec<PollFd<'_>> = all.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        let wait = wait.map(|wait| Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos().into() });
        // Interrupted or not: the answers say what has happened.
        let _ = poll(&mut watched, wait.as_ref());
        let happened = |position: usize| !watched[position].revents().is_empty();
        let gone = (own.len()..watched.len()).filter(|position| happened(*position));
        (happened(0), happened(1), happened(2), gone.map(|position| position - own.len()).collect())
    }

    /// Hands a connection to PID 1, and watches the program it came from.
    fn accept(&mut self) {
        let Ok((connection, _)) = self.listener.accept() else { return };
        // A program whose pid is not visible here (another pid namespace) is not watched, and does not count.
        if let Ok(peer) = sockopt::socket_peercred(&connection) {
            let pid = peer.pid.as_raw_nonzero().get() as u32;
            let is_known = self.hosts.iter().any(|(known, _)| *known == pid);
            if !is_known && let Ok(host) = pidfd_open(peer.pid, PidfdFlags::empty()) {
                self.hosts.push((pid, host));
            }
        }
        let _ = hand_in(self.links.as_fd(), &connection);
    }
}

fn hand_in(links: BorrowedFd<'_>, connection: &UnixStream) -> io::Result<()> {
    // One descriptor for each direction.
    let descriptors = [connection.as_fd(), connection.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&descriptors));
    // A guest that does not read must not block us.
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    sendmsg(links, &[IoSlice::new(&[HANDS_OVER])], &mut control, flags)?;
    Ok(())
}

/// The signals by which a box is ended; all others that could end a keeper are ignored.
fn signals() -> io::Result<OwnedFd> {
    // SAFETY: this process's own mask and dispositions; what comes back is a new descriptor.
    unsafe {
        let mut asked: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut asked);
        libc::sigaddset(&mut asked, libc::SIGTERM);
        libc::sigprocmask(libc::SIG_BLOCK, &asked, std::ptr::null_mut());
        for signal in [libc::SIGINT, libc::SIGHUP, libc::SIGPIPE, libc::SIGUSR1, libc::SIGUSR2] {
            libc::signal(signal, libc::SIG_IGN);
        }
        Ok(OwnedFd::from_raw_fd(check_int(libc::signalfd(-1, &asked, libc::SFD_CLOEXEC))?))
    }
}

/// As shells say it.
fn reap(pid: i32) -> i32 {
    let mut status = 0;
    // SAFETY: our own child, which has ended.
    unsafe { libc::waitpid(pid, &mut status, 0) };
    if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 128 + libc::WTERMSIG(status) }
}
