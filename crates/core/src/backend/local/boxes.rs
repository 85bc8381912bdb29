//! Boxes that exist: found, linked to, claimed, limited, ended.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant, UNIX_EPOCH};

use cofferdam_protocol::Lease;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::state::{Record, State};
use super::{Local, state_error};
use crate::backend::exit::exited;
use crate::backend::{BoxRecord, BoxState, StoredSpec};
use crate::clock::wait_until;
use crate::key::SessionKey;
use crate::options::Limits;
use crate::{Error, ErrorCode, Result};

/// How the handle of a box begins.
pub(in crate::backend) const BOX: &str = "box_";

/// How the handle of a box begins that only proves that boxes work here. It is never listed.
pub(in crate::backend) const PROBE: &str = "probe_";

/// How long a keeper may take to clean up its box.
const CLEAN_UP: Duration = Duration::from_secs(10);

/// Between two looks at what another process is doing.
const PAUSE: Duration = Duration::from_millis(1);

impl Local {
    /// Opens another stream, which the keeper passes to PID 1.
    pub(in crate::backend) fn link(&self, handle: &str) -> Result<UnixStream> {
        connect(&self.state.socket(handle))
            .map_err(|error| self.fate(handle).unwrap_or_else(|| state_error("link to a sandbox")(error)))
    }

    /// Why a box is gone; `None` while it runs.
    pub(in crate::backend) fn fate(&self, handle: &str) -> Option<Error> {
        let folder = self.state.folder(handle);
        if State::is_held(&folder) {
            if !has_ended(self.state.pids(handle)?.init) {
                return None;
            }
            // Its keeper is about to clean up, and to record why it ended.
            wait_until(CLEAN_UP, PAUSE, || !State::is_held(&folder));
        }
        Some(match self.state.exit_record(handle) {
            Some(end) => exited("its first process", end.exit_code.into(), end.oom),
            None => Error::gone("removed", "it was removed, or its lease ran out"),
        })
    }

    /// The box with this handle.
    pub(in crate::backend) fn find(&self, handle: &str) -> Result<Option<BoxRecord>> {
        let claims = self.claims("look for a sandbox")?;
        Ok(self.record(handle, claims.get(handle).cloned()))
    }

    /// All boxes that live.
    pub(in crate::backend) fn list(&self) -> Result<Vec<BoxRecord>> {
        let mut claims = self.claims("list the sandboxes")?;
        let handles = self.state.handles().map_err(state_error("list the sandboxes"))?;
        let handles = handles.into_iter().filter(|handle| handle.starts_with(BOX));
        let records = handles.filter_map(|handle| self.record(&handle, claims.remove(&handle)));
        Ok(records.filter(|record| record.state != BoxState::Stopped).collect())
    }

    /// By handle.
    fn claims(&self, doing: &str) -> Result<HashMap<String, String>> {
        let claims = self.state.claims().map_err(state_error(doing))?;
        Ok(claims.into_iter().map(|(claim, handle)| (handle, claim)).collect())
    }

    /// The box that holds the claim of a session.
    pub(in crate::backend) fn holder(&self, key: &SessionKey) -> Result<Option<BoxRecord>> {
        let claim = key.claim();
        let Some(handle) = self.state.claimed(&claim) else { return Ok(None) };
        let record = self.record(&handle, Some(claim.clone()));
        if record.is_none() && !State::is_held(&self.state.folder(&handle)) {
            // Its box died while it got the claim, or a power cut took its record.
            self.state.release(&claim, &handle).map_err(state_error("free a claim"))?;
        }
        Ok(record)
    }

    /// Gives the claim of a session to a box; false when another box holds it.
    pub(in crate::backend) fn assign(&self, handle: &str, key: &SessionKey, lease: Lease) -> Result<bool> {
        let failed = state_error("claim a sandbox");
        if !key.is_private() {
            match self.state.make_lasting(handle, lease) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Err(self.fate(handle).unwrap_or_else(|| failed(error)));
                }
                Err(error) => return Err(failed(error)),
            }
        }
        self.state.claim(&key.claim(), handle).map_err(failed)
    }

    fn record(&self, handle: &str, claim: Option<String>) -> Option<BoxRecord> {
        let Record { created_ms, spec: StoredSpec(spec), .. } = self.state.record(handle)?;
        let is_unclaimed = spec.key.is_none() && claim.is_none();
        let state = match (State::is_held(&self.state.folder(handle)), self.state.pids(handle)) {
            (false, _) => BoxState::Stopped,
            (true, None) => BoxState::Starting,
            (true, Some(_)) if is_unclaimed => BoxState::Warm,
            (true, Some(_)) => BoxState::Running,
        };
        let created_at = UNIX_EPOCH + Duration::from_millis(created_ms);
        Some(BoxRecord { claim, ..BoxRecord::new(handle.to_owned(), state, created_at, spec) })
    }

    /// Ends a box, and waits until nothing of it can be found any more.
    pub(in crate::backend) fn remove(&self, handle: &str) -> Result<()> {
        let folder = self.state.folder(handle);
        let deadline = Instant::now() + CLEAN_UP;
        while folder.exists() {
            if !State::is_held(&folder) {
                return self.clean_up(handle).map_err(state_error("remove a sandbox"));
            }
            let keeper = self.state.pids(handle).and_then(|pids| Pid::from_raw(pids.keeper));
            // The pid is the keeper's for as long as it holds the lock.
            if let Some(keeper) = keeper.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok())
                && State::is_held(&folder)
            {
                let _ = pidfd_send_signal(&keeper, Signal::TERM);
                ends_within(&keeper, deadline.saturating_duration_since(Instant::now()));
            } else {
                // It is being created, or was cleaned up in this moment.
                std::thread::sleep(PAUSE);
            }
            if Instant::now() > deadline {
                let message = format!("the sandbox {handle} does not end; its keeper holds {}", folder.display());
                return Err(Error::new(ErrorCode::Internal, message));
            }
        }
        Ok(())
    }

    /// Changes the limits that cgroups enforce; the guest is told the others.
    pub(in crate::backend) fn set_limits(&self, handle: &str, limits: Limits) -> Result<()> {
        let gone = || self.fate(handle).unwrap_or_else(|| Error::new(ErrorCode::Internal, "a sandbox has no record"));
        let mut record = self.state.record(handle).ok_or_else(gone)?;
        record.spec.0.limits = limits.or(record.spec.0.limits);
        let failed = state_error("change a sandbox's limits");
        if !record.cgroups.is_empty() {
            self.hierarchy.change(&self.cgroup(handle), &limits).map_err(&failed)?;
        }
        self.state.rewrite(handle, &record).map_err(failed)
    }
}

/// Socket paths are limited to 108 bytes; one through an open folder is always short enough.
fn connect(socket: &Path) -> io::Result<UnixStream> {
    let (Some(folder), Some(name)) = (socket.parent(), socket.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let folder = std::fs::File::open(folder)?;
    UnixStream::connect(Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name))
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
