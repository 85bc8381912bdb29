//! Persistent workspaces: one folder per claim, beside what it was first made for.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde::{Deserialize, Serialize};

use super::helper::Helper;
use super::state::{DATA, State, names};
use crate::backend::now_ms;
use crate::backend::{BoxRecord, BoxSpec, BoxState};
use crate::id::random_id;

const RECORD: &str = "record.json";
const FILES: &str = "files";

/// What a workspace was made for, and when.
#[derive(Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) created_ms: u64,
    pub(super) spec: BoxSpec,
}

impl Kept {
    /// As a sandbox that does not run.
    pub(super) fn record(self) -> BoxRecord {
        let BoxSpec { claim, setup, image, limits, network, persist, labels, .. } = self.spec;
        BoxRecord {
            handle: claim.clone(),
            name: claim,
            id: setup.sandbox_id,
            key: setup.key,
            image,
            workdir: setup.workdir,
            state: BoxState::Stopped,
            created_at: UNIX_EPOCH + Duration::from_millis(self.created_ms),
            expires_at: None,
            limits,
            network,
            persist,
            labels,
        }
    }
}

fn folder(state: &State, claim: &str) -> PathBuf {
    state.path().join(DATA).join(claim)
}

/// Where the files of a claim are.
pub(super) fn files(state: &State, claim: &str) -> String {
    folder(state, claim).join(FILES).to_string_lossy().into_owned()
}

/// Makes it unless it is there; gives what it was first made for.
pub(super) fn ensure(state: &State, spec: &BoxSpec) -> io::Result<BoxSpec> {
    if let Some(kept) = find(state, &spec.claim) {
        return Ok(kept.spec);
    }
    let draft = folder(state, &random_id(".draft-"));
    fs::DirBuilder::new().mode(0o700).create(&draft)?;
    fs::DirBuilder::new().mode(0o755).create(draft.join(FILES))?;
    let kept = Kept { created_ms: now_ms(), spec: spec.clone() };
    let mut record = File::create_new(draft.join(RECORD))?;
    record.write_all(&serde_json::to_vec(&kept)?)?;
    record.sync_all()?;
    let folder = folder(state, &spec.claim);
    match renameat_with(CWD, &draft, CWD, &folder, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(kept.spec),
        Err(rustix::io::Errno::EXIST) => {
            if find(state, &spec.claim).is_none() {
                // A disk that lost the record need not have lost the files.
                fs::rename(draft.join(RECORD), folder.join(RECORD))?;
            }
            fs::remove_dir_all(&draft)?;
            let there = find(state, &spec.claim).map(|kept| kept.spec);
            there.ok_or_else(|| io::Error::other("its record cannot be read"))
        }
        Err(error) => Err(error.into()),
    }
}

pub(super) fn find(state: &State, claim: &str) -> Option<Kept> {
    serde_json::from_slice(&fs::read(folder(state, claim).join(RECORD)).ok()?).ok()
}

pub(super) fn list(state: &State) -> io::Result<Vec<Kept>> {
    let claims = names(&state.path().join(DATA))?;
    Ok(claims.iter().filter(|claim| !claim.starts_with('.')).filter_map(|claim| find(state, claim)).collect())
}

/// One that is gone already is fine.
pub(super) fn remove(state: &State, helper: &Helper, claim: &str) -> io::Result<()> {
    let trash = state.trash(&random_id("data-"));
    match fs::rename(folder(state, claim), &trash) {
        Ok(()) => helper.sweep(&trash),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}
