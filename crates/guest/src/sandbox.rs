//! The whole sandbox: what its links share, and PID 1's own duties.

use std::io;
use std::os::fd::AsFd;
use std::rc::Rc;

use cofferdam_protocol::{Hello, Setup};
use tokio::signal::unix::{SignalKind, signal};

use crate::clients::Clients;
use crate::files;
use crate::lease::Lease;
use crate::process::{Processes, users};
use crate::{door, link};

pub(crate) struct Sandbox {
    pub(crate) setup: Setup,
    pub(crate) lease: Rc<Lease>,
    pub(crate) clients: Rc<Clients>,
    pub(crate) processes: Rc<Processes>,
}

impl Sandbox {
    fn new(setup: Setup) -> Rc<Sandbox> {
        let lease = Lease::new(setup.lease);
        Rc::new_cyclic(|sandbox| Sandbox {
            processes: Processes::new(Rc::clone(&lease)),
            clients: Clients::new(sandbox.clone()),
            lease,
            setup,
        })
    }

    pub(crate) fn hello(&self) -> Hello {
        Hello {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            setup: self.setup.clone(),
            uptime_ms: self.lease.uptime().as_millis() as u64,
        }
    }
}

/// Runs until the lease ends or the engine asks PID 1 to stop.
pub(crate) async fn run(setup: Setup) -> io::Result<()> {
    // As PID 1, the kernel drops every signal that has no handler; these two are what engines send to stop us.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut child = signal(SignalKind::child())?;
    let sandbox = Sandbox::new(setup);
    make_workdir(&sandbox.setup);

    let door = tokio::task::spawn_local(door::keep(Rc::clone(&sandbox)));
    let (input, output) = (io::stdin().as_fd().try_clone_to_owned()?, io::stdout().as_fd().try_clone_to_owned()?);
    tokio::task::spawn_local(first_link(Rc::clone(&sandbox), input, output));

    loop {
        tokio::select! {
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            _ = sandbox.lease.expired() => break,
            _ = child.recv() => sandbox.processes.reap(),
        }
    }
    door.abort();
    Ok(())
}

async fn first_link(sandbox: Rc<Sandbox>, input: std::os::fd::OwnedFd, output: std::os::fd::OwnedFd) {
    // How it ends does not matter: the lease sees that nobody is linked, and hosts come back through the door.
    let _ = link::serve(sandbox, input, output).await;
}

/// The workdir belongs to whom commands run as. Where it cannot be made (a read-only root), commands say so.
fn make_workdir(setup: &Setup) {
    let owner = users::resolve(setup.user.as_deref()).unwrap_or_default();
    let _ = files::make_dirs(std::path::Path::new(&setup.workdir), None, owner.owner());
}
