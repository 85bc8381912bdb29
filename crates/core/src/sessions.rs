//! From a request to a sandbox: found again, taken from the pool, or made. The engine's rule that a name is given once
//! makes it atomic across programs.

use std::sync::Arc;
use std::time::Duration;

use cofferdam_protocol::{Bounds, Lease, Setup};
use tokio::time::Instant;

use crate::backend::{BoxRecord, BoxSpec, BoxState, Creation};
use crate::events::{Event, EventKind};
use crate::guest::{ByteStream, Guest, check_env, check_path};
use crate::host::Host;
use crate::id::random_id;
use crate::options::{DEFAULT_WORKDIR, Limits, OnPull, OpenRequest, Timeouts};
use crate::pool::Pool;
use crate::sandbox::{Linked, Make, Sandbox};
use crate::{Error, ErrorCode, Result};

/// How long another program may take from claiming a session to starting its sandbox.
const STARTING: Duration = Duration::from_secs(30);

/// Between two looks at a sandbox that another program is starting.
const LOOK_AGAIN: Duration = Duration::from_millis(25);

/// A box that runs, and a stream into it.
pub(crate) struct Raised {
    pub(crate) handle: String,
    pub(crate) stream: ByteStream,
    /// False when it was there already.
    pub(crate) created: bool,
    /// What it was, when it was there already.
    record: Option<BoxRecord>,
    spec: BoxSpec,
}

