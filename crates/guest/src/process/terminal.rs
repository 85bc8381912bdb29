//! Terminals: a pair of descriptors, one for the command and one for PID 1.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use cofferdam_protocol::{Fault, FaultCode, TerminalSize};
use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::users::Owner;
use crate::files::own;
use crate::requests::fault;

/// Our end, and the command's.
pub(super) fn pair(size: TerminalSize, owner: Owner) -> Result<(OwnedFd, OwnedFd), Fault> {
    let made = || -> io::Result<(OwnedFd, OwnedFd)> {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&ours)?;
        unlockpt(&ours)?;
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let theirs = open(ptsname(&ours, Vec::new())?, flags, Mode::empty())?;
        own(&theirs, owner)?;
        set_size(&ours, size)?;
        Ok((ours, theirs))
    };
    made().map_err(|error| fault(FaultCode::Internal, format!("cannot open a terminal in the sandbox: {error}")))
}

/// The programs on it get SIGWINCH.
pub(super) fn resize(terminal: &OwnedFd, size: TerminalSize) -> Result<(), Fault> {
    set_size(terminal, size)
        .map_err(|error| fault(FaultCode::InvalidArgument, format!("cannot set the size of the terminal: {error}")))
}

fn set_size(terminal: impl AsFd, size: TerminalSize) -> io::Result<()> {
    let size = Winsize { ws_row: size.rows, ws_col: size.cols, ws_xpixel: 0, ws_ypixel: 0 };
    Ok(tcsetwinsize(terminal, size)?)
}
