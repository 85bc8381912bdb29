//! Any descriptor (pipe, socket, terminal) as a non-blocking byte stream on the event loop.

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use bytes::{BufMut, BytesMut};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// One read's worth: a frame of data.
pub(crate) const READ_SIZE: usize = 64 * 1024;

thread_local! {
    /// Reads are synchronous and on one thread, so all descriptors share one buffer.
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_SIZE].into_boxed_slice());
}

/// The size of a busy pipe: both ends are woken less often. Not from the start, because the kernel limits the size of all
/// pipes of a user together, and gives tiny ones beyond that.
const BUSY_PIPE: usize = 256 * 1024;

#[derive(Debug)]
pub(crate) struct Fd {
    fd: AsyncFd<OwnedFd>,
    grown: Cell<bool>,
}

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
        Ok(Fd { fd: registered.map_err(io::Error::from)?, grown: Cell::new(false) })
    }

    /// Reads once, at most `limit` bytes, and gives them to `take`; `take` of nothing is the end of the stream.
    pub(crate) async fn read<T>(&self, limit: usize, mut take: impl FnMut(&[u8]) -> T) -> io::Result<T> {
        loop {
            let mut ready = self.fd.readable().await?;
            match ready.try_io(|_| self.read_once(limit, &mut take)) {
                Ok(outcome) => return outcome,
                Err(_would_block) => continue,
            }
        }
    }

    /// Like [`Fd::read`], but returns `None` instead of waiting.
    pub(crate) fn try_read<T>(&self, limit: usize, mut take: impl FnMut(&[u8]) -> T) -> io::Result<Option<T>> {
        match self.read_once(limit, &mut take) {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn read_once<T>(&self, limit: usize, take: &mut impl FnMut(&[u8]) -> T) -> io::Result<T> {
        SCRATCH.with_borrow_mut(|scratch| {
            let limit = limit.min(scratch.len());
            let count = rustix::io::read(self.fd.get_ref(), &mut scratch[..limit])?;
            self.grow_if(count == scratch.len());
            Ok(take(&scratch[..count]))
        })
    }

    /// Waits until `receive`, which makes its own system call, has something.
    pub(crate) async fn receive<T>(&self, receive: impl Fn(BorrowedFd<'_>) -> io::Result<T>) -> io::Result<T> {
        loop {
            let mut ready = self.fd.readable().await?;
            if let Ok(outcome) = ready.try_io(|fd| receive(fd.get_ref().as_fd())) {
                return outcome;
            }
        }
    }

    /// Reads once to the end of `buffer`; 0 is the end of the stream.
    pub(crate) async fn read_into(&self, buffer: &mut BytesMut) -> io::Result<usize> {
        loop {
            let mut ready = self.fd.readable().await?;
            buffer.reserve(READ_SIZE);
            let outcome = ready.try_io(|fd| {
                // SAFETY: the kernel writes to it, and only what it wrote is taken for data below.
                let spare = unsafe { buffer.chunk_mut().as_uninit_slice_mut() };
                let (filled, _) = rustix::io::read(fd.get_ref(), spare)?;
                Ok(filled.len())
            });
            if let Ok(outcome) = outcome {
                let count = outcome?;
                // SAFETY: that many bytes were just written there.
                unsafe { buffer.advance_mut(count) };
                self.grow_if(count >= READ_SIZE);
                return Ok(count);
            }
        }
    }

    /// Writes what fits now.
    pub(crate) async fn write_vectored(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        loop {
            let mut ready = self.fd.writable().await?;
            match ready.try_io(|fd| Ok(rustix::io::writev(fd.get_ref().as_fd(), slices)?)) {
                Ok(outcome) => return outcome,
                Err(_would_block) => {
                    self.grow_if(true);
                    continue;
                }
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

    fn grow_if(&self, busy: bool) {
        if busy && !self.grown.replace(true) {
            // Not a pipe, or not allowed: it works without.
            let _ = rustix::pipe::fcntl_setpipe_size(self.fd.get_ref(), BUSY_PIPE);
        }
    }
}
