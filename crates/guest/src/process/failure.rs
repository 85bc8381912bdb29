//! Why a command could not be started, as an error for the caller.

use std::io;
use std::path::Path;

use cofferdam_protocol::{Fault, FaultCode};

use super::command::Prepared;
use super::report::Step;
use crate::requests::fault;

impl Prepared {
    /// What a failed start means to the caller.
    pub(crate) fn start_fault(&self, step: Step, errno: i32) -> Fault {
        let error = io::Error::from_raw_os_error(errno);
        let program = self.program.to_string_lossy();
        let cwd = self.cwd.to_string_lossy();
        let (code, message) = match (step, errno) {
            (Step::Fork, _) => (
                FaultCode::LimitExceeded,
                format!("cannot start another process in this sandbox: {error}; raise limits.pids, or end some processes"),
            ),
            (Step::User, _) => {
                let advice = "in a sandbox made by an ordinary user, that needs newuidmap and ranges in /etc/subuid and /etc/subgid";
                (FaultCode::PermissionDenied, format!("cannot run as uid {}: {error}; {advice}", self.user.uid))
            }
            (Step::Folder, libc::ENOENT) => {
                (FaultCode::FileNotFound, format!("cwd \"{cwd}\" does not exist in the sandbox"))
            }
            (Step::Folder, libc::ENOTDIR) => (FaultCode::NotADirectory, format!("cwd \"{cwd}\" is not a directory")),
            (Step::Folder, libc::EACCES) => {
                (FaultCode::PermissionDenied, format!("permission denied: uid {} cannot enter cwd \"{cwd}\"", self.user.uid))
            }
            (Step::Folder, _) => (FaultCode::InvalidArgument, format!("cannot enter cwd \"{cwd}\": {error}")),
            (Step::Exec, libc::ENOENT) if Path::new(&*program).exists() => (
                FaultCode::CommandNotFound,
                format!("\"{program}\" exists, but the interpreter or loader it needs is not in this image"),
            ),
            (Step::Exec, libc::ENOENT | libc::ENOTDIR) => {
                (FaultCode::CommandNotFound, format!("there is no program \"{program}\" in the sandbox"))
            }
            (Step::Exec, libc::EACCES) => {
                (FaultCode::PermissionDenied, format!("cannot execute \"{program}\": {error}"))
            }
            (Step::Exec, libc::E2BIG) => (
                FaultCode::InvalidArgument,
                "the arguments and environment are longer than Linux allows; write them to a file, or pass them as stdin"
                    .to_owned(),
            ),
            (Step::Exec, _) => (FaultCode::InvalidArgument, format!("\"{program}\" cannot be executed: {error}")),
        };
        fault(code, message)
    }
}
