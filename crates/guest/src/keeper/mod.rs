//! `guest keep <folder>`: makes a box of namespaces, and runs for as long as the box does.
//!
//! A keeper is a small process with one thread, between the host's program and PID 1. It owns the box's folder, its lock,
//! its cgroups and its end. It accepts further links, and so knows from the kernel which programs use the box: when the
//! last of them is gone, a private box ends at once, and any other after its orphan timeout. It must never read a byte of a
//! link, nor trust what is inside.

mod calls;
mod cgroups;
mod confine;
mod end;
mod etc;
mod ids;
mod init;
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
use init::Inherited;
use watch::Watch;

/// What a keeper was started with, moved away from the numbers that PID 1 uses.
struct Descriptors {
    /// The box's first link.
    stream: OwnedFd,
    /// Held for as long as the keeper lives: a program that gets this lock knows that the box is dead.
    lock: OwnedFd,
    /// A [`Refusal`], or nothing.
    report: OwnedFd,
}

impl Descriptors {
    fn take() -> io::Result<Descriptors> {
        // SAFETY: closes what the host's program had open and did not mean for us.
        unsafe { libc::close_range(3, u32::MAX, 0) };
        let lifted = |fd: RawFd| -> io::Result<OwnedFd> {
            // SAFETY: a new descriptor, or an error.
            unsafe { Ok(OwnedFd::from_raw_fd(check_int(libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 10))?)) }
        };
        let descriptors = Descriptors { stream: lifted(0)?, lock: lifted(1)?, report: lifted(2)? };
        let null = File::options().read(true).write(true).open("/dev/null")?;
        // It stays open, so that no other file gets a number below four: PID 1's own go there.
        let null = null.into_raw_fd();
        for standard in 0..4 {
            // SAFETY: replaces descriptors of our own.
            check_int(unsafe { libc::dup2(null, standard) })?;
        }
        Ok(descriptors)
    }
}

/// Runs until the box has ended.
pub(crate) fn keep(folder: &str) -> io::Result<()> {
    let descriptors = Descriptors::take()?;
    let report = descriptors.report.try_clone()?;
    match make(Path::new(folder), descriptors) {
        Ok(Some(made)) => {
            // The host takes the end of this pipe for success; the box has closed its copy too.
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
        end::clean_up(&self.folder, fate, &self.cgroups, &self.ids);
        drop((self.lock, self.leases));
    }
}

fn make(folder: &Path, descriptors: Descriptors) -> Outcome<Option<Made>> {
    let plan = read_plan(folder)?;
    let host = host(plan.host)?;
    // The keeper is no child of the host: no program has to wait for it, and no terminal's signals reach it.
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
    let started = start(folder, &plan, &descriptors, &cgroups).and_then(|Started { pid, pidfd, links, ids }| {
        // A program that wants to end the box reads these two numbers.
        fs::write(KEEPER, format!("{} {pid}", std::process::id()))
            .tried(Step::Begin, beginning("write the keeper's pid"))?;
        let watch = Watch::new(pid, pidfd, listener, links, (plan.host, host));
        Ok((watch.tried(Step::Start, beginning("watch the box"))?, ids))
    });
    match started {
        Ok((watch, ids)) => {
            Ok(Some(Made { folder: folder.to_owned(), plan, ids, watch, cgroups, lock: descriptors.lock, leases }))
        }
        Err(refusal) => {
            cgroups.remove();
            Err(refusal)
        }
    }
}

/// Locks what the box needs, so that nobody removes it.
fn take_leases(plan: &Plan) -> Outcome<Vec<File>> {
    let take = |path: &String| -> io::Result<File> {
        let file = File::open(path)?;
        flock(&file, FlockOperation::LockShared)?;
        Ok(file)
    };
    plan.leases.iter().map(|path| take(path).tried(Step::Begin, || format!("lock {path}"))).collect()
}

fn read_plan(folder: &Path) -> Outcome<Plan> {
    let bytes = fs::read(folder.join(PLAN)).tried(Step::Begin, || format!("read the plan in {}", folder.display()))?;
    let malformed = |error| io::Error::other(format!("{error}"));
    Plan::from_bytes(&bytes).map_err(malformed).tried(Step::Begin, || "decode the plan".to_owned())
}

/// The program that asked for the box; an error when it is gone already.
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
    /// It sends further links through this.
    links: OwnedFd,
    ids: Ids,
}

/// Starts the first process of the box, and sends it what it needs from outside.
fn start(folder: &Path, plan: &Plan, descriptors: &Descriptors, cgroups: &Cgroups) -> Outcome<Started> {
    let pair = || socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
    let (words, words_end) = pair().tried(Step::Start, || "make a socket into the box".to_owned())?;
    let (links, links_end) = pair().tried(Step::Start, || "make a socket for further links".to_owned())?;
    let program = File::open("/proc/self/exe").tried(Step::Begin, || "open the guest".to_owned())?;
    let ids = Ids::here();
    if let Some(root) = ids.root() {
        give_to(root, plan, folder)?;
    }
    let forked = match fork_into(NAMESPACES, cgroups.second()) {
        // The cgroup may not be delegated to us: without it, it may work.
        Err(error) if cgroups.second().is_some() => {
            Err(error).tried(Step::Cgroups, || "start in its cgroup".to_owned())
        }
        other => other.tried(Step::Namespaces, || "make new namespaces".to_owned()),
    }?;
    let Forked::Parent { pid, pidfd } = forked else {
        drop((words, links));
        let is_served = ids.root().is_some();
        let program = program.into();
        let inherited = Inherited {
            words: &words_end,
            stream: &descriptors.stream,
            links: &links_end,
            program,
            cgroups,
            is_served,
        };
        let Err(refusal) = init::become_init(plan, folder, inherited);
        let _ = rustix::io::write(&descriptors.report, &refusal.to_bytes());
        std::process::exit(1);
    };
    drop((words_end, links_end));
    match supply(pid, plan, folder, ids, &words) {
        Ok(ids) => Ok(Started { pid, pidfd, links, ids }),
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

/// Makes the box's root the owner of what the box writes to.
fn give_to(root: u32, plan: &Plan, folder: &Path) -> Outcome {
    let own = plan.folders.iter().filter_map(|folder| folder.source.as_deref()).map(PathBuf::from);
    for path in own.chain([folder.join(sources::STORE)]) {
        let what = || format!("give {} to the box", path.display());
        if path.metadata().tried(Step::Ids, what)?.uid() == 0 {
            std::os::unix::fs::chown(&path, Some(root), Some(root)).tried(Step::Ids, what)?;
        }
    }
    Ok(())
}

/// Sets the box's user ids, and sends in what only we can reach.
fn supply(pid: i32, plan: &Plan, folder: &Path, ids: Ids, words: &OwnedFd) -> Outcome<Ids> {
    let ids = ids.give(pid)?;
    if ids.root().is_some() {
        let namespace = File::open(format!("/proc/{pid}/ns/user"));
        let namespace = namespace.tried(Step::Ids, || "open the box's user namespace".to_owned())?.into();
        sources::send(words.as_fd(), &sources::gather(plan, folder, Some(&namespace))?)?;
    }
    let word = if ids.is_full() { init::WORD_MANY_USERS } else { init::WORD_ONE_USER };
    rustix::io::write(words, &[word]).tried(Step::Start, || "start the box".to_owned())?;
    Ok(ids)
}
