//! Sandboxes that were made before anybody asked for them.
//!
//! A shelf holds boxes of one profile: image, limits, network, read-only root. What a guest can be told later (key, user,
//! workdir, environment, labels, lease) is not part of it. Taking one is a rename on the engine, which is the claim, and a
//! message to its guest. The pool never outlives its manager: boxes in it have a short orphan lease of their own.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cofferdam_protocol::{Lease, Setup};
use tokio::sync::Notify;

use crate::backend::{BoxSpec, Creation};
use crate::events::{Event, EventKind};
use crate::guest::Guest;
use crate::host::Host;
use crate::id::random_id;
use crate::key::{WARM_CLAIM, is_private};
use crate::run::warm_up;
use crate::sandbox::{Linked, Make, Sandbox};
use crate::sessions::{claim_setup, prove_workdir};
use crate::{Error, ErrorCode, Result};

/// Without a host, a box that nobody asked for is of no use to anybody.
const ORPHAN: Duration = Duration::from_secs(10);

/// Making a box takes all the engine has for a moment: whoever has just taken one is served first.
const BREATH: Duration = Duration::from_millis(50);

/// Between two tries to fill a shelf, at first and at most.
const TRY_AGAIN: Duration = Duration::from_secs(1);
const TRY_AGAIN_AT_MOST: Duration = Duration::from_secs(30);

#[derive(Default)]
pub(crate) struct Pool(Mutex<Vec<Arc<Shelf>>>);

struct Shelf {
    /// As every box on it was made, but for its name and its id.
    profile: BoxSpec,
    count: usize,
    ready: Mutex<Vec<Linked>>,
    changed: Notify,
}

impl Shelf {
    fn ready(&self) -> MutexGuard<'_, Vec<Linked>> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fits(&self, spec: &BoxSpec) -> bool {
        let profile = &self.profile;
        spec.root() == profile.root()
            && spec.limits == profile.limits
            && spec.network == profile.network
            && spec.read_only_root == profile.read_only_root
            // On a read-only root the workdir is a mount.
            && (!spec.read_only_root || spec.setup.workdir == profile.setup.workdir)
            && !spec.persist
    }

    /// The next one that still lives.
    fn take(&self) -> Option<Linked> {
        let taken = loop {
            match self.ready().pop() {
                Some(linked) if linked.guest.over().is_some() => {}
                other => break other,
            }
        };
        self.changed.notify_one();
        taken
    }
}

impl Pool {
    fn shelves(&self) -> MutexGuard<'_, Vec<Arc<Shelf>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps `count` boxes ready for what `profile` says, until the host's background work ends; then they are gone.
    pub(crate) fn stock(&self, host: &Arc<Host>, profile: BoxSpec, count: usize) {
        let shelf = Arc::new(Shelf { profile, count, ready: Mutex::default(), changed: Notify::new() });
        self.shelves().push(Arc::clone(&shelf));
        host.background.spawn(keep_filled(Arc::clone(host), shelf));
    }

    fn shelf_for(&self, spec: &BoxSpec) -> Option<Arc<Shelf>> {
        self.shelves().iter().find(|shelf| shelf.fits(spec)).cloned()
    }

    /// A ready box as the sandbox of a session; `None` when there is none that fits, or the session has one.
    pub(crate) async fn claim(&self, spec: &BoxSpec) -> Result<Option<Arc<Sandbox>>> {
        let Some(shelf) = self.shelf_for(spec) else { return Ok(None) };
        let is_private = is_private(&spec.setup.key);
        while let Some(linked) = shelf.take() {
            let Ok(Setup { sandbox_id, .. }) = linked.setup() else { continue };
            let setup = claim_setup(spec, &sandbox_id);
            let backend = &linked.body.host().backend;
            let handle = linked.handle();
            // Side by side, because the engine takes several times as long: a session that has a sandbox already is the
            // rare case, and costs us this one. A key that nobody else can ask for needs no claim on the engine; it gets
            // its name when it is in use.
            let (named, told) = match is_private {
                true => (Ok(true), tell(&linked.guest, &setup).await),
                false => tokio::join!(backend.rename(&handle, &spec.claim, true), tell(&linked.guest, &setup)),
            };
            match (named, told) {
                (Ok(true), Ok(Told::Ready)) => {
                    if is_private {
                        let (backend, claim) = (Arc::clone(backend), spec.claim.clone());
                        tokio::spawn(async move { backend.rename(&handle, &claim, false).await });
                    }
                    return Ok(Some(linked.into_sandbox(setup, Make::from(spec.clone()))));
                }
                // Another program saw the name before the guest knew, and claimed it.
                (Ok(true), Ok(Told::TooLate)) => return Ok(None),
                (Ok(true), Ok(Told::Unusable(error))) => {
                    discard(&linked).await;
                    return Err(error);
                }
                (named, _) => {
                    discard(&linked).await;
                    match named {
                        Ok(false) => return Ok(None),
                        Err(error) if error.code() == Some(ErrorCode::EngineUnavailable) => return Err(error),
                        // It died, and nobody has noticed yet.
                        Ok(true) | Err(_) => {}
                    }
                }
            }
        }
        Ok(None)
    }

