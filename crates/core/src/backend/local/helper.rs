//! The guest as a program on this machine: the keeper of every box, and PID 1 in it.
//!
//! It is written once to a sealed memory file that nothing in a box can change, and is executed from there with `posix_spawn`: the host
//! program, of any size and with any number of threads, is never forked.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use cofferdam_protocol::keeper::Refusal;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

use super::state::Draft;
use crate::backend::namespaces::installed_helper;
use crate::guest::{Arch, guest_binary};
use crate::{Error, ErrorCode, Result};

pub(in crate::backend) enum Helper {
    /// Nobody can write to it.
    Memory(OwnedFd),
    /// By an administrator, or by us where memory files may not be executed.
    Installed(PathBuf),
}

impl Helper {
    /// This program's helper.
    pub(in crate::backend) fn get(state: &Path) -> Result<&'static Helper> {
        static HELPER: OnceLock<Helper> = OnceLock::new();
        if let Some(helper) = HELPER.get() {
            return Ok(helper);
        }
        let guest = guest_binary(arch()?)?;
        let broken = |error: io::Error| {
            let message = format!("the guest cannot be put on this machine: {error}");
            Error::new(ErrorCode::EngineUnavailable, message)
        };
        let helper = match installed_helper(guest.hash) {
            // AppArmor profiles apply by path.
            Some(path) => Helper::Installed(path),
            None => {
                let bytes = guest.unpack()?;
                match in_memory(&bytes) {
                    Ok(memory) => Helper::Memory(memory),
                    Err(_) => Helper::Installed(write_program(state, &bytes, guest.hash, 0o500).map_err(broken)?),
                }
            }
        };
        Ok(HELPER.get_or_init(|| helper))
    }

    fn command(&self, words: &[&std::ffi::OsStr]) -> Command {
        let mut command = match self {
            Helper::Memory(file) => Command::new(format!("/proc/self/fd/{}", file.as_raw_fd())),
            Helper::Installed(path) => Command::new(path),
        };
        command.args(words).env_clear();
        // Needed to find newuidmap.
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        command
    }

    /// Starts the keeper of a box; gives the first stream into it when PID 1 runs, or why it does not. Blocks.
    pub(in crate::backend) fn keep(&self, draft: Draft) -> io::Result<Result<UnixStream, Refusal>> {
        let (ours, theirs) = UnixStream::pair()?;
        let (mut report, report_end) = io::pipe()?;
        let mut first = self
            .command(&["keep".as_ref(), draft.folder.as_os_str()])
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::from(draft.lock))
            .stderr(Stdio::from(report_end))
            .spawn()?;
        let mut said = Vec::new();
        // The pipe closes when PID 1 has been executed, or when every process that could report is gone.
        report.read_to_end(&mut said)?;
        first.wait()?;
        match Refusal::from_bytes(&said) {
            Some(refusal) => Ok(Err(refusal)),
            None => Ok(Ok(ours)),
        }
    }

    /// Removes what is left of a box, whoever its files belong to. Blocks.
    pub(in crate::backend) fn sweep(&self, folder: &Path) -> io::Result<()> {
        let mut command = self.command(&["sweep".as_ref(), folder.as_os_str()]);
        let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        if status.success() { Ok(()) } else { Err(io::Error::other("it could not be removed")) }
    }
}

fn in_memory(bytes: &[u8]) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Kernels before 6.3 do not know MFD_EXEC, and do not need it.
    let file = memfd_create("cofferdam-guest", flags | MemfdFlags::EXEC)
        .or_else(|_| memfd_create("cofferdam-guest", flags))?;
    let mut file = File::from(file);
    file.write_all(bytes)?;
    fcntl_add_seals(&file, SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE)?;
    Ok(file.into())
}

/// The architecture of this machine.
pub(in crate::backend) fn arch() -> Result<Arch> {
    let name = std::env::consts::ARCH;
    Arch::parse(name).ok_or_else(|| {
        Error::new(ErrorCode::Unsupported, format!("sandboxes run on x64 and arm64 machines; this one is {name}"))
    })
}

/// Named by its hash, so that versions coexist. A file that a power cut spoiled is replaced.
pub(in crate::backend) fn write_program(folder: &Path, bytes: &[u8], hash: &str, mode: u32) -> io::Result<PathBuf> {
    let path = folder.join(format!("guest-{hash}"));
    if !std::fs::read(&path).is_ok_and(|there| there == bytes) {
        let draft = folder.join(crate::id::random_id("guest-draft-"));
        let mut file = File::options().write(true).create_new(true).mode(mode).open(&draft)?;
        file.write_all(bytes)?;
        file.set_permissions(PermissionsExt::from_mode(mode))?;
        file.sync_all()?;
        drop(file);
        std::fs::rename(draft, &path)?;
    }
    Ok(path)
}
