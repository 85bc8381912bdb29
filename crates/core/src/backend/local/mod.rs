//! Boxes on this machine without an engine: what is shared by every backend that starts its own processes.
//!
//! There is no daemon. What exists is on record in the state folder, and a live box holds a lock there. Everything in this room
//! blocks, for milliseconds. How a box is made is not decided here.

mod boxes;
mod cgroups;
mod claims;
mod helper;
mod prune;
mod state;
mod workspaces;

use std::io;

use sha2::{Digest, Sha256};

pub(super) use boxes::{BOX, PROBE};
pub(super) use cgroups::Hierarchy;
pub(super) use helper::{Helper, arch, write_program};
pub(super) use state::{Record, State};

use crate::id::hex;
use crate::{Error, ErrorCode, Result};

/// The boxes of this user on this machine.
pub(super) struct Local {
    pub(super) state: State,
    pub(super) helper: &'static Helper,
    /// Where their cgroups are.
    pub(super) hierarchy: Hierarchy,
}

impl Local {
    pub(super) fn open() -> Result<Local> {
        let state = State::open()?;
        let helper = Helper::get(state.path())?;
        Ok(Local { state, helper, hierarchy: Hierarchy::here() })
    }

    /// The name of a box's cgroups. State folders share cgroup parents, so it says which one the box belongs to.
    pub(super) fn cgroup(&self, handle: &str) -> String {
        format!("{}{handle}", self.cgroup_prefix())
    }

    fn cgroup_prefix(&self) -> String {
        let digest = Sha256::digest(self.state.path().as_os_str().as_encoded_bytes());
        format!("cofferdam-{}-", hex(&digest[..4]))
    }
}

/// A file of the kernel's, or an empty text. Mount points in it may be any bytes.
pub(super) fn read_kernel_file(file: &str) -> String {
    std::fs::read(file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

/// An error of the state folder.
pub(super) fn state_error(doing: &str) -> impl Fn(io::Error) -> Error + '_ {
    move |error| Error::new(ErrorCode::Internal, format!("cannot {doing} in the state folder: {error}"))
}
