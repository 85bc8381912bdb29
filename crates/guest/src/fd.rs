//! Any descriptor (pipe, socket, terminal) as a non-blocking byte stream on the event loop.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// One read's worth: a frame of data.
pub(crate) const READ_SIZE: usize = 64 * 1024;

thread_local! {
    /// Reads are synchronous and on one thread, so that all descriptors share one buffer instead of owning one each.
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_SIZE].into_boxed_slice());
}

#[derive(Debug)]
pub(crate) struct Fd(AsyncFd<OwnedFd>);

impl Fd {
    pub(crate) fn readable(fd: OwnedFd) -> io::Result<Fd> {
        Self::with_interest(fd, Interest::READABLE)
    }

    pub(crate) fn writable(fd: OwnedFd) -> io::Result<Fd> {
        Self::with_interest(fd, Interest::WRITABLE)
    }

    fn with_interest(fd: OwnedFd, interest: Interest) -> io::Result<Fd> {
        let flags = fcntl_getfl(&fd)?;
        fcntl_setfl(&fd, flags | OFlags::NONBLOCK)?;
        // SAFETY: the descriptor is owned by the `AsyncFd` from here on, and closed only with it.
        let registered = unsafe { AsyncFd::register_with_interest(fd, interest) };
        Ok(Fd(registered.map_err(io::Error::from)?))
    }

    /// Reads once, at most `limit` bytes, and gives them to `take`; `take` of nothing is the end of the stream.
    pub(crate) async fn read<T>(&self, limit: usize, mut take: impl FnMut(&[u8]) -> T) -> io::Result<T> {
        loop {
            let mut ready = self.0.readable().await?;
            match ready.try_io(|fd| read_once(fd.get_ref(), limit, &mut take)) {
                Ok(outcome) => return outcome,
                Err(_would_block) => continue,
            }
        }
    }

    /// As [`Fd::read`], but gives `None` where it would have to wait.
    pub(crate) fn try_read<T>(&self, limit: usize, mut take: impl FnMut(&[u8]) -> T) -> io::Result<Option<T>> {
        match read_once(self.0.get_ref(), limit, &mut take) {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes what fits now.
    pub(crate) async fn write_vectored(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        loop {
            let mut ready = self.0.writable().await?;
            match ready.try_io(|fd| Ok(rustix::io::writev(fd.get_ref().as_fd(), slices)?)) {
                Ok(outcome) => return outcome,
                Err(_would_block) => continue,
            }
        }
    }

    pub(crate) async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = self.write_vectored(&[IoSlice::new(bytes)]).await?;
            bytes = &bytes[written..];
        }
        Ok(())
    }
}

fn read_once<T>(fd: &OwnedFd, limit: usize, take: &mut impl FnMut(&[u8]) -> T) -> io::Result<T> {
    SCRATCH.with_borrow_mut(|scratch| {
        let limit = limit.min(scratch.len());
        let count = rustix::io::read(fd.as_fd(), &mut scratch[..limit])?;
        Ok(take(&scratch[..count]))
    })
}
