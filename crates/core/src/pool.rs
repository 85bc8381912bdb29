//! The warm pool: running, unclaimed boxes, ready for sessions to claim.
//!
//! A [`Profile`] holds boxes of one kind: image, limits, network, read-only root. A guest can be told everything else later (key, user,
//! workdir, environment, labels, lease). Claiming a box is a claim on the backend and a message to its guest. The pool never
//! outlives its manager: its boxes have a short orphan timeout of their own.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use cofferdam_protocol::{Lease, Setup};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::backend::{BoxSpec, Creation};
use crate::events::{Event, EventKind};
use crate::guest::Guest;
use crate::host::Host;
use crate::id::random_id;
use crate::key::SessionKey;
use crate::lock::lock;
use crate::run::warm_up;
use crate::sandbox::{Linked, Origin, Sandbox};
use crate::sessions::check_workdir;
use crate::{Error, ErrorCode, Result};

/// An unclaimed box is of no use without its host.
const ORPHAN: Duration = Duration::from_secs(10);

/// Creating a box takes all the machine has for a moment: while others are ready, whoever has just claimed one goes first.
const HEAD_START: Duration = Duration::from_millis(50);

/// Between two attempts to refill after a failure, at first and at most.
const RETRY: Duration = Duration::from_secs(1);
const RETRY_AT_MOST: Duration = Duration::from_secs(30);

#[derive(Default)]
pub(crate) struct Pool(Mutex<Vec<Arc<Profile>>>);

struct Profile {
    /// How its boxes are created, except for their ids.
    spec: BoxSpec,
    count: usize,
    ready: Mutex<Vec<Linked>>,
    changed: Notify,
}

impl Profile {
    fn ready(&self) -> MutexGuard<'_, Vec<Linked>> {
        lock(&self.ready)
    }

    fn fits(&self, spec: &BoxSpec) -> bool {
        let own = &self.spec;
        spec.root() == own.root()
            && spec.limits == own.limits
            && spec.network == own.network
            && spec.read_only_root == own.read_only_root
            // On a read-only root the workdir is a mount.
            && (!spec.read_only_root || spec.workdir == own.workdir)
            && !spec.persist
    }

    /// The next box that still lives.
    fn take(&self) -> Option<Linked> {
        loop {
            match self.ready().pop() {
                Some(linked) if linked.guest.over().is_some() => {}
                other => return other,
            }
        }
    }
}

/// What became of a box that a session tried to claim.
enum Claimed {
    Sandbox(Arc<Sandbox>),
    /// Another box serves the session.
    SessionTaken,
    /// The box is gone: try the next.
    BoxLost,
}

impl Pool {
    fn profiles(&self) -> MutexGuard<'_, Vec<Arc<Profile>>> {
        lock(&self.0)
    }

    /// Keeps `count` boxes like `spec` ready until the host's background work ends; then they are removed.
    pub(crate) fn fill(&self, host: &Arc<Host>, spec: BoxSpec, count: usize) {
        let profile = Arc::new(Profile { spec, count, ready: Mutex::default(), changed: Notify::new() });
        self.profiles().push(Arc::clone(&profile));
        host.background.spawn(refill(Arc::clone(host), profile));
    }

    /// A ready box as the sandbox of a session; `None` when none fits, or another box serves the session.
    pub(crate) async fn claim(&self, spec: &BoxSpec) -> Result<Option<Arc<Sandbox>>> {
        let Some(key) = &spec.key else { return Ok(None) };
        let Some(profile) = self.profiles().iter().find(|profile| profile.fits(spec)).cloned() else { return Ok(None) };
        while let Some(linked) = profile.take() {
            let outcome = claim(linked, key, spec).await;
            // Only now: a box that is created meanwhile would slow the claim down.
            profile.changed.notify_one();
            match outcome? {
                Claimed::Sandbox(sandbox) => return Ok(Some(sandbox)),
                Claimed::SessionTaken => return Ok(None),
                Claimed::BoxLost => {}
            }
        }
        Ok(None)
    }

    /// The guests of all boxes that are ready.
    pub(crate) fn guests(&self) -> Vec<Arc<Guest>> {
        let guests =
            |profile: &Arc<Profile>| profile.ready().iter().map(|linked| Arc::clone(&linked.guest)).collect::<Vec<_>>();
        self.profiles().iter().flat_map(guests).collect()
    }
}

