//! `guest keep <folder>`: makes a box of namespaces, and stays for as long as it lives.
//!
//! A keeper is a small process with one thread, between the host's program and PID 1. It owns the box's folder, its lock,
//! its cgroups and its end. It lets further links in, and so knows by the kernel's word which programs use the box: when
//! the last of them is gone, a box that nobody can find again goes at once, and any other after its orphan timeout. It must
//! never hold a byte of a link, nor trust what is inside.

mod calls;
mod cgroups;
mod confine;
mod end;
mod etc;
mod ids;
mod inhabit;
mod place;
mod removal;
mod root;
mod seccomp;
mod sources;
mod system;
mod watch;

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use cofferdam_protocol::keeper::{KEEPER, PLAN, Plan, SOCKET, Step};
use rustix::fs::{FlockOperation, flock};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

pub(crate) use end::sweep;

use calls::{Forked, Outcome, Tried, check_int, fork_into};
use cgroups::Cgroups;
use ids::Ids;
use inhabit::Luggage;
use watch::Watch;

/// What a keeper was started with, out of the way of PID 1's own descriptors.
struct Hands {
    /// The box's first link.
    stream: OwnedFd,
    /// Held for as long as the keeper lives: whoever gets it knows that the box is dead.
    lock: OwnedFd,
    /// A [`Refusal`], or nothing.
    report: OwnedFd,
}

impl Hands {
    fn take() -> io::Result<Hands> {
        // SAFETY: closes what the host's program had open and did not mean for us.
        unsafe { libc::close_range(3, u32::MAX, 0) };
        let lifted = |fd: RawFd| -> io::Result<OwnedFd> {
            // SAFETY: a new descriptor, or an error.
            unsafe { Ok(OwnedFd::from_raw_fd(check_int(libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 10))?)) }
        };
        let hands = Hands { stream: lifted(0)?, lock: lifted(1)?, report: lifted(2)? };
        let null = File::options().read(true).write(true).open("/dev/null")?;
        // It stays open, so that no number below four is given to another: PID 1 gets its own there.
        let null = null.into_raw_fd();
        for standard in 0..4 {
            // SAFETY: replaces descriptors of our own.
            check_int(unsafe { libc::dup2(null, standard) })?;
        }
        Ok(hands)
    }
}

/// Runs until the box is no more.
pub(crate) fn keep(folder: &str) -> io::Result<()> {
    let hands = Hands::take()?;
    let report = hands.report.try_clone()?;
    match make(Path::new(folder), hands) {
        Ok(Some(made)) => {
            // Its end is the host's sign that the box is there, once the box has closed it too.
            drop(report);
            made.keep();
            Ok(())
        }
        // This is the first process, whose child is the keeper.
        Ok(None) => Ok(()),
        Err(refusal) => File::from(report).write_all(&refusal.to_bytes()),
    }
}

/// A box that is about to run.
struct Made {
    folder: PathBuf,
    plan: Plan,
    ids: Ids,
    watch: Watch,
    cgroups: Cgroups,
    lock: OwnedFd,
    leases: Vec<File>,
}

impl Made {
    fn keep(mut self) {
        let fate = self.watch.until_end(&self.plan);
        end::bury(&self.folder, fate, &self.cgroups, &self.ids);
        drop((self.lock, self.leases));
    }
}

fn make(folder: &Path, hands: Hands) -> Outcome<Option<Made>> {
    let plan = read_plan(folder)?;
    let host = host(plan.host)?;
    // The keeper is nobody's child: no program has to wait for it, and no terminal's signals reach it.
    // SAFETY: this process has one thread.
    match unsafe { libc::fork() } {
        -1 => return Err(io::Error::last_os_error()).tried(Step::Begin, || "fork".to_owned()),
        // SAFETY: this process's own session and mask.
        0 => unsafe {
            libc::setsid();
            libc::umask(0o077);
        },
        _ => return Ok(None),
    }
    let beginning = |what: &'static str| move || what.to_owned();
    rustix::process::chdir(folder).tried(Step::Begin, beginning("enter the box's folder"))?;
    let listener = UnixListener::bind(SOCKET).tried(Step::Begin, beginning("listen for further links"))?;
    let leases = take_leases(&plan)?;
    let cgroups = Cgroups::make(&plan.cgroups)?;
    let started = start(folder, &plan, &hands, &cgroups).and_then(|Started { pid, pidfd, door, ids }| {
        // The first two words that anybody who wants to end the box looks for.
        fs::write(KEEPER, format!("{} {pid}", std::process::id()))
            .tried(Step::Begin, beginning("write down who keeps the box"))?;
        let watch = Watch::new(pid, pidfd, listener, door, (plan.host, host));
        Ok((watch.tried(Step::Start, beginning("watch the box"))?, ids))
    });
    match started {
        Ok((watch, ids)) => {
            Ok(Some(Made { folder: folder.to_owned(), plan, ids, watch, cgroups, lock: hands.lock, leases }))
        }
        Err(refusal) => {
            cgroups.remove();
            Err(refusal)
        }
    }
}

