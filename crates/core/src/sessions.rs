//! From a box to create to the sandbox of a session: found, claimed from the warm pool, or created. Claims make that atomic across
//! programs.

use std::sync::Arc;
use std::time::Duration;

use cofferdam_protocol::Setup;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::backend::{BoxRecord, BoxSpec, BoxState, Creation};
use crate::guest::{ByteStream, Guest};
use crate::host::Host;
use crate::key::SessionKey;
use crate::pool::Pool;
use crate::sandbox::{Linked, Origin, Sandbox};
use crate::{Error, ErrorCode, Result};

/// How long another program may take from claiming a session to starting its box.
const STARTING: Duration = Duration::from_secs(30);

/// Between two looks at a box that another program is starting.
const PAUSE: Duration = Duration::from_millis(25);

/// A running box, and a stream into it.
pub(crate) struct Attached {
    pub(crate) handle: String,
    pub(crate) stream: ByteStream,
    /// The record of a box that existed before; `None` when this call created it.
    record: Option<BoxRecord>,
    key: SessionKey,
    spec: BoxSpec,
}

/// Creates the box of a session, or links to the one that exists.
pub(crate) async fn create_or_attach(host: &Arc<Host>, mut spec: BoxSpec) -> Result<Attached> {
    let backend = host.backend().await?;
    let key = spec.key.clone().ok_or_else(|| Error::new(ErrorCode::Internal, "a session has no key"))?;
    let deadline = Instant::now() + STARTING;
    if spec.persist {
        // A box that uses an existing workspace is the same sandbox as before.
        spec.sandbox_id = backend.require_workspaces()?.ensure(&spec).await?.spec.sandbox_id;
    }
    loop {
        if let Creation::New { handle, stream } = backend.create(&spec).await? {
            return Ok(Attached { handle, stream, record: None, key, spec });
        }
        // The holder of the claim runs, or is starting, or is going away, or is dead.
        match backend.holder(&key).await? {
            None => {}
            Some(record) if record.state == BoxState::Starting && Instant::now() < deadline => {}
            Some(record) if matches!(record.state, BoxState::Running | BoxState::Paused) => {
                match backend.link(&record.handle).await {
                    Ok(stream) => {
                        let handle = record.handle.clone();
                        return Ok(Attached { handle, stream, record: Some(record), key, spec });
                    }
                    Err(error) if error.code() == Some(ErrorCode::SandboxLost) => {}
                    Err(error) => return Err(error),
                }
            }
            Some(record) => backend.remove(&record.handle).await?,
        }
        if Instant::now() > deadline + STARTING {
            let message = format!(
                "session {:?} is still claimed after {} s by a sandbox that does not run; remove {}",
                key.as_str(),
                2 * STARTING.as_secs(),
                key.claim()
            );
            return Err(Error::new(ErrorCode::Internal, message));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// The sandbox of a session, and whether it was created for this request.
pub(crate) async fn get_or_create(
    host: &Arc<Host>,
    pool: Option<&Pool>,
    spec: BoxSpec,
    cancel: &CancellationToken,
) -> Result<(Arc<Sandbox>, bool)> {
    if let Some(pool) = pool
        && let Some(sandbox) = pool.claim(&spec).await?
    {
        return Ok((sandbox, true));
    }
    let _turn = tokio::select! {
        biased;
        () = cancel.cancelled() => return Err(Error::Aborted),
        turn = host.admit() => turn?,
    };
    let deadline = Instant::now() + STARTING;
    loop {
        let attached = create_or_attach(host, spec.clone()).await?;
        let (handle, created) = (attached.handle.clone(), attached.record.is_none());
        match handshake(host, attached).await {
            Ok(Some((sandbox, created))) => {
                if created && let Err(error) = check_workdir(&sandbox, sandbox.workdir()).await {
                    let _ = sandbox.close().await;
                    return Err(error);
                }
                return Ok((sandbox, created));
            }
            Ok(None) if Instant::now() < deadline => {}
            Ok(None) => return Err(disappearing()),
            Err(error) => {
                if created {
                    let _ = host.backend().await?.remove(&handle).await;
                }
                return Err(error);
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// The sandbox of a session went away each time it was found.
pub(crate) fn disappearing() -> Error {
    let message = "the sandbox kept disappearing while it was opened; is another program closing it?";
    Error::new(ErrorCode::SandboxLost, message)
}

/// From a stream to a sandbox; `None` when the box went away, or turned out to serve another session.
async fn handshake(host: &Arc<Host>, attached: Attached) -> Result<Option<(Arc<Sandbox>, bool)>> {
    let Attached { handle, stream, record, key, spec } = attached;
    let created = record.is_none();
    let linked = match Linked::new(host, handle, stream).await {
        Ok(linked) => linked,
        Err(error) if !created && error.code() == Some(ErrorCode::SandboxLost) => return Ok(None),
        Err(error) => return Err(error),
    };
    let setup = linked.setup()?;
    let origin = match &record {
        None => Origin::from(spec.clone()),
        Some(record) => Origin::from(record),
    };
    if setup.is_claimed() {
        let is_ours = setup.key == key.as_str();
        return Ok(is_ours.then(|| (linked.into_sandbox(setup, key, origin), created)));
    }
    // A program claimed the box and died before it told the guest.
    let claim = spec.claim_setup(&setup);
    match linked.guest.claim(claim.clone()).await? {
        true => Ok(Some((linked.into_sandbox(claim, key, origin), true))),
        false => Ok(None),
    }
}

/// Links to a box that exists; `None` when it went away meanwhile.
pub(crate) async fn adopt(host: &Arc<Host>, record: &BoxRecord) -> Result<Option<Arc<Sandbox>>> {
    let Some((linked, setup)) = peek(host, record).await? else { return Ok(None) };
    let key = SessionKey::from_text(setup.key.clone());
    Ok(key.map(|key| linked.into_sandbox(setup, key, Origin::from(record))))
}

/// Links to a box to learn which session it serves; `None` when it is gone, or unclaimed.
pub(crate) async fn peek(host: &Arc<Host>, record: &BoxRecord) -> Result<Option<(Linked, Setup)>> {
    let linked = async {
        let stream = host.backend().await?.link(&record.handle).await?;
        Linked::new(host, record.handle.clone(), stream).await
    };
    match linked.await {
        Ok(linked) => {
            let setup = linked.setup()?;
            // An owned guest may name any session: the claim decides.
            let is_it = setup.sandbox_id == record.id && record.serves(&setup.key);
            Ok(is_it.then_some((linked, setup)))
        }
        Err(error) if error.code() == Some(ErrorCode::SandboxLost) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The guest has created the workdir; this reports one that it could not create, or a user that does not exist.
pub(crate) async fn check_workdir(guest: &Guest, workdir: &str) -> Result<()> {
    guest.mkdir(workdir, None).await.map_err(|error| match error.code() {
        Some(ErrorCode::FileExists) => {
            Error::new(ErrorCode::NotADirectory, format!("workdir {workdir:?} is a file in this image"))
        }
        _ => error,
    })
}

/// No sandbox has this id.
pub(crate) fn not_found(id: &str) -> Error {
    let message = format!("there is no sandbox \"{id}\" on this backend; list() shows those that exist");
    Error::new(ErrorCode::SandboxNotFound, message).with("id", id)
}
