//! Runs one command from its start to the end of its tree: moves its output into the log, watches the clock, and
//! carries out kills. One task per command, so that a stuck one never blocks another.

use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use cofferdam_protocol::Exit;
use rustix::process::Signal;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::launch::{Memory, Report};
use super::log::Stream;
use super::state::{Control, Process};
use super::{Processes, oom, tree};
use crate::fd::{Fd, READ_SIZE};

/// How long output may still come after a command has ended while something it started holds its streams open
/// (`cmd > >(tee log)`): servers left in the background hold them for ever.
const LINGER: Duration = Duration::from_millis(100);

/// How long a process that fills what may be kept waits for its first reader.
const HOLD: Duration = Duration::from_secs(5);

/// Between two rounds of killing a tree that will not go.
const KILL_AGAIN: Duration = Duration::from_millis(20);

/// After so long, what is left of a tree is in the kernel's hands (uninterruptible sleep), not in ours.
const GIVE_UP: Duration = Duration::from_secs(5);

/// When to end a command, and how gently.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) timeout: Option<Duration>,
    pub(crate) grace: Duration,
}

/// A command's supervisor, and where it reports.
pub(crate) struct Supervisor {
    pub(crate) pid: i32,
    pub(crate) reports: Fd,
    pub(crate) _memory: Box<Memory>,
}

/// What a command's end has come to.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Ending {
    /// Nobody asked for it.
    Free,
    /// TERM was sent; KILL follows at this time.
    Asked(Instant),
    /// KILL is sent again and again until nothing is left, but not for ever.
    Forced { again: Instant, until: Instant },
}

pub(crate) struct Pump {
    process: Rc<Process>,
    processes: Rc<Processes>,
    control: mpsc::UnboundedReceiver<Control>,
    supervisor: i32,
    outputs: [Output; 2],
    reports: Option<Fd>,
    _memory: Box<Memory>,
    status: Option<i32>,
    drained_by: Option<Instant>,
    deadline: Option<Instant>,
    hold_until: Instant,
    grace: Duration,
    ending: Ending,
    timed_out: bool,
    oom_kills: Option<u64>,
}

impl Pump {
    /// A pump for a command whose supervisor has reported that it runs.
    pub(crate) fn new(
        process: Rc<Process>,
        processes: Rc<Processes>,
        control: mpsc::UnboundedReceiver<Control>,
        supervisor: Supervisor,
        (stdout, stderr): (OwnedFd, OwnedFd),
        limits: Limits,
    ) -> std::io::Result<Pump> {
        let now = Instant::now();
        Ok(Pump {
            oom_kills: processes.oom_kills.get(),
            process,
            processes,
            control,
            supervisor: supervisor.pid,
            outputs: [Output::new(Stream::Stdout, stdout)?, Output::new(Stream::Stderr, stderr)?],
            reports: Some(supervisor.reports),
            _memory: supervisor._memory,
            status: None,
            drained_by: None,
            deadline: limits.timeout.and_then(|timeout| now.checked_add(timeout)),
            hold_until: now + HOLD,
            grace: limits.grace,
            ending: Ending::Free,
            timed_out: false,
        })
    }

    pub(crate) async fn run(mut self) {
        while !(self.process.exit().is_some() && self.reports.is_none()) {
            self.step().await;
            if self.process.exit().is_none() && self.is_over() {
                self.finish();
            }
        }
        self.process.set_tree_gone();
        self.processes.settle();
    }

    async fn step(&mut self) {
        let may_read = self.process.has_room();
        let wake = self.next_wake();
        let (stdout, stderr) = {
            let [stdout, stderr] = &mut self.outputs;
            (stdout, stderr)
        };
        let process = &self.process;
        tokio::select! {
            () = stdout.read(process), if may_read && stdout.is_open() => self.processes.lease.touch(),
            () = stderr.read(process), if may_read && stderr.is_open() => self.processes.lease.touch(),
            report = next_report(&self.reports), if self.reports.is_some() => self.take_report(report),
            () = process.room.notified(), if !may_read => {}
            Some(control) = self.control.recv() => self.take_control(control),
            () = tokio::time::sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => self.take_time(),
        }
    }

