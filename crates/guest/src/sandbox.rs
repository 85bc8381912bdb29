//! The whole sandbox: what its links share, and PID 1's own duties.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::rc::Rc;

use cofferdam_protocol::{Bounds, Ending, Hello, Notice, Setup, Status};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

use crate::clients::Clients;
use crate::files;
use crate::lease::{Due, Lease};
use crate::memory::Memory;
use crate::notices::Notices;
use crate::process::{Processes, users};
use crate::workspace::Workspace;
use crate::{door, link};

pub(crate) struct Sandbox {
    setup: RefCell<Rc<Setup>>,
    pub(crate) lease: Rc<Lease>,
    pub(crate) clients: Rc<Clients>,
    pub(crate) notices: Rc<Notices>,
    pub(crate) processes: Rc<Processes>,
    pub(crate) workspace: Rc<Workspace>,
    pub(crate) memory: Rc<Memory>,
    ending: Notify,
}

impl Sandbox {
    fn new(setup: Setup) -> Rc<Sandbox> {
        let lease = Lease::new(setup.lease);
        let notices = Rc::new(Notices::default());
        Rc::new_cyclic(|sandbox| Sandbox {
            processes: Processes::new(Rc::clone(&lease), Rc::clone(&notices)),
            clients: Clients::new(sandbox.clone()),
            workspace: Workspace::new(sandbox.clone(), setup.bounds.workspace_bytes),
            memory: Memory::new(sandbox.clone(), setup.bounds.memory_bytes),
            lease,
            notices,
            setup: RefCell::new(Rc::new(setup)),
            ending: Notify::new(),
        })
    }

    pub(crate) fn setup(&self) -> Rc<Setup> {
        Rc::clone(&self.setup.borrow())
    }

    /// Gives a box that nobody has yet to a session. False when somebody has it.
    pub(crate) fn claim(&self, setup: Setup) -> bool {
        let now = self.setup();
        if now.is_claimed() || !setup.is_claimed() || setup.sandbox_id != now.sandbox_id {
            return false;
        }
        self.lease.renew(setup.lease);
        self.workspace.set_limit(setup.bounds.workspace_bytes);
        self.memory.set_limit(setup.bounds.memory_bytes);
        make_workdir(&setup);
        self.setup.replace(Rc::new(setup));
        true
    }

    pub(crate) fn set_bounds(&self, bounds: Bounds) {
        self.workspace.set_limit(bounds.workspace_bytes);
        self.memory.set_limit(bounds.memory_bytes);
        let setup = Setup { bounds, ..Setup::clone(&self.setup()) };
        self.setup.replace(Rc::new(setup));
    }

    pub(crate) fn status(&self) -> Status {
        Status {
            setup: self.told_setup(),
            expires_in_ms: self.lease.remaining().map(|left| left.as_millis() as u64),
            workspace_bytes: self.workspace.used(),
            oom_kills: crate::process::oom_kills(),
        }
    }

    /// With the lease as it is now.
    fn told_setup(&self) -> Setup {
        Setup { lease: self.lease.terms(), ..Setup::clone(&self.setup()) }
    }

    /// A host asked for it.
    pub(crate) fn end(&self) {
        self.ending.notify_one();
    }

    pub(crate) fn hello(&self) -> Hello {
        Hello {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            setup: self.told_setup(),
            uptime_ms: self.lease.uptime().as_millis() as u64,
        }
    }
}

/// Runs until the lease ends or the engine asks PID 1 to stop. `inherited` is a door that is there already.
pub(crate) async fn run(setup: Setup, inherited: Option<OwnedFd>) -> io::Result<()> {
    // As PID 1, the kernel drops every signal that has no handler; these two are what engines send to stop us.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut child = signal(SignalKind::child())?;
    let sandbox = Sandbox::new(setup);
    make_workdir(&sandbox.setup());

    let door = tokio::task::spawn_local(door::keep(Rc::clone(&sandbox), inherited));
    let (input, output) = (io::stdin().as_fd().try_clone_to_owned()?, io::stdout().as_fd().try_clone_to_owned()?);
    tokio::task::spawn_local(first_link(Rc::clone(&sandbox), input, output));
    tokio::task::spawn_local(Rc::clone(&sandbox.workspace).watch());
    tokio::task::spawn_local(Rc::clone(&sandbox.memory).watch());

    let ending = loop {
        tokio::select! {
            _ = terminate.recv() => break Ending::Stopped,
            _ = interrupt.recv() => break Ending::Stopped,
            () = sandbox.ending.notified() => break Ending::Asked,
            due = sandbox.lease.due() => match due {
                Due::Expired(term) => break Ending::Expired(term),
                Due::Warning { term, left } => {
                    sandbox.notices.tell_all(&Notice::Expiring { term, in_ms: left.as_millis() as u64 });
                }
            },
            _ = child.recv() => sandbox.processes.reap(),
        }
    };
    door.abort();
    sandbox.notices.last_words(&Notice::Ending(ending)).await;
    Ok(())
}

async fn first_link(sandbox: Rc<Sandbox>, input: OwnedFd, output: OwnedFd) {
    // How it ends does not matter: the lease sees that nobody is linked, and hosts come back through the door.
    let _ = link::serve(sandbox, input, output).await;
}

/// The workdir belongs to whom commands run as, also where it is a volume that nobody has used yet. Where it cannot be
/// made (a read-only root), commands say so.
fn make_workdir(setup: &Setup) {
    let owner = users::resolve(setup.user.as_deref()).unwrap_or_default().owner();
    let workdir = std::path::Path::new(&setup.workdir);
    let _ = files::make_dirs(workdir, None, owner);
    let is_roots = workdir.metadata().is_ok_and(|folder| folder.uid() == 0);
    if is_roots && std::fs::read_dir(workdir).is_ok_and(|mut entries| entries.next().is_none()) {
        let _ = files::own_path(workdir, owner);
    }
}
