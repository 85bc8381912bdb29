//! The shared state of one command while its [`pump`](super::pump) runs it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use cofferdam_protocol::{Exit, Killed, ProcessInfo};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use super::log::{Chunk, Log};
use super::spill::Spill;
use crate::fd::{Fd, READ_SIZE};

/// Unsent bytes of a follower beyond which the process has to wait.
const FOLLOWER_LIMIT: usize = 4 * READ_SIZE;

/// A request to a pump.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Control {
    Signal(u8),
    Terminate,
    /// It fills the workspace beyond its limit.
    OverLimit,
}

#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) exec_id: String,
    pub(crate) line: String,
    pub(crate) supervisor: i32,
    pub(crate) owner: u128,
    pub(crate) detached: bool,
    pub(crate) started: Instant,
    pub(crate) pid: Cell<u32>,
    pub(crate) log: RefCell<Log>,
    pub(crate) stdin: RefCell<Option<Rc<Fd>>>,
    pub(crate) control: mpsc::UnboundedSender<Control>,
    /// Followers wait only for this and their own queue.
    pub(crate) changed: Notify,
    /// The pump waits here while it must not read.
    pub(crate) room: Notify,
    /// Output is held for a first reader.
    pub(crate) holding: Cell<bool>,
    /// PID 1's end of its terminal.
    pub(crate) terminal: RefCell<Option<OwnedFd>>,
    pub(crate) spill: RefCell<Option<Spill>>,
    /// Processes of its tree that were killed.
    pub(crate) killed: RefCell<Vec<Killed>>,
    exit: Cell<Option<Exit>>,
    /// Nothing of it runs any more, but output may still come.
    dead: Cell<bool>,
    tree_gone: Cell<bool>,
    followers: RefCell<Vec<Rc<Follower>>>,
}

impl Process {
    pub(crate) fn new(
        exec_id: String,
        line: String,
        (supervisor, started): (i32, Instant),
        (owner, detached): (u128, bool),
        keep: usize,
    ) -> (Rc<Process>, mpsc::UnboundedReceiver<Control>) {
        let (control, commands) = mpsc::unbounded_channel();
        let process = Rc::new(Process {
            exec_id,
            line,
            supervisor,
            owner,
            detached,
            started,
            pid: Cell::new(0),
            log: RefCell::new(Log::new(keep)),
            stdin: RefCell::default(),
            control,
            changed: Notify::new(),
            room: Notify::new(),
            holding: Cell::new(false),
            terminal: RefCell::default(),
            spill: RefCell::default(),
            killed: RefCell::default(),
            exit: Cell::new(None),
            dead: Cell::new(false),
            tree_gone: Cell::new(false),
            followers: RefCell::default(),
        });
        (process, commands)
    }

    pub(crate) fn exit(&self) -> Option<Exit> {
        self.exit.get()
    }

    pub(crate) fn set_exit(&self, exit: Exit) {
        self.exit.set(Some(exit));
        self.holding.set(false);
        self.changed.notify_waiters();
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.dead.get()
    }

    pub(crate) fn set_dead(&self) {
        self.dead.set(true);
        self.changed.notify_waiters();
    }

    pub(crate) fn is_tree_gone(&self) -> bool {
        self.tree_gone.get()
    }

    pub(crate) fn set_tree_gone(&self) {
        self.tree_gone.set(true);
        self.stdin.take();
        self.terminal.take();
        self.spill.take();
        self.changed.notify_waiters();
    }

    /// Takes a piece of output, of whole characters.
    pub(crate) fn append(&self, stream: super::log::Stream, bytes: &[u8]) {
        if let Some(spill) = &mut *self.spill.borrow_mut() {
            spill.append(bytes);
        }
        let followers = self.followers.borrow();
        let follow = (!followers.is_empty()).then_some(|chunk: Chunk| {
            followers.iter().for_each(|follower| follower.push(chunk.clone()));
        });
        self.log.borrow_mut().append(stream, bytes, follow);
        self.changed.notify_waiters();
    }

    /// Whether more output may be read without dropping what a reader waits for. After the process has ended, only what its
    /// pipes hold is left, and there is always room for that.
    pub(crate) fn has_room(&self) -> bool {
        if self.is_dead() && !self.holding.get() {
            return true;
        }
        let keeps_up = |follower: &Rc<Follower>| follower.unsent.get() < FOLLOWER_LIMIT;
        self.followers.borrow().iter().all(keeps_up) && !(self.holding.get() && self.log.borrow().is_full())
    }

    /// From now on, output does not wait for readers.
    pub(crate) fn release(&self) {
        self.holding.set(false);
        self.room.notify_one();
    }

    /// Everything retained after `since`, then all further output, without loss.
    pub(crate) fn follow(self: &Rc<Self>, since: u64) -> Following {
        let follower = Rc::new(Follower::default());
        self.log.borrow_mut().since(since, usize::MAX).into_iter().for_each(|chunk| follower.push(chunk));
        self.followers.borrow_mut().push(Rc::clone(&follower));
        self.release();
        Following { process: Rc::clone(self), follower }
    }

    pub(crate) fn info(&self) -> ProcessInfo {
        ProcessInfo {
            exec_id: self.exec_id.clone(),
            pid: self.pid.get(),
            command: self.line.chars().take(200).collect(),
            age_ms: self.started.elapsed().as_millis() as u64,
            exit: self.exit(),
        }
    }
}

#[derive(Debug, Default)]
struct Follower {
    queue: RefCell<VecDeque<Chunk>>,
    unsent: Cell<usize>,
}

impl Follower {
    fn push(&self, chunk: Chunk) {
        self.unsent.set(self.unsent.get() + chunk.payload.len());
        self.queue.borrow_mut().push_back(chunk);
    }
}

/// One reader's position in a process's output.
#[derive(Debug)]
pub(crate) struct Following {
    process: Rc<Process>,
    follower: Rc<Follower>,
}

impl Following {
    /// The next chunk; `None` after the last one of a process that has ended.
    pub(crate) async fn next(&self) -> Option<Chunk> {
        loop {
            let changed = self.process.changed.notified();
            if let Some(chunk) = self.follower.queue.borrow_mut().pop_front() {
                self.follower.unsent.set(self.follower.unsent.get() - chunk.payload.len());
                self.process.room.notify_one();
                return Some(chunk);
            }
            if self.process.exit().is_some() {
                return None;
            }
            changed.await;
        }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.process.followers.borrow_mut().retain(|other| !Rc::ptr_eq(other, &self.follower));
        self.process.room.notify_one();
    }
}