    fn next_wake(&self) -> Option<Instant> {
        let ending = match self.ending {
            Ending::Free => None,
            Ending::Asked(at) => Some(at),
            Ending::Forced { again, .. } => Some(again),
        };
        let hold = self.process.holding.get().then_some(self.hold_until);
        let drained = if self.process.exit().is_none() { self.drained_by } else { None };
        [ending, hold, drained, self.deadline].into_iter().flatten().min()
    }

    fn take_report(&mut self, report: Option<Report>) {
        match report {
            Some(Report::Ended { status }) => {
                self.status = Some(status);
                self.drained_by = Some(Instant::now() + LINGER);
                self.deadline = None;
            }
            Some(_) => {}
            None => {
                // A supervisor that was itself killed never told how its command ended.
                self.status.get_or_insert(libc::SIGKILL);
                self.drained_by.get_or_insert_with(|| Instant::now() + LINGER);
                self.reports = None;
                self.deadline = None;
                self.ending = Ending::Free;
            }
        }
    }

    fn take_control(&mut self, control: Control) {
        if !self.processes.is_supervising(self.supervisor) {
            return;
        }
        match control {
            Control::Signal(signal) if i32::from(signal) == libc::SIGKILL => self.force(),
            Control::Signal(signal) => {
                // SAFETY: only signals below the real-time ones reach this point; the core checks them by name.
                let signal = unsafe { Signal::from_raw_unchecked(signal.into()) };
                tree::signal(self.supervisor, signal);
            }
            Control::Terminate => self.terminate(),
        }
    }

    fn take_time(&mut self) {
        let now = Instant::now();
        if self.process.holding.get() && now >= self.hold_until {
            self.process.release();
        }
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            self.deadline = None;
            self.timed_out = true;
            self.terminate();
        }
        match self.ending {
            Ending::Asked(at) if now >= at => self.force(),
            Ending::Forced { again, until } if now >= again => {
                if self.processes.is_supervising(self.supervisor) {
                    tree::kill(self.supervisor);
                }
                self.ending =
                    if now >= until { Ending::Free } else { Ending::Forced { again: now + KILL_AGAIN, until } };
                if now >= until && self.status.is_none() {
                    self.status = Some(libc::SIGKILL);
                    self.drained_by = Some(now);
                }
            }
            _ => {}
        }
    }

    fn terminate(&mut self) {
        if self.ending == Ending::Free {
            tree::terminate(self.supervisor);
            self.ending = Ending::Asked(Instant::now() + self.grace);
        }
    }

    fn force(&mut self) {
        let now = Instant::now();
        tree::kill(self.supervisor);
        self.ending = Ending::Forced { again: now + KILL_AGAIN, until: now + GIVE_UP };
    }

    /// Ended, with all its output taken; and where it was told to end, with nothing left of its tree.
    fn is_over(&mut self) -> bool {
        let (Some(_), Some(drained_by)) = (self.status, self.drained_by) else { return false };
        if self.ending != Ending::Free && self.reports.is_some() {
            return false;
        }
        self.outputs.iter().all(|output| !output.is_open())
            || (Instant::now() >= drained_by
                && self.process.has_room()
                && self.outputs.iter_mut().all(|output| output.is_empty_now(&self.process)))
    }

    fn finish(&mut self) {
        for output in &mut self.outputs {
            output.flush(&self.process);
        }
        let status = self.status.unwrap_or(libc::SIGKILL);
        let (mut code, mut signal) =
            match (libc::WIFSIGNALED(status), libc::WTERMSIG(status), libc::WEXITSTATUS(status)) {
                (true, signal, _) => (128 + signal as u8, Some(signal as u8)),
                (false, _, code) => (code as u8, None),
            };
        if self.timed_out && !matches!(code, 137 | 143) {
            // It took the hint and left in its own way; the caller still needs to see that it did not finish.
            (code, signal) = (128 + libc::SIGTERM as u8, Some(libc::SIGTERM as u8));
        }
        let log = self.process.log.borrow();
        let exit = Exit {
            code,
            signal,
            timed_out: self.timed_out,
            oom_killed: code != 0 && self.was_oom_killed(code),
            duration_us: self.process.started.elapsed().as_micros() as u64,
            stdout: log.kept(Stream::Stdout),
            stderr: log.kept(Stream::Stderr),
        };
        drop(log);
        self.process.set_exit(exit);
    }

    /// By the sandbox's counter, which says that something was killed for memory since this command began; that it
    /// was this one, its own end says.
    fn was_oom_killed(&self, code: u8) -> bool {
        let now = oom::kills();
        let before = self.oom_kills.unwrap_or(0).max(self.processes.oom_kills.get().unwrap_or(0));
        self.processes.oom_kills.set(now);
        let killed = i32::from(code) == 128 + libc::SIGKILL && self.ending == Ending::Free && !self.timed_out;
        killed && now.is_some_and(|now| now > before)
    }
}

