//! Creating a box of namespaces. Everything here blocks, for milliseconds.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;

use cofferdam_protocol::Lease;
use cofferdam_protocol::keeper::Step;

use super::images::Prepared;
use super::plan::Planning;
use super::{Machine, advice, roots};
use crate::backend::local::{BOX, Hierarchy, Local, PROBE, Record, state_error};
use crate::backend::{BoxSpec, CommandUser, Network, StoredSpec};
use crate::clock::now_ms;
use crate::guest::setup_bytes;
use crate::id::random_id;
use crate::options::{DEFAULT_WORKDIR, Limits};
use crate::{Error, ErrorCode, Result};

/// A probe ends by itself after this long.
const PROBE_MS: u64 = 10_000;

/// Creates a box, and gives its handle and first stream; `None` when another box holds its claim.
pub(super) fn create(
    machine: &Machine,
    local: &Local,
    spec: &BoxSpec,
    image: &Prepared,
) -> Result<Option<(String, UnixStream)>> {
    create_as(BOX, machine, local, spec, image)
}

fn create_as(
    prefix: &str,
    machine: &Machine,
    local: &Local,
    spec: &BoxSpec,
    image: &Prepared,
) -> Result<Option<(String, UnixStream)>> {
    loop {
        let in_memory = machine.in_memory.load(Ordering::Relaxed);
        let hierarchy = machine.hierarchy(local);
        match attempt(random_id(prefix), local, spec, image, in_memory, hierarchy)? {
            Attempt::Created(handle, stream) => {
                machine.is_proven.store(true, Ordering::Relaxed);
                return Ok(Some((handle, stream)));
            }
            Attempt::Taken => return Ok(None),
            Attempt::NoOverlay(error) if in_memory => return Err(error),
            // The state folder's file system cannot be the upper layer of an overlay: use memory.
            Attempt::NoOverlay(_) => machine.in_memory.store(true, Ordering::Relaxed),
            Attempt::NoCgroups(error) if *hierarchy == Hierarchy::Absent => return Err(error),
            // The guest enforces what it can, and info() says so.
            Attempt::NoCgroups(_) => machine.without_cgroups.store(true, Ordering::Relaxed),
        }
    }
}

/// Makes sure that boxes work here by creating one, unless one was created before.
pub(super) fn prove(machine: &Machine, local: &Local) -> Result<()> {
    if machine.is_proven.load(Ordering::Relaxed) {
        return Ok(());
    }
    let spec = BoxSpec {
        sandbox_id: random_id("sbx_"),
        key: None,
        image: roots::HOST.to_owned(),
        layer: None,
        workdir: DEFAULT_WORKDIR.to_owned(),
        user: CommandUser::Image,
        env: BTreeMap::new(),
        labels: BTreeMap::new(),
        lease: Lease { idle_ms: PROBE_MS, max_ms: PROBE_MS, orphan_ms: PROBE_MS },
        limits: Limits::standard(),
        network: Network::Off,
        read_only_root: false,
        persist: false,
    };
    match create_as(PROBE, machine, local, &spec, &Prepared::host()?)? {
        Some((handle, _)) => local.remove(&handle),
        None => Err(Error::new(ErrorCode::Internal, "an unclaimed box cannot be taken")),
    }
}

enum Attempt {
    Created(String, UnixStream),
    Taken,
    NoOverlay(Error),
    NoCgroups(Error),
}

fn attempt(
    handle: String,
    local: &Local,
    spec: &BoxSpec,
    image: &Prepared,
    in_memory: bool,
    hierarchy: &Hierarchy,
) -> Result<Attempt> {
    let state = &local.state;
    let cgroup = local.cgroup(&handle);
    let workspace = spec.key.as_ref().filter(|_| spec.persist).map(|key| state.workspace_files(key));
    let planning = Planning { hierarchy, cgroup: &cgroup, image, workspace, in_memory };
    let setup = setup_bytes(&planning.setup(spec))?;
    let plan = planning.plan(spec);
    let cgroups = plan.cgroups.iter().map(|cgroup| cgroup.folder.clone()).collect();
    let record = Record { created_ms: now_ms(), spec: StoredSpec(spec.clone()), cgroups };
    let is_lasting = spec.key.as_ref().is_some_and(|key| !key.is_private());
    let draft = state.draft(&handle, &plan, &record, is_lasting).map_err(state_error("make a sandbox's folder"))?;
    // What is left after a failure is removed here, or by the next prune.
    let clean_up = || drop(local.clean_up(&handle));
    if let Some(key) = &spec.key
        && !state.claim(&key.claim(), &handle).map_err(state_error("claim a session"))?
    {
        drop(draft);
        clean_up();
        return Ok(Attempt::Taken);
    }
    let refusal = match local.helper.keep(draft) {
        Ok(Ok(mut stream)) => {
            if let Err(error) = stream.write_all(&setup) {
                let _ = local.remove(&handle);
                return Err(state_error("set a sandbox up")(error));
            }
            return Ok(Attempt::Created(handle, stream));
        }
        Ok(Err(refusal)) => refusal,
        Err(error) => {
            clean_up();
            let message = format!("the keeper of a sandbox could not be started: {error}");
            return Err(Error::new(ErrorCode::EngineUnavailable, message));
        }
    };
    clean_up();
    let error = advice::refused(&refusal);
    match refusal.step {
        Step::Overlay => Ok(Attempt::NoOverlay(error)),
        Step::Cgroups => Ok(Attempt::NoCgroups(error)),
        _ => Err(error),
    }
}
