//! From a request to something the kernel can execute: shell, program, arguments, environment, folder, user.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use cofferdam_protocol::{Command, Fault, FaultCode, Setup, Start};
use rustix::fs::{Access, access};

use super::users::{self, User};
use crate::requests::fault;

const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Bash where there is one, because that is what people and models write; else the plain shell.
const SHELLS: [&str; 3] = ["/bin/bash", "/usr/bin/bash", "/bin/sh"];

/// Everything the new process needs, ready before the fork: it must not allocate after it.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) program: CString,
    pub(crate) arguments: Vec<CString>,
    pub(crate) environment: Vec<CString>,
    pub(crate) cwd: CString,
    pub(crate) user: User,
    /// Limit of open files; the box's own when absent.
    pub(crate) open_files: Option<u64>,
    /// Processes of its user, where no cgroup counts them.
    pub(crate) pids: Option<u64>,
    /// For people.
    pub(crate) line: String,
}

pub(crate) fn prepare(setup: &Setup, start: &Start) -> Result<Prepared, Fault> {
    let user = users::resolve(start.user.as_deref().or(setup.user.as_deref()))?;
    let cwd = match &start.cwd {
        Some(cwd) => Path::new(&setup.workdir).join(cwd),
        None => Path::new(&setup.workdir).to_owned(),
    };
    let mut environment = environment(&user, setup.env.iter().chain(&start.env));
    if start.terminal.is_some() {
        environment.entry("TERM".to_owned()).or_insert_with(|| "xterm-256color".to_owned());
    }
    let (program, words, line) = match &start.command {
        Command::Shell(script) => {
            let shell = SHELLS.into_iter().find(|shell| access(*shell, Access::EXEC_OK).is_ok()).ok_or_else(|| {
                fault(
                    FaultCode::CommandNotFound,
                    "this image has no shell (/bin/bash or /bin/sh); pass the command as an array: [\"/program\", \"argument\"]",
                )
            })?;
            (shell.to_owned(), vec![shell.to_owned(), "-c".to_owned(), script.clone()], script.clone())
        }
        Command::UserShell => {
            let shell = user_shell(&user, &environment)?;
            let name = shell.rsplit('/').next().unwrap_or(&shell).to_owned();
            // A dash before its name makes it a login shell, as in every terminal.
            (shell.clone(), vec![format!("-{name}")], shell)
        }
        Command::Program(words) => {
            let name = words.first().map(String::as_str).unwrap_or_default();
            let path = environment.get("PATH").map_or(DEFAULT_PATH, String::as_str);
            (find_program(name, path, &cwd)?, words.clone(), words.join(" "))
        }
    };
    let environment = environment.iter().map(|(key, value)| format!("{key}={value}"));
    Ok(Prepared {
        program: c_string(program)?,
        arguments: words.into_iter().map(c_string).collect::<Result<_, _>>()?,
        environment: environment.map(c_string).collect::<Result<_, _>>()?,
        cwd: c_string(cwd.into_os_string().into_vec())?,
        user,
        open_files: (setup.bounds.open_files > 0).then_some(setup.bounds.open_files),
        pids: (setup.bounds.pids > 0).then_some(setup.bounds.pids),
        line,
    })
}

/// The image's own environment (PID 1's), the user's home, then what the caller asked for.
fn environment<'a>(user: &User, overrides: impl Iterator<Item = &'a (String, String)>) -> BTreeMap<String, String> {
    let mut environment: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    environment.entry("PATH".to_owned()).or_insert_with(|| DEFAULT_PATH.to_owned());
    environment.insert("HOME".to_owned(), user.home.clone().unwrap_or_else(|| "/".to_owned()));
    if let Some(name) = &user.name {
        environment.insert("USER".to_owned(), name.clone());
    }
    environment.extend(overrides.cloned());
    environment
}

/// The shell of the environment, of the user's entry, or the first that exists.
fn user_shell(user: &User, environment: &BTreeMap<String, String>) -> Result<String, Fault> {
    let told = environment.get("SHELL").cloned().into_iter().chain(user.shell.clone());
    // Entries such as nologin and false forbid logins; they do not apply to the owner of a sandbox.
    let is_shell = |shell: &String| !["nologin", "false"].iter().any(|name| shell.ends_with(name));
    told.filter(is_shell)
        .chain(SHELLS.map(str::to_owned))
        .find(|shell| access(shell.as_str(), Access::EXEC_OK).is_ok())
        .ok_or_else(|| {
            let message = "this image has no shell for a terminal; pass a command: [\"/program\", \"argument\"]";
            fault(FaultCode::CommandNotFound, message)
        })
}

fn find_program(name: &str, path: &str, cwd: &Path) -> Result<String, Fault> {
    if name.contains('/') {
        return Ok(name.to_owned());
    }
    let candidates = path.split(':').map(|folder| cwd.join(folder).join(name));
    let mut denied = None;
    for candidate in candidates.filter(|candidate| candidate.is_file()) {
        if access(&candidate, Access::EXEC_OK).is_ok() {
            return Ok(candidate.to_string_lossy().into_owned());
        }
        denied = Some(candidate);
    }
    Err(match denied {
        Some(file) => fault(FaultCode::PermissionDenied, format!("{} is not executable", file.display())),
        None => {
            fault(FaultCode::CommandNotFound, format!("there is no program \"{name}\" in the sandbox's PATH ({path})"))
        }
    })
}

fn c_string(bytes: impl Into<Vec<u8>>) -> Result<CString, Fault> {
    CString::new(bytes)
        .map_err(|_| fault(FaultCode::InvalidArgument, "a command, argument, folder or variable holds a NUL byte"))
}
