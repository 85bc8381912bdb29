//! The sandbox: what its links share, and the main loop of PID 1.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::rc::Rc;

use cofferdam_protocol::{Bounds, Ending, Hello, Notice, Setup, Status};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

use crate::clients::Clients;
use crate::entry::Entry;
use crate::files;
use crate::lease::{Due, Lease};
use crate::link_socket;
use crate::memory::Memory;
use crate::notices::Notices;
use crate::process::{Processes, users};
use crate::workspace::Workspace;

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

    /// Gives a warm box to a session. False when a session has it already.
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
            setup: self.current_setup(),
            expires_in_ms: self.lease.remaining().map(|left| left.as_millis() as u64),
            workspace_bytes: self.workspace.used(),
            oom_kills: crate::process::oom_kills(),
        }
    }

    /// With the lease as it is now.
    fn current_setup(&self) -> Setup {
        Setup { lease: self.lease.terms(), ..Setup::clone(&self.setup()) }
    }

    /// A host asked for it.
    pub(crate) fn end(&self) {
        self.ending.notify_one();
    }

    pub(crate) fn hello(&self) -> Hello {
        Hello {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            setup: self.current_setup(),
            uptime_ms: self.lease.uptime().as_millis() as u64,
        }
    }
}

/// Runs until the lease ends or somebody asks PID 1 to stop, and returns which. Further links come through `inherited`, or else through a
/// socket of the guest's own.
pub(crate) async fn run(inherited: Option<OwnedFd>) -> io::Result<Ending> {
    // As PID 1, the kernel drops every signal that has no handler; these two are what engines send to stop us.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut child = signal(SignalKind::child())?;
    let (entry, expected) = Entry::new();
    let accepting = tokio::task::spawn_local(link_socket::accept(Rc::clone(&entry), inherited));
    let (input, output) = (io::stdin().as_fd().try_clone_to_owned()?, io::stdout().as_fd().try_clone_to_owned()?);
    tokio::task::spawn_local({
        let entry = Rc::clone(&entry);
        async move { entry.serve_first(input, output).await }
    });
    let setup = tokio::select! {
        setup = expected.wait() => setup?,
        _ = terminate.recv() => return Ok(Ending::Stopped),
        _ = interrupt.recv() => return Ok(Ending::Stopped),
    };
    let sandbox = Sandbox::new(setup);
    make_workdir(&sandbox.setup());
    entry.open(Rc::clone(&sandbox));
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
                    sandbox.notices.send_all(&Notice::Expiring { term, in_ms: left.as_millis() as u64 });
                }
            },
            _ = child.recv() => sandbox.processes.reap(),
        }
    };
    accepting.abort();
    sandbox.notices.send_last(&Notice::Ending(ending)).await;
    Ok(ending)
}

/// The command user owns the workdir, also where it is a new volume. Where it cannot be made (a read-only root), commands
/// fail with that.
fn make_workdir(setup: &Setup) {
    let owner = users::resolve(setup.user.as_deref()).unwrap_or_default().owner();
    let workdir = std::path::Path::new(&setup.workdir);
    let _ = files::make_dirs(workdir, None, owner);
    let is_roots = workdir.metadata().is_ok_and(|folder| folder.uid() == 0);
    if is_roots && std::fs::read_dir(workdir).is_ok_and(|mut entries| entries.next().is_none()) {
        let _ = files::own_path(workdir, owner);
    }
}
