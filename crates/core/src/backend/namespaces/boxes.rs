//! One box: made, found, linked to, ended. Everything here blocks, for milliseconds.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, UNIX_EPOCH};

use cofferdam_protocol::keeper::Step;
use cofferdam_protocol::{Bounds, Lease, Setup};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::cgroups::Hierarchy;
use super::images::Prepared;
use super::plan::Planning;
use super::state::{Record, State};
use super::{Found, Ground, advice, broken, cgroup_prefix, data, prune, roots};
use crate::backend::{BoxRecord, BoxSpec, BoxState, now_ms};
use crate::guest::ByteStream;
use crate::id::random_id;
use crate::key::{WARM_CLAIM, is_private};
use crate::options::{DEFAULT_WORKDIR, Limits};
use crate::{Error, ErrorCode, Result};

/// How the name of a box begins that nobody is to use.
const PROBE_CLAIM: &str = "probe-";
const PROBE_MS: u64 = 10_000;

/// How long a keeper may take to bury its box.
const BURIAL: Duration = Duration::from_secs(10);

/// Between two looks at what another process is just doing.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// Makes a box, and gives its first stream; `None` when its claim is taken.
pub(super) fn create(
    ground: &Ground,
    found: &Found,
    spec: &BoxSpec,
    image: &Prepared,
) -> Result<Option<(String, UnixStream)>> {
    loop {
        let in_memory = ground.in_memory.load(Ordering::Relaxed);
        let hierarchy = ground.hierarchy(found);
        match create_once(found, spec, image, in_memory, hierarchy)? {
            Attempt::Made(handle, stream) => {
                ground.is_proven.store(true, Ordering::Relaxed);
                return Ok(Some((handle, stream)));
            }
            Attempt::Taken => return Ok(None),
            Attempt::NoOverlay(error) if in_memory => return Err(error),
            // What was written would have been on a file system that cannot be the upper layer of another.
            Attempt::NoOverlay(_) => ground.in_memory.store(true, Ordering::Relaxed),
            Attempt::NoCgroups(error) if *hierarchy == Hierarchy::Absent => return Err(error),
            // The guest keeps what it can, and info() says so.
            Attempt::NoCgroups(_) => ground.without_cgroups.store(true, Ordering::Relaxed),
        }
    }
}

/// Makes sure that boxes can be made here, by making one, unless one was made before.
pub(super) fn prove(ground: &Ground, found: &Found) -> Result<()> {
    if ground.is_proven.load(Ordering::Relaxed) {
        return Ok(());
    }
    let spec = BoxSpec {
        claim: random_id(PROBE_CLAIM),
        setup: Setup {
            sandbox_id: random_id("sbx_"),
            key: String::new(),
            workdir: DEFAULT_WORKDIR.to_owned(),
            user: None,
            lease: Lease { idle_ms: PROBE_MS, max_ms: PROBE_MS, orphan_ms: PROBE_MS },
            env: Vec::new(),
            labels: Vec::new(),
            bounds: Bounds::default(),
        },
        image: roots::HOST.to_owned(),
        env: BTreeMap::new(),
        limits: Limits::standard(),
        network: false,
        read_only_root: false,
        persist: false,
        labels: BTreeMap::new(),
        layer: None,
    };
    let image = Prepared::host()?;
    match create(ground, found, &spec, &image)? {
        Some((handle, _)) => remove(found, &handle),
        None => Err(Error::new(ErrorCode::Internal, "a random name was taken")),
    }
}

enum Attempt {
    Made(String, UnixStream),
    Taken,
    NoOverlay(Error),
    NoCgroups(Error),
}

