//! Attempts through a terminal: of the program that made the sandbox, and of the machine.

use std::fs::{File, OpenOptions};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use serde_json::Value;

use crate::attempt::{At, Outcome, Refused, system_call};

const TIOCSTI: usize = 0x5412;
const TIOCLINUX: usize = 0x541C;

fn controlling() -> Outcome<File> {
    OpenOptions::new().read(true).write(true).open("/dev/tty").at("open")
}

/// The controlling terminal, which a sandbox must not have from its host.
pub(crate) fn open() -> Outcome {
    controlling().map(|_| "/dev/tty".into())
}

/// Types a letter as if the user had.
pub(crate) fn type_into() -> Outcome {
    let (terminal, letter) = (controlling()?, b'x');
    let arguments = [terminal.as_raw_fd() as usize, TIOCSTI, &raw const letter as usize];
    system_call("TIOCSTI", libc::SYS_ioctl, &arguments).map(Value::from)
}

/// Reads the state of the machine's console.
pub(crate) fn read_console() -> Outcome {
    let (terminal, question) = (controlling()?, 6_u8);
    let arguments = [terminal.as_raw_fd() as usize, TIOCLINUX, &raw const question as usize];
    system_call("TIOCLINUX", libc::SYS_ioctl, &arguments).map(Value::from)
}

/// Executes a program with a new controlling terminal, whatever its input and output are: as in a person's shell.
pub(crate) fn leash(command: &[&str]) -> Outcome {
    let [program, arguments @ ..] = command else { return Err(Refused::new("leash", libc::EINVAL)) };
    // SAFETY: this process's own session; new descriptors, of which the first stays open for as long as the program runs.
    let terminal = unsafe {
        let controller = libc::posix_openpt(libc::O_RDWR | libc::O_NOCTTY);
        if controller < 0 || libc::grantpt(controller) < 0 || libc::unlockpt(controller) < 0 {
            return Err(std::io::Error::last_os_error()).at("posix_openpt");
        }
        libc::setsid();
        let mut name = [0 as libc::c_char; 64];
        libc::ptsname_r(controller, name.as_mut_ptr(), name.len());
        // The first terminal that a session leader opens becomes its controlling one.
        let fd = libc::open(name.as_ptr(), libc::O_RDWR);
        if fd < 0 {
            return Err(std::io::Error::last_os_error()).at("open");
        }
        File::from_raw_fd(fd)
    };
    let error = Command::new(program).args(arguments).exec();
    drop(terminal);
    Err(error).at("exec")
}
