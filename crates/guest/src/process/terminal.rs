//! Terminals: a pair of descriptors of which the command has one and we the other.

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
    made().map_err(|error| fault(FaultCode::Internal, format!("the sandbox has no terminal to give: {error}")))
}

/// The programs on it are told.
pub(super) fn resize(terminal: &OwnedFd, size: TerminalSize) -> Result<(), Fault> {
    set_size(terminal, size)
        .map_err(|error| fault(FaultCode::InvalidArgument, format!("the terminal cannot have this size: {error}")))
}

fn set_size(terminal: impl AsFd, size: TerminalSize) -> io::Result<()> {
    let size = Winsize { ws_row: size.rows, ws_col: size.cols, ws_xpixel: 0, ws_ypixel: 0 };
    Ok(tcsetwinsize(terminal, size)?)
}