fn create_once(
    found: &Found,
    spec: &BoxSpec,
    image: &Prepared,
    in_memory: bool,
    hierarchy: &Hierarchy,
) -> Result<Attempt> {
    let Found { state, helper, .. } = found;
    let handle = random_id("box_");
    let cgroup = format!("{}{handle}", cgroup_prefix(state));
    let data = spec.persist.then(|| data::files(state, &spec.claim));
    let plan = Planning { hierarchy, cgroup: &cgroup, image, data, in_memory }.plan(spec);
    let cgroups = plan.cgroups.iter().map(|cgroup| cgroup.folder.clone()).collect();
    let record = Record { created_ms: now_ms(), spec: spec.clone(), cgroups };
    let is_lasting = !spec.setup.key.is_empty() && !is_private(&spec.setup.key);
    let draft = state.draft(&handle, &plan, &record, is_lasting).map_err(broken("make a sandbox's folder"))?;
    let clean_up = || prune::bury(state, helper, &handle);
    if !state.claim(&spec.claim, &handle).map_err(broken("claim a session"))? {
        drop(draft);
        // What is left of it, if anything is, is there for the next one that cleans up.
        let _ = clean_up();
        return Ok(Attempt::Taken);
    }
    let refusal = match helper.keep(draft) {
        Ok(Ok(stream)) => return Ok(Attempt::Made(handle, stream)),
        Ok(Err(refusal)) => refusal,
        Err(error) => {
            let _ = clean_up();
            let message = format!("the keeper of a sandbox could not be started: {error}");
            return Err(Error::new(ErrorCode::EngineUnavailable, message));
        }
    };
    let _ = clean_up();
    let error = advice::refused(&refusal);
    match refusal.step {
        Step::Overlay => Ok(Attempt::NoOverlay(error)),
        Step::Cgroups => Ok(Attempt::NoCgroups(error)),
        _ => Err(error),
    }
}

/// For the runtime that this is called on.
pub(super) fn byte_stream(socket: UnixStream) -> Result<ByteStream> {
    let stream = socket.set_nonblocking(true).and_then(|()| tokio::net::UnixStream::from_std(socket));
    let (reader, writer) = stream.map_err(broken("take a sandbox's stream"))?.into_split();
    Ok(ByteStream { reader: Box::pin(reader), writer: Box::pin(writer) })
}

/// A further stream, which the keeper hands to PID 1.
pub(super) fn link(found: &Found, handle: &str) -> Result<UnixStream> {
    match connect(&found.state.socket(handle)) {
        Ok(socket) => Ok(socket),
        Err(error) => Err(fate(found, handle).unwrap_or_else(|| broken("link to a sandbox")(error))),
    }
}

/// The names of sockets are short; a path through an open folder always is.
fn connect(socket: &Path) -> io::Result<UnixStream> {
    let (Some(folder), Some(name)) = (socket.parent(), socket.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let folder = std::fs::File::open(folder)?;
    UnixStream::connect(Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name))
}

/// What has become of a box; `None` while it runs.
pub(super) fn fate(found: &Found, handle: &str) -> Option<Error> {
    let state = &found.state;
    let folder = state.folder(handle);
    if State::is_held(&folder) {
        let inmates = state.inmates(handle)?;
        if !has_ended(inmates.first) {
            return None;
        }
        // Its keeper is about to bury it, and to write down why.
        wait_until(BURIAL, || !State::is_held(&folder));
    }
    let lost = |reason: &str, message: String| {
        Error::new(ErrorCode::SandboxLost, format!("the sandbox is gone: {message}; open() gives a new one"))
            .with("reason", reason)
    };
    Some(match state.obituary(handle) {
        Some(end) if end.oom => lost("oom", "it ran out of memory".to_owned()),
        Some(end) => {
            let message = format!("its first process ended with exit code {}", end.exit_code);
            lost("exited", message).with("exitCode", end.exit_code)
        }
        None => lost("removed", "it was removed, or its lease ran out".to_owned()),
    })
}

fn has_ended(pid: i32) -> bool {
    match Pid::from_raw(pid).map(|pid| pidfd_open(pid, PidfdFlags::empty())) {
        Some(Ok(process)) => ends_within(&process, Duration::ZERO),
        _ => true,
    }
}

fn ends_within(process: &OwnedFd, time: Duration) -> bool {
    let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() };
    poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&time)).is_ok_and(|count| count > 0)
}

