//! Claims: links in the state folder from a claim's name to a box. `symlink` never replaces, so the file system keeps claims unique
//! across programs. They are removed under a lock: between a look and the removal, a link may have become another box's.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use cofferdam_protocol::keeper::{CLAIMS, CLAIMS_LOCK};
use rustix::fs::{FlockOperation, flock};

use super::state::{State, names};

impl State {
    fn link(&self, claim: &str) -> PathBuf {
        self.path().join(CLAIMS).join(claim)
    }

    /// Gives a claim to a box. False when another box holds it.
    pub(in crate::backend) fn claim(&self, claim: &str, handle: &str) -> io::Result<bool> {
        match symlink(handle, self.link(claim)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The box that holds a claim.
    pub(in crate::backend) fn claimed(&self, claim: &str) -> Option<String> {
        fs::read_link(self.link(claim)).ok()?.into_os_string().into_string().ok()
    }

    /// All claims, with the boxes that hold them.
    pub(in crate::backend) fn claims(&self) -> io::Result<Vec<(String, String)>> {
        let names = names(&self.path().join(CLAIMS))?;
        Ok(names.into_iter().filter_map(|claim| self.claimed(&claim).map(|handle| (claim, handle))).collect())
    }

    /// Removes a claim if this box still holds it.
    pub(in crate::backend) fn release(&self, claim: &str, handle: &str) -> io::Result<()> {
        let lock = File::open(self.path().join(CLAIMS_LOCK))?;
        flock(&lock, FlockOperation::LockExclusive)?;
        if self.claimed(claim).as_deref() == Some(handle) {
            fs::remove_file(self.link(claim))?;
        }
        Ok(())
    }
}
