//! All commands of the sandbox, running and ended.
//!
//! Ended ones stay readable, up to a number and an amount of output: the oldest are forgotten first.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use cofferdam_protocol::{Fault, FaultCode, Notice, ProcessInfo};
use rustix::process::{Pid, WaitOptions, wait};
use tokio::sync::Notify;

use super::state::{Control, Process};
use super::tree::Written;
use super::{oom, tree};
use crate::lease::Lease;
use crate::notices::Notices;
use crate::requests::fault;

const MAX_ENDED: usize = 128;
const MAX_ENDED_BYTES: usize = 8 * 1024 * 1024;

pub(crate) struct Processes {
    pub(crate) lease: Rc<Lease>,
    notices: Rc<Notices>,
    /// Kills for memory that are accounted for.
    pub(crate) oom_kills: Cell<Option<u64>>,
    all: RefCell<Vec<Rc<Process>>>,
    /// Starts that are under way.
    starting: RefCell<HashSet<String>>,
    started: Notify,
    /// Supervisors not reaped yet, whose pids therefore cannot have been reused.
    supervisors: RefCell<HashSet<i32>>,
}

impl Processes {
    pub(crate) fn new(lease: Rc<Lease>, notices: Rc<Notices>) -> Rc<Processes> {
        Rc::new(Processes {
            lease,
            notices,
            oom_kills: Cell::new(oom::kills()),
            all: RefCell::default(),
            starting: RefCell::default(),
            started: Notify::new(),
            supervisors: RefCell::default(),
        })
    }

    pub(crate) fn get(&self, exec_id: &str) -> Result<Rc<Process>, Fault> {
        self.all.borrow().iter().find(|process| process.exec_id == exec_id).cloned().ok_or_else(|| {
            let message = format!(
                "there is no process \"{exec_id}\" in this sandbox; it keeps only the last {MAX_ENDED} that ended"
            );
            fault(FaultCode::ProcessNotFound, message)
        })
    }

    /// Like [`Processes::get`], but waits for a start under way: a kill must not come too early.
    pub(crate) async fn get_started(&self, exec_id: &str) -> Result<Rc<Process>, Fault> {
        loop {
            let started = self.started.notified();
            if !self.starting.borrow().contains(exec_id) {
                return self.get(exec_id);
            }
            started.await;
        }
    }

    /// A start is under way for as long as the guard lives.
    pub(crate) fn starting(self: &Rc<Self>, exec_id: &str) -> Starting {
        self.starting.borrow_mut().insert(exec_id.to_owned());
        Starting { processes: Rc::clone(self), exec_id: exec_id.to_owned() }
    }

    pub(crate) fn insert(&self, process: &Rc<Process>) {
        self.all.borrow_mut().push(Rc::clone(process));
        self.notices.send_watchers(|| {
            let ProcessInfo { exec_id, command, .. } = process.info();
            Notice::Started { exec_id, command }
        });
    }

    /// A command has ended; processes that it started may still run.
    pub(crate) fn announce_end(&self, process: &Process) {
        if let Some(exit) = process.exit() {
            self.notices.send_watchers(|| Notice::Finished { exec_id: process.exec_id.clone(), exit });
        }
    }

    pub(crate) fn any_running(&self) -> bool {
        self.all.borrow().iter().any(|process| !process.is_tree_gone())
    }

    /// What each running command's tree has written to disk so far, by its supervisor.
    pub(crate) fn written(&self) -> HashMap<i32, Written> {
        let running = self.all.borrow().iter().filter(|p| !p.is_tree_gone()).map(|p| p.supervisor).collect::<Vec<_>>();
        tree::written(&running)
    }

    /// Ends the commands that fill the workspace.
    pub(crate) fn end_writers(&self, wrote: impl Fn(&i32) -> bool) {
        for process in self.all.borrow().iter().filter(|p| !p.is_tree_gone() && wrote(&p.supervisor)) {
            let _ = process.control.send(Control::OverLimit);
        }
    }

    pub(crate) fn list(&self) -> Vec<ProcessInfo> {
        let mut all = self.all.borrow().clone();
        all.sort_by_key(|process| process.started);
        all.iter().map(|process| process.info()).collect()
    }

    /// The client is gone: ends the processes that it did not detach.
    pub(crate) fn abandon(&self, client: u128) {
        for process in self.all.borrow().iter().filter(|process| process.owner == client && !process.detached) {
            let _ = process.control.send(Control::Terminate);
        }
    }

    /// Forgets the processes that ended first, beyond the limits. Called when one has ended.
    pub(crate) fn settle(&self, ended: &Process) {
        let mut all = self.all.borrow_mut();
        // To the back: it has only just ended, however long it ran.
        if let Some(index) = all.iter().position(|process| std::ptr::eq(Rc::as_ptr(process), ended)) {
            let process = all.remove(index);
            all.push(process);
        }
        let is_ended = |process: &Rc<Process>| process.is_tree_gone();
        let mut count = all.iter().filter(|process| is_ended(process)).count();
        let mut bytes: usize = all.iter().filter(|p| is_ended(p)).map(|p| p.log.borrow().held_bytes()).sum();
        all.retain(|process| {
            if !is_ended(process) || (count <= MAX_ENDED && bytes <= MAX_ENDED_BYTES) {
                return true;
            }
            count -= 1;
            bytes -= process.log.borrow().held_bytes();
            false
        });
    }

    /// Hides what ran before a session claimed the sandbox.
    pub(crate) fn forget_ended(&self) {
        self.all.borrow_mut().retain(|process| !process.is_tree_gone());
    }

    pub(crate) fn supervise(&self, supervisor: i32) {
        self.supervisors.borrow_mut().insert(supervisor);
    }

    pub(crate) fn is_supervising(&self, supervisor: i32) -> bool {
        self.supervisors.borrow().contains(&supervisor)
    }

    /// Reaps every child that ended, PID 1's own and adopted ones.
    pub(crate) fn reap(&self) {
        while let Ok(Some((pid, _))) = wait(WaitOptions::NOHANG) {
            self.supervisors.borrow_mut().remove(&Pid::as_raw(Some(pid)));
        }
    }
}

pub(crate) struct Starting {
    processes: Rc<Processes>,
    exec_id: String,
}

impl Drop for Starting {
    fn drop(&mut self) {
        self.processes.starting.borrow_mut().remove(&self.exec_id);
        self.processes.started.notify_waiters();
    }
}
