//! Runs one command from its start to the end of its tree: moves its output into the log, watches the clock, and
//! carries out kills. One task per command, so that a stuck one never blocks another.

use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use cofferdam_protocol::{Exit, Killed};
use rustix::process::Signal;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::log::Stream;
use super::output::Output;
use super::report::Report;
use super::state::{Control, Process};
use super::supervisor::Memory;
use super::{Processes, oom, tree};
use crate::fd::Fd;

/// How long output may still come after a command has ended while something it started holds its streams open
/// (`cmd > >(tee log)`): servers left in the background hold them for ever.
const LINGER: Duration = Duration::from_millis(100);

/// How long a process whose output buffer is full waits for its first reader.
const HOLD: Duration = Duration::from_secs(5);

/// Between two rounds of killing a tree that will not go.
const KILL_AGAIN: Duration = Duration::from_millis(20);

/// After this, what is left of a tree is in uninterruptible sleep, and cannot be killed. Long, because on a loaded machine a tree of
/// hundreds of processes takes seconds to die; shorter than the 30 s that the host waits.
const GIVE_UP: Duration = Duration::from_secs(20);

/// How many processes of a killed tree are reported.
const KILLED: usize = 64;

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

/// How far the end of a command has got.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Ending {
    /// No end was requested.
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
    over_limit: bool,
    oom_kills: Option<u64>,
}

impl Pump {
    /// A pump for a command whose supervisor has reported that it runs.
    pub(crate) fn new(
        process: Rc<Process>,
        processes: Rc<Processes>,
        control: mpsc::UnboundedReceiver<Control>,
        supervisor: Supervisor,
        (stdout, stderr): (OwnedFd, Option<OwnedFd>),
        limits: Limits,
    ) -> std::io::Result<Pump> {
        let now = Instant::now();
        Ok(Pump {
            oom_kills: processes.oom_kills.get(),
            process,
            processes,
            control,
            supervisor: supervisor.pid,
            outputs: [Output::new(Stream::Stdout, Some(stdout))?, Output::new(Stream::Stderr, stderr)?],
            reports: Some(supervisor.reports),
            _memory: supervisor._memory,
            status: None,
            drained_by: None,
            deadline: limits.timeout.and_then(|timeout| now.checked_add(timeout)),
            hold_until: now + HOLD,
            grace: limits.grace,
            ending: Ending::Free,
            timed_out: false,
            over_limit: false,
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
        self.processes.settle(&self.process);
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
        // While the buffer is full, wait only for room.
        let may_finish = self.process.exit().is_none() && self.process.has_room();
        let drained = if may_finish { self.drained_by } else { None };
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
                // A supervisor that was itself killed never reported how its command ended.
                self.status.get_or_insert(libc::SIGKILL);
                self.drained_by.get_or_insert_with(|| Instant::now() + LINGER);
                self.reports = None;
                self.deadline = None;
                self.process.set_dead();
                if self.ending != Ending::Free {
                    // A process that is being ended does not wait for readers.
                    self.process.release();
                }
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
            // It fills the disk: no grace period.
            Control::OverLimit => {
                self.over_limit = true;
                self.force();
            }
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
                    self.note_killed(tree::kill(self.supervisor));
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
            let hang_up = self.process.terminal.borrow().is_some();
            self.note_killed(tree::terminate(self.supervisor, hang_up));
            self.ending = Ending::Asked(Instant::now() + self.grace);
        }
    }

    fn force(&mut self) {
        let now = Instant::now();
        self.note_killed(tree::kill(self.supervisor));
        self.ending = Ending::Forced { again: now + KILL_AGAIN, until: now + GIVE_UP };
    }

    fn note_killed(&self, found: Vec<Killed>) {
        let mut killed = self.process.killed.borrow_mut();
        for one in found {
            if killed.len() < KILLED && killed.iter().all(|other| other.pid != one.pid) {
                killed.push(one);
            }
        }
    }

    /// Ended, with all its output read; after a kill, with nothing left of its tree.
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
            // It handled the signal and exited by itself; the caller must still see that it did not finish.
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
            over_limit: self.over_limit,
        };
        drop(log);
        self.process.set_exit(exit);
        self.processes.announce_end(&self.process);
    }

    /// The sandbox's counter says that something was killed for memory since this command started; its exit by SIGKILL says
    /// that it was this one.
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
