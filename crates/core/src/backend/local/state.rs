//! The state folder: one folder per box, the claims on them, and what waits to be removed.
//!
//! There is no other record. A box lives as long as a process holds the lock in its folder: first the program that creates it,
//! then its keeper.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use cofferdam_protocol::Lease;
use cofferdam_protocol::keeper::{
    BOXES, CLAIMS, CLAIMS_LOCK, EXIT_RECORDS, ExitRecord, KEEPER, LASTING, PLAN, Plan, SOCKET, TRASH,
};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::backend::StoredSpec;
use crate::{Error, ErrorCode, Result};

const LOCK: &str = "lock";
const RECORD: &str = "record.json";

/// The folder of persistent workspaces.
pub(super) const WORKSPACES: &str = "data";

/// `record.json` of a box.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::backend) struct Record {
    pub(in crate::backend) created_ms: u64,
    pub(in crate::backend) spec: StoredSpec,
    /// Removed with the box.
    pub(in crate::backend) cgroups: Vec<String>,
}

/// The processes of a box, as seen from outside.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pids {
    pub(super) keeper: i32,
    /// PID 1 of the box.
    pub(super) init: i32,
}

#[derive(Debug, Clone)]
pub(in crate::backend) struct State(PathBuf);

/// A box that is being created. This program holds its lock until its keeper does.
pub(in crate::backend) struct Draft {
    pub(super) folder: PathBuf,
    pub(super) lock: File,
}

fn make_dir(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn make_lasting(folder: &Path, orphan_ms: u64) -> io::Result<()> {
    write_new(&folder.join(LASTING), orphan_ms.to_string().as_bytes())
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    io::Write::write_all(&mut file, bytes)
}

impl State {
    /// The state folder of this user, created if missing.
    pub(super) fn open() -> Result<State> {
        let path = place()?;
        let state = State(path.clone());
        let make = || -> io::Result<()> {
            for folder in [BOXES, CLAIMS, TRASH, EXIT_RECORDS, WORKSPACES] {
                make_dir(&path.join(folder))?;
            }
            OpenOptions::new().create(true).append(true).mode(0o600).open(path.join(CLAIMS_LOCK)).map(drop)
        };
        make().map_err(|error| {
            let message = format!(
                "the state folder {} cannot be created: {error}. Set COFFERDAM_STATE to a folder that this user can write to",
                path.display()
            );
            Error::new(ErrorCode::EngineUnavailable, message).with("folder", path.display().to_string())
        })?;
        Ok(state)
    }

    pub(in crate::backend) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn folder(&self, handle: &str) -> PathBuf {
        self.0.join(BOXES).join(handle)
    }

    pub(super) fn trash(&self, handle: &str) -> PathBuf {
        self.0.join(TRASH).join(handle)
    }

    /// Creates a box's folder, locked, under a hidden name; then renames it. A lasting box outlives its hosts.
    pub(in crate::backend) fn draft(
        &self,
        handle: &str,
        plan: &Plan,
        record: &Record,
        is_lasting: bool,
    ) -> io::Result<Draft> {
        let unseen = self.folder(&format!(".{handle}"));
        make_dir(&unseen.join("box"))?;
        let options = || OpenOptions::new().write(true).create_new(true).mode(0o600).clone();
        let lock = options().open(unseen.join(LOCK))?;
        flock(&lock, FlockOperation::LockExclusive)?;
        write_new(&unseen.join(PLAN), &plan.to_bytes())?;
        write_new(&unseen.join(RECORD), &serde_json::to_vec(record)?)?;
        if is_lasting {
            make_lasting(&unseen, plan.orphan_ms)?;
        }
        let folder = self.folder(handle);
        fs::rename(&unseen, &folder)?;
        Ok(Draft { folder, lock })
    }

    /// Names of all boxes, dead or alive; those being created begin with a dot.
    pub(super) fn handles(&self) -> io::Result<Vec<String>> {
        names(&self.0.join(BOXES))
    }

    pub(super) fn trashed(&self) -> io::Result<Vec<String>> {
        names(&self.0.join(TRASH))
    }

    pub(super) fn record(&self, handle: &str) -> Option<Record> {
        serde_json::from_slice(&fs::read(self.folder(handle).join(RECORD)).ok()?).ok()
    }

    /// Replaces it atomically.
    pub(super) fn rewrite(&self, handle: &str, record: &Record) -> io::Result<()> {
        let folder = self.folder(handle);
        let draft = folder.join(crate::id::random_id("record-"));
        write_new(&draft, &serde_json::to_vec(record)?)?;
        fs::rename(draft, folder.join(RECORD))
    }

    /// The box outlives its hosts from now on.
    pub(super) fn make_lasting(&self, handle: &str, lease: Lease) -> io::Result<()> {
        make_lasting(&self.folder(handle), lease.orphan_ms)
    }

    /// Whether a process is responsible for a box, or for what is left of one.
    pub(super) fn is_held(folder: &Path) -> bool {
        let Ok(lock) = File::open(folder.join(LOCK)) else { return false };
        flock(&lock, FlockOperation::NonBlockingLockShared) == Err(rustix::io::Errno::WOULDBLOCK)
    }

    pub(super) fn pids(&self, handle: &str) -> Option<Pids> {
        let text = fs::read_to_string(self.folder(handle).join(KEEPER)).ok()?;
        let mut numbers = text.split_whitespace().map_while(|number| number.parse().ok());
        Some(Pids { keeper: numbers.next()?, init: numbers.next()? })
    }

    pub(super) fn socket(&self, handle: &str) -> PathBuf {
        self.folder(handle).join(SOCKET)
    }

    pub(super) fn exit_record(&self, handle: &str) -> Option<ExitRecord> {
        ExitRecord::from_bytes(&fs::read(self.0.join(EXIT_RECORDS).join(handle)).ok()?).ok()
    }

    pub(super) fn exit_records(&self) -> PathBuf {
        self.0.join(EXIT_RECORDS)
    }
}

/// The names in a folder.
pub(super) fn names(folder: &Path) -> io::Result<Vec<String>> {
    let entries = fs::read_dir(folder)?.flatten();
    Ok(entries.filter_map(|entry| entry.file_name().into_string().ok()).collect())
}

/// `COFFERDAM_STATE`, or the usual place for root's and for users' data.
fn place() -> Result<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(path) = set("COFFERDAM_STATE") {
        if path.is_absolute() {
            return Ok(path);
        }
        let message = format!("COFFERDAM_STATE must be an absolute path, not {:?}", path.display().to_string());
        return Err(Error::invalid(message));
    }
    if rustix::process::geteuid().is_root() {
        return Ok(PathBuf::from("/var/lib/cofferdam"));
    }
    let data = set("XDG_DATA_HOME").or_else(|| Some(std::env::home_dir()?.join(".local/share")));
    data.map(|data| data.join("cofferdam")).ok_or_else(|| {
        let message =
            "this user has no home folder for the state of its sandboxes; set COFFERDAM_STATE to a folder it can write to";
        Error::new(ErrorCode::EngineUnavailable, message)
    })
}
