//! Where every link enters. Until there is a setup, a link's first frame is taken as one; links that send nothing wait.
//!
//! Invariant: there is at most one setup. It comes from the first link that sends a frame; the guest ends when that frame is
//! anything else. Later links can never change it.

use std::cell::OnceCell;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use cofferdam_protocol::Setup;
use rustix::fs::{FileType, fstat};
use tokio::sync::{Notify, mpsc};

use crate::sandbox::Sandbox;
use crate::stream::Incoming;
use crate::{link, stream};

/// How long a guest waits for its setup: it has no lease before.
const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct Entry {
    offers: mpsc::Sender<io::Result<Setup>>,
    sandbox: OnceCell<Rc<Sandbox>>,
    opened: Notify,
}

/// The setup to come.
pub(crate) struct Expected(mpsc::Receiver<io::Result<Setup>>);

impl Expected {
    /// The setup, or why there can be none. From then on no link can offer another.
    pub(crate) async fn wait(mut self) -> io::Result<Setup> {
        match tokio::time::timeout(TIMEOUT, self.0.recv()).await {
            Ok(Some(setup)) => setup,
            _ => Err(io::Error::other(format!("no setup came within {} s", TIMEOUT.as_secs()))),
        }
    }
}

impl Entry {
    pub(crate) fn new() -> (Rc<Entry>, Expected) {
        let (offers, offered) = mpsc::channel(1);
        (Rc::new(Entry { offers, sandbox: OnceCell::new(), opened: Notify::new() }), Expected(offered))
    }

    /// From now on links are served.
    pub(crate) fn open(&self, sandbox: Rc<Sandbox>) {
        let _ = self.sandbox.set(sandbox);
        self.opened.notify_waiters();
    }

    /// Serves PID 1's own input and output, where they are a stream. Without a setup, the guest ends with that stream.
    pub(crate) async fn serve_first(&self, input: OwnedFd, output: OwnedFd) {
        // Where an engine attaches nobody, it is /dev/null: links come later.
        let is_stream = |fd: &OwnedFd| {
            fstat(fd).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) != FileType::CharacterDevice)
        };
        if is_stream(&input) {
            // How it ends does not matter: the lease counts links, and hosts can link again.
            let _ = self.serve(input, output).await;
            self.offer(Err(io::Error::other("the first stream ended without a setup")));
        }
    }

    /// Serves a link until it ends.
    pub(crate) async fn serve(&self, input: OwnedFd, output: OwnedFd) -> io::Result<()> {
        let (mut incoming, output) = stream::open(input, output)?;
        let opened = self.opened.notified();
        if let Some(sandbox) = self.sandbox.get() {
            return link::serve(Rc::clone(sandbox), incoming, output).await;
        }
        let mut opened = std::pin::pin!(opened);
        tokio::select! {
            biased;
            () = &mut opened => {}
            setup = receive(&mut incoming) => {
                let Some(setup) = setup else { return Ok(()) };
                if !self.offer(setup) {
                    return Err(io::Error::other("another link has sent a setup"));
                }
                opened.await;
            }
        }
        match self.sandbox.get() {
            Some(sandbox) => link::serve(Rc::clone(sandbox), incoming, output).await,
            None => Ok(()),
        }
    }

    /// False when there is a setup already.
    fn offer(&self, setup: io::Result<Setup>) -> bool {
        self.offers.try_send(setup).is_ok()
    }
}

/// `None` when the link ends, or breaks, before it has sent a frame.
async fn receive(incoming: &mut Incoming) -> Option<io::Result<Setup>> {
    loop {
        match incoming.buffered() {
            Ok(Some(frame)) => return Some(Setup::from_frame(&frame).map_err(io::Error::other)),
            Ok(None) => {}
            Err(error) => return Some(Err(error)),
        }
        if !matches!(incoming.read().await, Ok(true)) {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_guest_without_a_setup_gives_up_after_a_minute() {
        let (_entry, expected) = Entry::new();
        let began = tokio::time::Instant::now();
        assert_eq!(expected.wait().await.unwrap_err().to_string(), "no setup came within 60 s");
        assert_eq!(began.elapsed(), TIMEOUT);
    }
}
