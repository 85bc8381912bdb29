//! The kernel's end of a watch: one inotify descriptor, to add watches to and to read events from.
//!
//! Unread events stay in the kernel's queue, which is bounded and reports overflows: nothing here grows.

use std::io;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;

use cofferdam_protocol::{Fault, FaultCode};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::requests::fault;

/// The size of a read; an event is 16 bytes and its name.
const READ_SIZE: usize = 32 * 1024;

/// An event of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) folder: i32,
    pub(super) flags: ReadFlags,
    pub(super) cookie: u32,
    /// Empty for the folder itself.
    pub(super) name: Box<[u8]>,
}

/// Events of a watched folder.
pub(super) const IN_FOLDER: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::ONLYDIR)
    // Not of open files that have no name any more.
    .union(WatchFlags::EXCL_UNLINK);

/// Events of the parent of a watched folder: only removals.
pub(super) const AROUND_FOLDER: WatchFlags =
    WatchFlags::DELETE.union(WatchFlags::MOVED_FROM).union(WatchFlags::ONLYDIR);

/// The watches of one descriptor.
#[derive(Debug, Clone)]
pub(super) struct Watches(Arc<Descriptor>);

impl Watches {
    pub(super) fn new() -> Result<Watches, Fault> {
        let fd = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).map_err(|error| match error {
            Errno::MFILE | Errno::NFILE => fault(
                FaultCode::LimitExceeded,
                "too many watches are open at once (fs.inotify.max_user_instances counts those of all sandboxes of one \
                 machine); end some, or raise that limit on the machine that runs the sandboxes",
            ),
            other => fault(FaultCode::Internal, format!("cannot watch files: {other}")),
        })?;
        Ok(Watches(Arc::new(Descriptor(ManuallyDrop::new(fd)))))
    }

    /// Watches an open folder, whatever its path is now; returns the same number for the same folder.
    pub(super) fn add(&self, folder: BorrowedFd<'_>, flags: WatchFlags) -> Result<i32, Errno> {
        inotify::add_watch(self.0.as_fd(), format!("/proc/self/fd/{}", folder.as_raw_fd()), flags)
    }

    pub(super) fn remove(&self, folder: i32) {
        // The kernel may have removed it already.
        let _ = inotify::remove_watch(self.0.as_fd(), folder);
    }
}

/// The kernel's events, in order.
pub(super) struct Queue(AsyncFd<Watches>);

impl Queue {
    pub(super) fn new(watches: Watches) -> io::Result<Queue> {
        // SAFETY: the descriptor is closed with the last of its owners, of which the `AsyncFd` is one.
        let registered = unsafe { AsyncFd::register_with_interest(watches, Interest::READABLE) };
        Ok(Queue(registered.map_err(io::Error::from)?))
    }

    /// Waits for events.
    pub(super) async fn read(&self) -> io::Result<Vec<Event>> {
        loop {
            let mut ready = self.0.readable().await?;
            if let Ok(outcome) = ready.try_io(|queue| Ok(read_once(queue.get_ref())?)) {
                return outcome;
            }
        }
    }

    /// The events so far.
    pub(super) fn try_read(&self) -> io::Result<Vec<Event>> {
        match read_once(self.0.get_ref()) {
            Err(Errno::AGAIN) => Ok(Vec::new()),
            other => Ok(other?),
        }
    }
}

fn read_once(watches: &Watches) -> Result<Vec<Event>, Errno> {
    let mut buffer = [MaybeUninit::uninit(); READ_SIZE];
    let mut reader = Reader::new(watches.0.as_fd(), &mut buffer);
    let mut events = Vec::new();
    loop {
        let event = reader.next()?;
        events.push(Event {
            folder: event.wd(),
            flags: event.events(),
            cookie: event.cookie(),
            name: event.file_name().map(|name| name.to_bytes().into()).unwrap_or_default(),
        });
        if reader.is_buffer_empty() {
            return Ok(events);
        }
    }
}

impl AsRawFd for Watches {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

#[derive(Debug)]
struct Descriptor(ManuallyDrop<OwnedFd>);

impl AsFd for Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: it is taken here and nowhere else.
        let fd = unsafe { ManuallyDrop::take(&mut self.0) };
        // Closing takes milliseconds, more with many watches: not on the main thread.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            drop(runtime.spawn_blocking(move || drop(fd)));
        }
    }
}
