//! The first process of a new box, until it is PID 1: it builds the box around itself, gives up the rights that took, and
//! executes the guest.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use cofferdam_protocol::keeper::{Plan, Step};
use rustix::event::{PollFd, PollFlags, poll};

use super::calls::{Outcome, Tried, check_int, execute, pivot};
use super::cgroups::Cgroups;
use super::sources::{self, Heard};
use super::{confine, root, system};

/// What the keeper sends when the box has all it needs: whether it has users besides root.
pub(super) const WORD_MANY_USERS: u8 = b'M';
pub(super) const WORD_ONE_USER: u8 = b'1';

/// The descriptor through which PID 1 gets further links.
const LINKS: i32 = 3;

/// What the process inherits from the keeper.
pub(super) struct Inherited<'a> {
    /// From the keeper.
    pub(super) words: &'a OwnedFd,
    /// The first link.
    pub(super) stream: &'a OwnedFd,
    /// Further links.
    pub(super) links: &'a OwnedFd,
    /// The guest.
    pub(super) program: OwnedFd,
    pub(super) cgroups: &'a Cgroups,
    /// Whether sources come from the keeper.
    pub(super) is_served: bool,
}

/// Returns only with why there is no box.
pub(super) fn become_init(plan: &Plan, folder: &Path, inherited: Inherited<'_>) -> Outcome<std::convert::Infallible> {
    let mut sources = Vec::new();
    let has_users = loop {
        match sources::hear(inherited.words.as_fd())? {
            Heard::Source(source) => sources.push(source),
            Heard::Word(word) => break word == WORD_MANY_USERS,
            // The keeper is gone.
            Heard::Nothing => std::process::exit(1),
        }
    };
    become_root(has_users)?;
    confine::share_counts(plan);
    die_with_keeper(inherited.links)?;
    inherited.cgroups.join()?;
    if !inherited.is_served {
        sources = sources::gather(plan, folder, None)?;
    }
    root::enter_scratch(sources)?;
    root::build(plan)?;
    system::mount_all(plan, has_users)?;
    root::mount_folders(&plan.folders)?;
    pivot(Path::new(root::NEW)).tried(Step::Mounts, || "enter the new root".to_owned())?;
    if plan.read_only {
        root::seal(&plan.root)?;
    }
    // Where it is not allowed, the box sees the names of its cgroups, and nothing more.
    // SAFETY: changes this process only.
    let _ = unsafe { libc::unshare(libc::CLONE_NEWCGROUP) };
    system::name_and_loopback()?;
    arrange(&inherited).tried(Step::Start, || "arrange PID 1's descriptors".to_owned())?;
    confine::confine(plan)?;
    let (arguments, environment) = words(plan).tried(Step::Start, || "write PID 1's command line".to_owned())?;
    Err(execute(&inherited.program, &arguments, &environment)).tried(Step::Start, || "execute the guest".to_owned())
}

fn become_root(has_users: bool) -> Outcome {
    let becoming = || "become root of the box".to_owned();
    // SAFETY: changes this process only, which has one thread.
    unsafe {
        if has_users {
            // The host program's own groups: docker, sudo and the like.
            check_int(libc::setgroups(0, std::ptr::null())).tried(Step::Ids, becoming)?;
        }
        check_int(libc::setresgid(0, 0, 0)).tried(Step::Ids, becoming)?;
        check_int(libc::setresuid(0, 0, 0)).tried(Step::Ids, becoming)?;
        libc::setsid();
        libc::umask(0o022);
    }
    Ok(())
}

/// Only after the change of users, which would undo it.
fn die_with_keeper(links: &OwnedFd) -> Outcome {
    // SAFETY: sets a flag of this process.
    let set = check_int(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) });
    set.tried(Step::Start, || "end with the keeper".to_owned())?;
    // It may have died before that; it holds the other end for as long as it lives.
    let mut keeper = [PollFd::new(links, PollFlags::empty())];
    let nothing_to_wait = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    if poll(&mut keeper, Some(&nothing_to_wait)).is_ok_and(|count| count > 0) {
        std::process::exit(1);
    }
    Ok(())
}

/// Input and output are the first link; nobody reads PID 1's standard error.
fn arrange(inherited: &Inherited<'_>) -> io::Result<()> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    let (stream, links) = (inherited.stream.as_raw_fd(), inherited.links.as_raw_fd());
    for (from, to) in [(stream, 0), (stream, 1), (null.as_raw_fd(), 2), (links, LINKS)] {
        // SAFETY: the descriptors below four are nobody's: see `super::Descriptors`.
        check_int(unsafe { libc::dup2(from, to) })?;
    }
    Ok(())
}

fn words(plan: &Plan) -> io::Result<(Vec<CString>, Vec<CString>)> {
    let arguments = ["guest".to_owned(), "init".to_owned(), LINKS.to_string()];
    let environment = plan.env.iter().map(|(name, value)| CString::new(format!("{name}={value}")));
    let arguments = arguments.into_iter().map(CString::new).collect::<Result<_, _>>()?;
    Ok((arguments, environment.collect::<Result<_, _>>()?))
}