async fn claim(linked: Linked, key: &SessionKey, spec: &BoxSpec) -> Result<Claimed> {
    let Ok(unclaimed) = linked.setup() else { return Ok(Claimed::BoxLost) };
    let setup = spec.claim_setup(&unclaimed);
    let backend = Arc::clone(linked.box_ref.host().backend().await?);
    let (handle, lease) = (linked.handle(), spec.lease);
    // Side by side, because an engine takes several times as long as the guest. That another box serves the session already is
    // rare, and costs this box. No other program can ask for a private key, so its claim need not be waited for.
    let (assigned, told) = match key.is_private() {
        true => (Ok(true), tell(&linked.guest, &setup).await),
        false => tokio::join!(backend.assign(&handle, key, lease), tell(&linked.guest, &setup)),
    };
    match (assigned, told) {
        (Ok(true), Ok(Told::Ready)) => {
            if key.is_private() {
                let key = key.clone();
                tokio::spawn(async move { backend.assign(&handle, &key, lease).await });
            }
            Ok(Claimed::Sandbox(linked.into_sandbox(setup, key.clone(), Origin::from(spec.clone()))))
        }
        // Another program found the box by its new claim, and told the guest first.
        (Ok(true), Ok(Told::TooLate)) => Ok(Claimed::SessionTaken),
        (Ok(true), Ok(Told::Unusable(error))) => {
            discard(&linked).await;
            Err(error)
        }
        (assigned, told) => {
            discard(&linked).await;
            match (assigned, told) {
                (Ok(false), _) => Ok(Claimed::SessionTaken),
                // The backend is in trouble, not the box: the next one would fare no better.
                (Err(error), Ok(_)) if error.code() != Some(ErrorCode::SandboxLost) => Err(error),
                (Err(error), _) if error.code() == Some(ErrorCode::EngineUnavailable) => Err(error),
                _ => Ok(Claimed::BoxLost),
            }
        }
    }
}

/// How a guest took its claim.
enum Told {
    Ready,
    /// It serves another session already.
    TooLate,
    /// It cannot be what the session asks for.
    Unusable(Error),
}

async fn tell(guest: &Arc<Guest>, setup: &Setup) -> Result<Told> {
    if !guest.claim(setup.clone()).await? {
        return Ok(Told::TooLate);
    }
    Ok(match check_workdir(guest, &setup.workdir).await {
        Ok(()) => Told::Ready,
        Err(error) => Told::Unusable(error),
    })
}

/// Keeps a profile full: creates as many boxes at once as are missing. Removes everything when it ends, also what is just being
/// created.
async fn refill(host: Arc<Host>, profile: Arc<Profile>) {
    let over = host.background.over();
    let mut creating = JoinSet::new();
    let mut retry = RETRY;
    while !over.is_cancelled() {
        profile.ready().retain(|linked| linked.guest.over().is_none());
        let ready = profile.ready().len();
        for _ in ready + creating.len()..profile.count {
            let (host, profile) = (Arc::clone(&host), Arc::clone(&profile));
            creating.spawn(async move { create(&host, &profile.spec).await });
        }
        let created = tokio::select! {
            Some(created) = creating.join_next() => created,
            () = profile.changed.notified() => {
                if !profile.ready().is_empty() {
                    tokio::time::sleep(HEAD_START).await;
                }
                continue;
            }
            () = over.cancelled() => break,
        };
        match created.unwrap_or_else(|error| Err(Error::panicked(error))) {
            Ok(linked) => {
                retry = RETRY;
                watch(&linked, &profile);
                let ready = {
                    let mut ready = profile.ready();
                    ready.push(linked);
                    ready.len()
                };
                host.events.emit(|| warming(&profile.spec.image, profile.count).with("ready", ready));
            }
            Err(error) => {
                emit_failure(&host, &profile.spec.image, profile.count, &error);
                tokio::select! {
                    () = tokio::time::sleep(retry) => {}
                    () = over.cancelled() => {}
                }
                retry = (retry * 2).min(RETRY_AT_MOST);
            }
        }
    }
    while let Some(created) = creating.join_next().await {
        if let Ok(Ok(linked)) = created {
            profile.ready().push(linked);
        }
    }
    let rest: Vec<Linked> = std::mem::take(&mut *profile.ready());
    futures_util::future::join_all(rest.iter().map(discard)).await;
}

fn warming(image: &str, count: usize) -> Event {
    Event::new(EventKind::Warming).with("image", image.to_owned()).with("count", count)
}

/// No call is there to reject with it.
pub(crate) fn emit_failure(host: &Host, image: &str, count: usize, error: &Error) {
    host.events.emit(|| {
        let code = error.code().map(ErrorCode::as_str);
        warming(image, count).with("error", error.to_string()).with("code", code)
    });
}

async fn create(host: &Arc<Host>, profile: &BoxSpec) -> Result<Linked> {
    let _turn = host.admit().await?;
    let spec = BoxSpec {
        sandbox_id: random_id("sbx_"),
        key: None,
        lease: Lease { idle_ms: 0, max_ms: 0, orphan_ms: ORPHAN.as_millis() as u64 },
        ..profile.clone()
    };
    let backend = host.backend().await?;
    match backend.create(&spec).await? {
        Creation::New { handle, stream } => {
            let linked = Linked::new(host, handle.clone(), stream).await;
            match &linked {
                Ok(linked) => warm_up(&linked.guest, &profile.image).await,
                Err(_) => drop(backend.remove(&handle).await),
            }
            linked
        }
        Creation::Taken => Err(Error::new(ErrorCode::Internal, "an unclaimed box cannot be taken")),
    }
}

/// Has a box replaced that dies before it is claimed.
fn watch(linked: &Linked, profile: &Arc<Profile>) {
    let (guest, profile) = (Arc::downgrade(&linked.guest), Arc::downgrade(profile));
    tokio::spawn(async move {
        Guest::maintain_link(guest).await;
        if let Some(profile) = profile.upgrade() {
            profile.changed.notify_one();
        }
    });
}

async fn discard(linked: &Linked) {
    linked.guest.close(Error::new(ErrorCode::SandboxClosed, "the warm pool was closed"));
    let _ = linked.box_ref.remove().await;
}