    /// The guests of all that is ready.
    pub(crate) fn guests(&self) -> Vec<Arc<Guest>> {
        let on = |shelf: &Arc<Shelf>| shelf.ready().iter().map(|linked| Arc::clone(&linked.guest)).collect::<Vec<_>>();
        self.shelves().iter().flat_map(on).collect()
    }
}

/// What a guest made of the news whose it is.
enum Told {
    Ready,
    /// It is somebody else's already.
    TooLate,
    /// It cannot be what the session asks for.
    Unusable(Error),
}

async fn tell(guest: &Arc<Guest>, setup: &Setup) -> Result<Told> {
    if !guest.claim(setup.clone()).await? {
        return Ok(Told::TooLate);
    }
    Ok(match prove_workdir(guest, &setup.workdir).await {
        Ok(()) => Told::Ready,
        Err(error) => Told::Unusable(error),
    })
}

/// What is just being made when it ends is gone, too.
async fn keep_filled(host: Arc<Host>, shelf: Arc<Shelf>) {
    let over = host.background.over();
    let mut pause = TRY_AGAIN;
    while !over.is_cancelled() {
        shelf.ready().retain(|linked| linked.guest.over().is_none());
        if shelf.ready().len() >= shelf.count {
            tokio::select! {
                () = shelf.changed.notified() => tokio::time::sleep(BREATH).await,
                () = over.cancelled() => {}
            }
            continue;
        }
        match make(&host, &shelf.profile).await {
            Ok(linked) => {
                pause = TRY_AGAIN;
                watch(&linked, &shelf);
                let ready = {
                    let mut ready = shelf.ready();
                    ready.push(linked);
                    ready.len()
                };
                host.events.emit(|| warming(&shelf.profile.image, shelf.count).with("ready", ready));
            }
            Err(error) => {
                tell_failure(&host, &shelf.profile.image, shelf.count, &error);
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = over.cancelled() => {}
                }
                pause = (pause * 2).min(TRY_AGAIN_AT_MOST);
            }
        }
    }
    let rest: Vec<Linked> = std::mem::take(&mut *shelf.ready());
    futures_util::future::join_all(rest.iter().map(discard)).await;
}

fn warming(image: &str, count: usize) -> Event {
    Event::new(EventKind::Warming).with("image", image.to_owned()).with("count", count)
}

/// There is no call that could give it as its error.
pub(crate) fn tell_failure(host: &Host, image: &str, count: usize, error: &Error) {
    host.events.emit(|| {
        let code = error.code().map(ErrorCode::as_str);
        warming(image, count).with("error", error.to_string()).with("code", code)
    });
}

async fn make(host: &Arc<Host>, profile: &BoxSpec) -> Result<Linked> {
    let spec = BoxSpec {
        claim: random_id(WARM_CLAIM),
        setup: Setup {
            sandbox_id: random_id("sbx_"),
            key: String::new(),
            lease: Lease { idle_ms: 0, max_ms: 0, orphan_ms: ORPHAN.as_millis() as u64 },
            ..profile.setup.clone()
        },
        ..profile.clone()
    };
    match host.backend.create(&spec).await? {
        Creation::New { handle, stream } => {
            let linked = Linked::new(host, handle.clone(), stream).await;
            match &linked {
                Ok(linked) => warm_up(&linked.guest, &profile.image).await,
                Err(_) => drop(host.backend.remove(&handle).await),
            }
            linked
        }
        Creation::Taken => Err(Error::new(ErrorCode::Internal, "a random name was taken")),
    }
}

/// One that dies while it waits is replaced.
fn watch(linked: &Linked, shelf: &Arc<Shelf>) {
    let (guest, shelf) = (Arc::downgrade(&linked.guest), Arc::downgrade(shelf));
    tokio::spawn(async move {
        Guest::keep(guest).await;
        if let Some(shelf) = shelf.upgrade() {
            shelf.changed.notify_one();
        }
    });
}

async fn discard(linked: &Linked) {
    linked.guest.close(Error::new(ErrorCode::SandboxClosed, "the pool was drained"));
    let _ = linked.body.host().backend.remove(&linked.handle()).await;
}