/// What the box stands on is not taken away from under it.
fn take_leases(plan: &Plan) -> Outcome<Vec<File>> {
    let take = |path: &String| -> io::Result<File> {
        let file = File::open(path)?;
        flock(&file, FlockOperation::LockShared)?;
        Ok(file)
    };
    plan.leases.iter().map(|path| take(path).tried(Step::Begin, || format!("hold on to {path}"))).collect()
}

fn read_plan(folder: &Path) -> Outcome<Plan> {
    let bytes = fs::read(folder.join(PLAN)).tried(Step::Begin, || format!("read the plan in {}", folder.display()))?;
    let malformed = |error| io::Error::other(format!("{error}"));
    Plan::from_bytes(&bytes).map_err(malformed).tried(Step::Begin, || "understand the plan".to_owned())
}

/// The program that asked, unless it is gone already.
fn host(pid: u32) -> Outcome<OwnedFd> {
    let gone = || "find the program that asked for the box".to_owned();
    let parent = rustix::process::getppid();
    if parent.is_none_or(|parent| parent.as_raw_nonzero().get() != pid as i32) {
        return Err(io::Error::from_raw_os_error(libc::ESRCH)).tried(Step::Begin, gone);
    }
    let pid = Pid::from_raw(pid as i32).ok_or(io::Error::from_raw_os_error(libc::ESRCH)).tried(Step::Begin, gone)?;
    pidfd_open(pid, PidfdFlags::empty()).tried(Step::Begin, gone)
}

const NAMESPACES: libc::c_int = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS;

struct Started {
    pid: i32,
    pidfd: OwnedFd,
    /// By which it gets further links.
    door: OwnedFd,
    ids: Ids,
}

/// Starts the first process of the box, and gives it what it needs from outside.
fn start(folder: &Path, plan: &Plan, hands: &Hands, cgroups: &Cgroups) -> Outcome<Started> {
    let pair = || socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
    let (words, words_end) = pair().tried(Step::Start, || "make a way into the box".to_owned())?;
    let (door, door_end) = pair().tried(Step::Start, || "make a door".to_owned())?;
    let program = File::open("/proc/self/exe").tried(Step::Begin, || "open the guest".to_owned())?;
    let ids = Ids::here();
    if let Some(root) = ids.root() {
        hand_to(root, plan, folder)?;
    }
    let forked = match fork_into(NAMESPACES, cgroups.second()) {
        // Into a cgroup that is not ours to give: without it, it may work.
        Err(error) if cgroups.second().is_some() => {
            Err(error).tried(Step::Cgroups, || "be born in a cgroup".to_owned())
        }
        other => other.tried(Step::Namespaces, || "make new namespaces".to_owned()),
    }?;
    let Forked::Parent { pid, pidfd } = forked else {
        drop((words, door));
        let is_served = ids.root().is_some();
        let program = program.into();
        let luggage =
            Luggage { words: &words_end, stream: &hands.stream, door: &door_end, program, cgroups, is_served };
        let Err(refusal) = inhabit::inhabit(plan, folder, luggage);
        let _ = rustix::io::write(&hands.report, &refusal.to_bytes());
        std::process::exit(1);
    };
    drop((words_end, door_end));
    match supply(pid, plan, folder, ids, &words) {
        Ok(ids) => Ok(Started { pid, pidfd, door, ids }),
        Err(refusal) => {
            // SAFETY: our own child, which is not yet waited for.
            unsafe {
                libc::kill(pid, libc::SIGKILL);
                libc::waitpid(pid, std::ptr::null_mut(), 0);
            }
            Err(refusal)
        }
    }
}

/// Gives what the box writes to its own root.
fn hand_to(root: u32, plan: &Plan, folder: &Path) -> Outcome {
    let own = plan.folders.iter().filter_map(|folder| folder.source.as_deref()).map(PathBuf::from);
    for path in own.chain([folder.join(sources::STORE)]) {
        let what = || format!("give {} to the box", path.display());
        if path.metadata().tried(Step::Ids, what)?.uid() == 0 {
            std::os::unix::fs::chown(&path, Some(root), Some(root)).tried(Step::Ids, what)?;
        }
    }
    Ok(())
}

/// Says who is who in the box, and hands in what only we can reach.
fn supply(pid: i32, plan: &Plan, folder: &Path, ids: Ids, words: &OwnedFd) -> Outcome<Ids> {
    let ids = ids.give(pid)?;
    if ids.root().is_some() {
        let namespace = File::open(format!("/proc/{pid}/ns/user"));
        let namespace = namespace.tried(Step::Ids, || "open the box's user namespace".to_owned())?.into();
        sources::send(words.as_fd(), &sources::gather(plan, folder, Some(&namespace))?)?;
    }
    let word = if ids.is_full() { inhabit::WORD_MANY_USERS } else { inhabit::WORD_ONE_USER };
    rustix::io::write(words, &[word]).tried(Step::Start, || "let the box begin".to_owned())?;
    Ok(ids)
}
