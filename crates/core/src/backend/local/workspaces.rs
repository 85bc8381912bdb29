//! Persistent workspaces: one folder per session, with a record of the box it was created for.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde::{Deserialize, Serialize};

use super::helper::Helper;
use super::state::{State, WORKSPACES, names};
use crate::backend::{BoxSpec, StoredSpec, Workspace};
use crate::clock::now_ms;
use crate::id::random_id;
use crate::key::SessionKey;

const RECORD: &str = "record.json";
const FILES: &str = "files";

/// `record.json` beside the files.
#[derive(Serialize, Deserialize)]
struct Record {
    created_ms: u64,
    spec: StoredSpec,
}

impl From<Record> for Workspace {
    fn from(Record { created_ms, spec: StoredSpec(spec) }: Record) -> Workspace {
        Workspace { created_at: UNIX_EPOCH + Duration::from_millis(created_ms), spec }
    }
}

impl State {
    fn workspace(&self, claim: &str) -> PathBuf {
        self.path().join(WORKSPACES).join(claim)
    }

    /// Where the files of a workspace are.
    pub(in crate::backend) fn workspace_files(&self, key: &SessionKey) -> String {
        self.workspace(&key.claim()).join(FILES).to_string_lossy().into_owned()
    }

    /// Creates the workspace of a session unless it exists; returns the one that exists afterwards.
    pub(in crate::backend) fn ensure_workspace(&self, key: &SessionKey, spec: &BoxSpec) -> io::Result<Workspace> {
        if let Some(workspace) = self.find_workspace(key) {
            return Ok(workspace);
        }
        let draft = self.workspace(&random_id(".draft-"));
        fs::DirBuilder::new().mode(0o700).create(&draft)?;
        fs::DirBuilder::new().mode(0o755).create(draft.join(FILES))?;
        let record = Record { created_ms: now_ms(), spec: StoredSpec(spec.clone()) };
        let mut file = File::create_new(draft.join(RECORD))?;
        file.write_all(&serde_json::to_vec(&record)?)?;
        file.sync_all()?;
        let folder = self.workspace(&key.claim());
        match renameat_with(CWD, &draft, CWD, &folder, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(record.into()),
            Err(rustix::io::Errno::EXIST) => {
                if !has_record(&folder) {
                    // A disk that lost the record need not have lost the files.
                    fs::rename(draft.join(RECORD), folder.join(RECORD))?;
                }
                fs::remove_dir_all(&draft)?;
                read(&folder).map(Workspace::from)
            }
            Err(error) => Err(error.into()),
        }
    }

    pub(in crate::backend) fn find_workspace(&self, key: &SessionKey) -> Option<Workspace> {
        read(&self.workspace(&key.claim())).ok().map(Workspace::from)
    }

    pub(in crate::backend) fn list_workspaces(&self) -> io::Result<Vec<Workspace>> {
        let claims = names(&self.path().join(WORKSPACES))?;
        let records =
            claims.iter().filter(|claim| !claim.starts_with('.')).filter_map(|claim| read(&self.workspace(claim)).ok());
        Ok(records.map(Workspace::from).collect())
    }

    /// Idempotent.
    pub(in crate::backend) fn remove_workspace(&self, helper: &Helper, key: &SessionKey) -> io::Result<()> {
        let trash = self.trash(&random_id("data-"));
        match fs::rename(self.workspace(&key.claim()), &trash) {
            Ok(()) => helper.sweep(&trash),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }
}

fn read(folder: &Path) -> io::Result<Record> {
    Ok(serde_json::from_slice(&fs::read(folder.join(RECORD))?)?)
}

/// Whether there is a record, if only one that a newer version wrote. What a power cut spoiled is none.
fn has_record(folder: &Path) -> bool {
    fs::read(folder.join(RECORD)).is_ok_and(|record| serde_json::from_slice::<serde_json::Value>(&record).is_ok())
}