/// Makes the box of a claim, or finds the one that somebody else made.
pub(crate) async fn raise(host: &Arc<Host>, mut spec: BoxSpec) -> Result<Raised> {
    let backend = &host.backend;
    let deadline = Instant::now() + STARTING;
    if spec.persist {
        // The workspace came first: whoever uses it is the same sandbox as before.
        spec.setup.sandbox_id = backend.keep(&spec).await?.setup.sandbox_id;
    }
    loop {
        if let Creation::New { handle, stream } = backend.create(&spec).await? {
            return Ok(Raised { handle, stream, created: true, record: None, spec });
        }
        // Somebody else has it, or it is just going away, or what held it is dead.
        match backend.find(&spec.claim).await? {
            None => {}
            Some(record) if record.state == BoxState::Starting && Instant::now() < deadline => {}
            Some(record) if matches!(record.state, BoxState::Running | BoxState::Paused) => {
                match backend.link(&record.handle).await {
                    Ok(stream) => {
                        let handle = record.handle.clone();
                        return Ok(Raised { handle, stream, created: false, record: Some(record), spec });
                    }
                    Err(error) if error.code() == Some(ErrorCode::SandboxLost) => {}
                    Err(error) => return Err(error),
                }
            }
            Some(record) => backend.remove(&record.handle).await?,
        }
        if Instant::now() > deadline + STARTING {
            let message = format!(
                "the name of session {:?} is taken on this engine, and stays so; remove the container {}",
                spec.setup.key, spec.claim
            );
            return Err(Error::new(ErrorCode::Internal, message));
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// The sandbox of a session, and whether it was made for this request.
pub(crate) async fn get_or_create(
    host: &Arc<Host>,
    pool: Option<&Pool>,
    spec: BoxSpec,
) -> Result<(Arc<Sandbox>, bool)> {
    let deadline = Instant::now() + STARTING;
    if let Some(pool) = pool
        && let Some(sandbox) = pool.claim(&spec).await?
    {
        return Ok((sandbox, true));
    }
    loop {
        let raised = raise(host, spec.clone()).await?;
        let (handle, created) = (raised.handle.clone(), raised.created);
        match settle(host, raised).await {
            Ok(Some((sandbox, created))) => {
                if created && let Err(error) = prove_workdir(&sandbox, sandbox.workdir()).await {
                    let _ = sandbox.close().await;
                    return Err(error);
                }
                return Ok((sandbox, created));
            }
            Ok(None) if Instant::now() < deadline => {}
            Ok(None) => return Err(Error::new(ErrorCode::SandboxLost, "the sandbox goes away as soon as it is found")),
            Err(error) => {
                if created {
                    let _ = host.backend.remove(&handle).await;
                }
                return Err(error);
            }
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// From a stream to a sandbox; `None` when it went away meanwhile, or is not what it was taken for.
async fn settle(host: &Arc<Host>, raised: Raised) -> Result<Option<(Arc<Sandbox>, bool)>> {
    let Raised { handle, stream, created, record, spec } = raised;
    let linked = match Linked::new(host, handle, stream).await {
        Ok(linked) => linked,
        Err(error) if !created && error.code() == Some(ErrorCode::SandboxLost) => return Ok(None),
        Err(error) => return Err(error),
    };
    let setup = linked.setup()?;
    let make = match &record {
        None => Make::from(spec.clone()),
        Some(record) => Make::from(record),
    };
    if setup.is_claimed() {
        let is_it = setup.key == spec.setup.key;
        return Ok(is_it.then(|| (linked.into_sandbox(setup, make), created)));
    }
    // Its claimant gave it the name and died before it told the guest.
    let claim = claim_setup(&spec, &setup.sandbox_id);
    match linked.guest.claim(claim.clone()).await? {
        true => Ok(Some((linked.into_sandbox(claim, make), true))),
        false => Ok(None),
    }
}

/// Links to a box that exists; `None` when it went away meanwhile.
pub(crate) async fn adopt(host: &Arc<Host>, record: &BoxRecord) -> Result<Option<Arc<Sandbox>>> {
    match peek(host, record).await? {
        Some((linked, setup)) => Ok(Some(linked.into_sandbox(setup, Make::from(record)))),
        None => Ok(None),
    }
}

/// Links to a box to learn whose it is; `None` when it is gone, or is nobody's.
pub(crate) async fn peek(host: &Arc<Host>, record: &BoxRecord) -> Result<Option<(Linked, Setup)>> {
    let linked = async {
        let stream = host.backend.link(&record.handle).await?;
        Linked::new(host, record.handle.clone(), stream).await
    };
    match linked.await {
        Ok(linked) => {
            let setup = linked.setup()?;
            // A guest may be anybody's by now: it is what its name says, or it is nothing.
            let is_it = setup.sandbox_id == record.id && crate::key::claim(&setup.key) == record.name;
            Ok(is_it.then_some((linked, setup)))
        }
        Err(error) if error.code() == Some(ErrorCode::SandboxLost) => Ok(None),
        Err(error) => Err(error),
    }
}

/// What a pooled guest is told when a session takes it.
pub(crate) fn claim_setup(spec: &BoxSpec, sandbox_id: &str) -> Setup {
    let pairs = |map: &std::collections::BTreeMap<String, String>| map.clone().into_iter().collect();
    Setup {
        sandbox_id: sandbox_id.to_owned(),
        env: pairs(&spec.env),
        labels: pairs(&spec.labels),
        ..spec.setup.clone()
    }
}

/// What to make for a request, and the id of its image, which is pulled if need be.
pub(crate) async fn specify(
    host: &Host,
    request: &OpenRequest,
    key: &str,
    image: &str,
    limits: Limits,
    timeouts: Timeouts,
) -> Result<(BoxSpec, String)> {
    let on_pull = told_of_pulls(host, request.on_pull.clone());
    let facts = host.backend.prepare_image(image, request.pull, Some(&on_pull)).await?;
    let spec = BoxSpec {
        claim: crate::key::claim(key),
        image: image.to_owned(),
        setup: Setup {
            sandbox_id: random_id("sbx_"),
            key: key.to_owned(),
            workdir: request.workdir.clone().unwrap_or_else(|| DEFAULT_WORKDIR.to_owned()),
            user: request.user.clone().or(facts.user),
            lease: lease(timeouts),
            env: Vec::new(),
            labels: Vec::new(),
            bounds: Bounds {
                workspace_bytes: limits.workspace_mb.unwrap_or(0) << 20,
                open_files: limits.open_files.unwrap_or(0),
                // The backend's to say, where the kernel does not keep them.
                ..Bounds::default()
            },
        },
        env: request.env.clone(),
        limits,
        network: request.network,
        read_only_root: request.read_only_root,
        persist: request.persist,
        labels: request.labels.clone(),
        layer: None,
    };
    Ok((spec, facts.id))
}

/// The caller's own listener, and everybody's.
pub(crate) fn told_of_pulls(host: &Host, callers: Option<OnPull>) -> OnPull {
    let events = host.events.clone();
    Arc::new(move |step| {
        events.emit(|| {
            Event::new(EventKind::Pull)
                .with("image", step.image.clone())
                .with("layer", step.layer.clone())
                .with("status", step.status.clone())
                .with("currentBytes", step.current_bytes)
                .with("totalBytes", step.total_bytes)
        });
        if let Some(callers) = &callers {
            callers(step);
        }
    })
}

fn lease(timeouts: Timeouts) -> Lease {
    let ms = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    Lease { idle_ms: ms(timeouts.idle), max_ms: ms(timeouts.max_lifetime), orphan_ms: ms(timeouts.orphan) }
}

pub(crate) fn check_request(request: &OpenRequest) -> Result<()> {
    if let Some(workdir) = &request.workdir {
        check_path(workdir)?;
        if !workdir.starts_with('/') || workdir == "/" {
            return Err(Error::invalid(format!("workdir must be an absolute path below /, not {workdir:?}")));
        }
    }
    if request.user.as_deref() == Some("") {
        return Err(Error::invalid("user is empty; leave it out to run as the image's own user"));
    }
    request.packages.check()?;
    let env: Vec<_> = request.env.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    check_env(&env)
}

/// A session has one image. A caller that names another one would be surprised by what it finds.
pub(crate) fn check_same(request: &OpenRequest, image: &str, sandbox: &Sandbox) -> Result<()> {
    if request.image.is_none() || sandbox.image() == image {
        return Ok(());
    }
    let message = format!(
        "session {} is open with image \"{}\", not \"{image}\"; close it first, or give this one another session name",
        sandbox.key(),
        sandbox.image()
    );
    Err(Error::invalid(message).with("image", sandbox.image()))
}

/// The guest has made it; this is where one that cannot be made, or a user that is not there, is told of.
pub(crate) async fn prove_workdir(guest: &Guest, workdir: &str) -> Result<()> {
    guest.mkdir(workdir, None).await.map_err(|error| match error.code() {
        Some(ErrorCode::FileExists) => {
            Error::new(ErrorCode::NotADirectory, format!("workdir {workdir:?} is a file in this image"))
        }
        _ => error,
    })
}

/// Puts into a new sandbox what it was ordered with.
pub(crate) async fn furnish(sandbox: &Sandbox, request: &OpenRequest) -> Result<()> {
    sandbox.write_many(&request.files).await?;
    if let Some(command) = &request.init {
        let mut exec = crate::ExecRequest::shell("");
        exec.spawn.command = command.clone();
        exec.cancel = request.cancel.clone();
        let result = sandbox.exec(exec).await?;
        if result.exit_code != 0 {
            let errors = String::from_utf8_lossy(&result.stderr);
            let message = format!("init ended with exit code {}: {}", result.exit_code, errors.trim());
            return Err(Error::invalid(message).with("exitCode", result.exit_code));
        }
    }
    Ok(())
}

/// What to do about an id that nobody has.
pub(crate) fn not_found(id: &str) -> Error {
    let message = format!("there is no sandbox \"{id}\" on this engine; list() gives those there are");
    Error::new(ErrorCode::SandboxNotFound, message).with("id", id)
}
