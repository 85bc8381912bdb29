//! The state folder: one folder per box, links that are the claims on them, and what waits to be removed.
//!
//! There is no other record. A box lives as long as somebody holds the lock in its folder: first the program that makes
//! it, then its keeper. Links are made by `symlink` and moved by a rename that replaces nothing, so that the file system keeps
//! claims unique across programs; they are removed under a lock, because a link may have become another's since the look.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use cofferdam_protocol::keeper::{
    BOXES, CLAIMS, CLAIMS_LOCK, KEEPER, LASTING, OBITUARIES, Obituary, PLAN, Plan, SOCKET, TRASH,
};
use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};
use serde::{Deserialize, Serialize};

use crate::backend::BoxSpec;
use crate::{Error, ErrorCode, Result};

const LOCK: &str = "lock";
const RECORD: &str = "record.json";

/// Persistent workspaces.
pub(super) const DATA: &str = "data";

/// What is on record of a box.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) created_ms: u64,
    pub(super) spec: BoxSpec,
    /// To be removed with it.
    pub(super) cgroups: Vec<String>,
}

/// Who keeps a box, and who lives in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Inmates {
    pub(super) keeper: i32,
    pub(super) first: i32,
}

#[derive(Debug, Clone)]
pub(super) struct State(PathBuf);

/// A box that is being made: it is this program's until its keeper has the lock.
pub(super) struct Draft {
    pub(super) folder: PathBuf,
    pub(super) lock: File,
}

fn make_dir(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    io::Write::write_all(&mut file, bytes)
}

impl State {
    /// The state folder of this user; made when it is not there.
    pub(super) fn open() -> Result<State> {
        let path = place()?;
        let state = State(path.clone());
        let make = || -> io::Result<()> {
            for folder in [BOXES, CLAIMS, TRASH, OBITUARIES, DATA] {
                make_dir(&path.join(folder))?;
            }
            OpenOptions::new().create(true).append(true).mode(0o600).open(path.join(CLAIMS_LOCK)).map(drop)
        };
        make().map_err(|error| {
            let message = format!(
                "the state folder {} cannot be made: {error}. Set COFFERDAM_STATE to a folder that this user may write to",
                path.display()
            );
            Error::new(ErrorCode::EngineUnavailable, message).with("folder", path.display().to_string())
        })?;
        Ok(state)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn folder(&self, handle: &str) -> PathBuf {
        self.0.join(BOXES).join(handle)
    }

    pub(super) fn trash(&self, handle: &str) -> PathBuf {
        self.0.join(TRASH).join(handle)
    }

    fn link(&self, claim: &str) -> PathBuf {
        self.0.join(CLAIMS).join(claim)
    }

    /// Makes a box's folder, locked, under a name by which nobody finds it; then gives it its own name.
    pub(super) fn draft(&self, handle: &str, plan: &Plan, record: &Record, is_lasting: bool) -> io::Result<Draft> {
        let unseen = self.folder(&format!(".{handle}"));
        make_dir(&unseen.join("box"))?;
        let options = || OpenOptions::new().write(true).create_new(true).mode(0o600).clone();
        let lock = options().open(unseen.join(LOCK))?;
        flock(&lock, FlockOperation::LockExclusive)?;
        write_new(&unseen.join(PLAN), &plan.to_bytes())?;
        write_new(&unseen.join(RECORD), &serde_json::to_vec(record)?)?;
        if is_lasting {
            write_new(&unseen.join(LASTING), b"")?;
        }
        let folder = self.folder(handle);
        fs::rename(&unseen, &folder)?;
        Ok(Draft { folder, lock })
    }

    /// False when somebody else has it.
    pub(super) fn claim(&self, claim: &str, handle: &str) -> io::Result<bool> {
        match symlink(handle, self.link(claim)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Gives a box another claim; false when somebody else has that.
    pub(super) fn rename(&self, from: &str, to: &str) -> io::Result<bool> {
        match renameat_with(CWD, self.link(from), CWD, self.link(to), RenameFlags::NOREPLACE) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::EXIST) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The box of a claim.
    pub(super) fn claimed(&self, claim: &str) -> Option<String> {
        fs::read_link(self.link(claim)).ok()?.into_os_string().into_string().ok()
    }

    /// All claims, with the boxes they lead to.
    pub(super) fn claims(&self) -> io::Result<Vec<(String, String)>> {
        let names = names(&self.0.join(CLAIMS))?;
        Ok(names.into_iter().filter_map(|claim| self.claimed(&claim).map(|handle| (claim, handle))).collect())
    }

    /// Removes a claim if it still leads to this box.
    pub(super) fn release(&self, claim: &str, handle: &str) -> io::Result<()> {
        let lock = File::open(self.0.join(CLAIMS_LOCK))?;
        flock(&lock, FlockOperation::LockExclusive)?;
        if self.claimed(claim).as_deref() == Some(handle) {
            fs::remove_file(self.link(claim))?;
        }
        Ok(())
    }

    /// Names of all boxes, dead or alive; those that are being made begin with a dot.
    pub(super) fn handles(&self) -> io::Result<Vec<String>> {
        names(&self.0.join(BOXES))
    }

    pub(super) fn trashed(&self) -> io::Result<Vec<String>> {
        names(&self.0.join(TRASH))
    }

    pub(super) fn record(&self, handle: &str) -> Option<Record> {
        serde_json::from_slice(&fs::read(self.folder(handle).join(RECORD)).ok()?).ok()
    }

    /// Writes it anew; readers see the old one or the new one.
    pub(super) fn rewrite(&self, handle: &str, record: &Record) -> io::Result<()> {
        let folder = self.folder(handle);
        let draft = folder.join(crate::id::random_id("record-"));
        write_new(&draft, &serde_json::to_vec(record)?)?;
        fs::rename(draft, folder.join(RECORD))
    }

    /// From now on it outlives its hosts.
    pub(super) fn make_lasting(&self, handle: &str) -> io::Result<()> {
        write_new(&self.folder(handle).join(LASTING), b"")
    }

    /// Whether a box, or what is left of one, has somebody who sees to it.
    pub(super) fn is_held(folder: &Path) -> bool {
        let Ok(lock) = File::open(folder.join(LOCK)) else { return false };
        flock(&lock, FlockOperation::NonBlockingLockShared) == Err(rustix::io::Errno::WOULDBLOCK)
    }

    pub(super) fn inmates(&self, handle: &str) -> Option<Inmates> {
        let text = fs::read_to_string(self.folder(handle).join(KEEPER)).ok()?;
        let mut numbers = text.split_whitespace().map_while(|number| number.parse().ok());
        Some(Inmates { keeper: numbers.next()?, first: numbers.next()? })
    }

    pub(super) fn socket(&self, handle: &str) -> PathBuf {
        self.folder(handle).join(SOCKET)
    }

    pub(super) fn obituary(&self, handle: &str) -> Option<Obituary> {
        Obituary::from_bytes(&fs::read(self.0.join(OBITUARIES).join(handle)).ok()?).ok()
    }

    pub(super) fn obituaries(&self) -> PathBuf {
        self.0.join(OBITUARIES)
    }
}

/// Names in a folder of ours.
pub(super) fn names(folder: &Path) -> io::Result<Vec<String>> {
    let entries = fs::read_dir(folder)?.flatten();
    Ok(entries.filter_map(|entry| entry.file_name().into_string().ok()).collect())
}

/// What the environment says; else where root, or where users, keep such things.
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
            "this user has no home for the state of its sandboxes; set COFFERDAM_STATE to a folder it may write to";
        Error::new(ErrorCode::EngineUnavailable, message)
    })
}