async fn next_report(reports: &Option<Fd>) -> Option<Report> {
    let reports = reports.as_ref()?;
    reports.read(Report::SIZE, Report::decode_or_end).await.unwrap_or(None)
}

impl Report {
    /// Reports are written whole, and far shorter than what a pipe takes at once.
    pub(crate) fn decode_or_end(bytes: &[u8]) -> Option<Report> {
        if bytes.len() == Report::SIZE { Report::decode(bytes) } else { None }
    }
}

/// One of a command's two streams, and the start of a character whose end has not come yet.
#[derive(Debug)]
struct Output {
    stream: Stream,
    fd: Option<Fd>,
    carry: Vec<u8>,
}

impl Output {
    fn new(stream: Stream, fd: OwnedFd) -> std::io::Result<Output> {
        Ok(Output { stream, fd: Some(Fd::readable(fd)?), carry: Vec::new() })
    }

    fn is_open(&self) -> bool {
        self.fd.is_some()
    }

    async fn read(&mut self, process: &Process) {
        let Some(fd) = &self.fd else { return };
        let (stream, carry) = (self.stream, &mut self.carry);
        let more = fd.read(READ_SIZE - carry.len(), |bytes| take(stream, carry, bytes, process)).await;
        if !matches!(more, Ok(true)) {
            self.flush(process);
            self.fd = None;
        }
    }

    /// Takes what is there without waiting, and tells whether nothing was.
    fn is_empty_now(&mut self, process: &Process) -> bool {
        let Some(fd) = &self.fd else { return true };
        let (stream, carry) = (self.stream, &mut self.carry);
        match fd.try_read(READ_SIZE - carry.len(), |bytes| take(stream, carry, bytes, process)) {
            Ok(None) => true,
            Ok(Some(true)) => false,
            Ok(Some(false)) | Err(_) => {
                self.fd = None;
                true
            }
        }
    }

    fn flush(&mut self, process: &Process) {
        if !self.carry.is_empty() {
            process.append(self.stream, &std::mem::take(&mut self.carry));
        }
    }
}

/// False at the end of the stream.
fn take(stream: Stream, carry: &mut Vec<u8>, bytes: &[u8], process: &Process) -> bool {
    if carry.is_empty() {
        let (whole, rest) = bytes.split_at(bytes.len() - incomplete_tail(bytes));
        carry.extend_from_slice(rest);
        if !whole.is_empty() {
            process.append(stream, whole);
        }
    } else {
        carry.extend_from_slice(bytes);
        let rest = carry.split_off(carry.len() - incomplete_tail(carry));
        let whole = std::mem::replace(carry, rest);
        if !whole.is_empty() {
            process.append(stream, &whole);
        }
    }
    !bytes.is_empty()
}

/// How many bytes at the end are the start of a UTF-8 character that may still be completed.
fn incomplete_tail(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(3) {
        let byte = bytes[bytes.len() - back];
        let length = match byte {
            0b1100_0000..=0b1101_1111 => 2,
            0b1110_0000..=0b1110_1111 => 3,
            0b1111_0000..=0b1111_0111 => 4,
            0b1000_0000..=0b1011_1111 => continue,
            _ => return 0,
        };
        return if length > back { back } else { 0 };
    }
    0
}

#[cfg(test)]
mod tests {
    use super::incomplete_tail;

    #[test]
    fn only_the_start_of_a_character_is_held_back() {
        for (text, expected) in [("", 0), ("abc", 0), ("ñ", 0), ("€", 0), ("😀", 0)] {
            assert_eq!(incomplete_tail(text.as_bytes()), expected, "{text}");
        }
        assert_eq!(incomplete_tail(&"😀".as_bytes()[..3]), 3);
        assert_eq!(incomplete_tail(&"x€".as_bytes()[..2]), 1);
        assert_eq!(incomplete_tail(b"\xff\xfe"), 0);
        assert_eq!(incomplete_tail(b"\x80\x80\x80\x80"), 0);
    }
}