fn wait_until(most: Duration, is_so: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + most;
    while !is_so() {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    true
}

/// By its claim or its handle.
pub(super) fn find(found: &Found, name: &str) -> Result<Option<BoxRecord>> {
    let state = &found.state;
    if let Some(handle) = state.claimed(name) {
        let record = record(state, &handle, name.to_owned());
        if record.is_none() && !State::is_held(&state.folder(&handle)) {
            // Its box died in the moment in which it got this name, or a power cut took its record.
            state.release(name, &handle).map_err(broken("free a sandbox's name"))?;
        }
        return Ok(record);
    }
    if !name.starts_with("box_") {
        return Ok(None);
    }
    let claims = state.claims().map_err(broken("look for a sandbox"))?;
    let claim = claims.into_iter().find(|(_, handle)| handle == name).map(|(claim, _)| claim);
    Ok(claim.and_then(|claim| record(state, name, claim)))
}

/// All that live.
pub(super) fn list(found: &Found) -> Result<Vec<BoxRecord>> {
    let state = &found.state;
    let claims = state.claims().map_err(broken("list the sandboxes"))?;
    let claims = claims.into_iter().filter(|(claim, _)| !claim.starts_with(PROBE_CLAIM));
    let records = claims.filter_map(|(claim, handle)| record(state, &handle, claim));
    Ok(records.filter(|record| record.state != BoxState::Stopped).collect())
}

fn record(state: &State, handle: &str, name: String) -> Option<BoxRecord> {
    let Record { created_ms, spec, .. } = state.record(handle)?;
    let setup = spec.setup;
    let created_at = UNIX_EPOCH + Duration::from_millis(created_ms);
    let box_state = match (State::is_held(&state.folder(handle)), state.inmates(handle)) {
        (false, _) => BoxState::Stopped,
        (true, None) => BoxState::Starting,
        (true, Some(_)) if setup.key.is_empty() && name.starts_with(WARM_CLAIM) => BoxState::Warm,
        (true, Some(_)) => BoxState::Running,
    };
    Some(BoxRecord {
        handle: handle.to_owned(),
        name,
        id: setup.sandbox_id,
        key: setup.key,
        image: spec.image,
        workdir: setup.workdir,
        state: box_state,
        created_at,
        expires_at: (setup.lease.max_ms > 0).then(|| created_at + Duration::from_millis(setup.lease.max_ms)),
        limits: spec.limits,
        network: spec.network,
        persist: spec.persist,
        labels: spec.labels,
    })
}

/// Ends a box, and waits until nothing of it can be found any more.
pub(super) fn remove(found: &Found, handle: &str) -> Result<()> {
    let Found { state, helper, .. } = found;
    let folder = state.folder(handle);
    let deadline = Instant::now() + BURIAL;
    while folder.exists() {
        if !State::is_held(&folder) {
            return prune::bury(state, helper, handle).map_err(broken("remove a sandbox"));
        }
        let keeper = state.inmates(handle).and_then(|inmates| Pid::from_raw(inmates.keeper));
        // The number is its own for as long as it holds the lock.
        if let Some(keeper) = keeper.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok())
            && State::is_held(&folder)
        {
            let _ = pidfd_send_signal(&keeper, Signal::TERM);
            ends_within(&keeper, deadline.saturating_duration_since(Instant::now()));
        } else {
            // It is being made, or has just been buried.
            std::thread::sleep(LOOK_AGAIN);
        }
        if Instant::now() > deadline {
            let message = format!("the sandbox {handle} does not end; its keeper holds {}", folder.display());
            return Err(Error::new(ErrorCode::Internal, message));
        }
    }
    Ok(())
}

/// Gives a box another claim; false when somebody else has that.
pub(super) fn rename(found: &Found, handle: &str, claim: &str, is_lasting: bool) -> Result<bool> {
    let state = &found.state;
    let failed = broken("give a sandbox its name");
    let claims = state.claims().map_err(&failed)?;
    let Some((now, _)) = claims.into_iter().find(|(_, target)| target == handle) else {
        return Err(fate(found, handle).unwrap_or_else(|| Error::new(ErrorCode::Internal, "a sandbox has no name")));
    };
    if is_lasting {
        state.make_lasting(handle).map_err(&failed)?;
    }
    state.rename(&now, claim).map_err(failed)
}

pub(super) fn set_limits(found: &Found, handle: &str, limits: Limits) -> Result<()> {
    let Found { state, hierarchy, .. } = found;
    let gone = || fate(found, handle).unwrap_or_else(|| Error::new(ErrorCode::Internal, "a sandbox has no record"));
    let mut record = state.record(handle).ok_or_else(gone)?;
    record.spec.limits = limits.or(record.spec.limits);
    let failed = broken("change a sandbox's limits");
    // What no cgroup keeps, the guest is told.
    if !record.cgroups.is_empty() {
        hierarchy.change(&format!("{}{handle}", cgroup_prefix(state)), &limits).map_err(&failed)?;
    }
    state.rewrite(handle, &record).map_err(failed)
}
