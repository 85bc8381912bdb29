//! The whole output of a process in a file, up to a limit.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use cofferdam_protocol::{Fault, FaultCode, LOG_DIR};

use super::users::Owner;
use crate::files::{make_dirs, own};
use crate::requests::fault;

#[derive(Debug)]
pub(crate) struct Spill {
    file: File,
    left: u64,
}

impl Spill {
    pub(super) fn open(exec_id: &str, limit: u64, owner: Owner) -> Result<Spill, Fault> {
        if exec_id.contains('/') {
            return Err(fault(FaultCode::InvalidArgument, "an exec id has no slash"));
        }
        let path = Path::new(LOG_DIR).join(format!("{exec_id}.log"));
        let open = || -> std::io::Result<File> {
            make_dirs(Path::new(LOG_DIR), Some(0o1777), owner)?;
            // Never through a symbolic link.
            let file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(&path)?;
            own(&file, owner)?;
            Ok(file)
        };
        match open() {
            Ok(file) => Ok(Spill { file, left: limit }),
            Err(error) => Err(fault(
                FaultCode::PermissionDenied,
                format!("the log file {} cannot be made: {error}", path.display()),
            )),
        }
    }

    /// A full disk ends the log, not the process.
    pub(super) fn append(&mut self, bytes: &[u8]) {
        let fits = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
        self.left = match self.file.write_all(&bytes[..fits]) {
            Ok(()) => self.left - fits as u64,
            Err(_) => 0,
        };
    }
}
