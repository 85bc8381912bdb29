//! Packs one file's content, with its holes.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use cofferdam_protocol::{Meta, Record, short_reason};
use rustix::fs::{OFlags, SeekFrom, seek};
use rustix::io::Errno;

use crate::report::Report;
use crate::trouble::NOT_REGULAR;

/// What one read takes at most.
const READ: usize = 256 * 1024;

pub(crate) struct Reading {
    file: File,
    name: Vec<u8>,
    meta: Meta,
    size: u64,
    offset: u64,
    /// Where the next hole begins; only for files that have holes.
    data_end: Option<u64>,
    is_sparse: bool,
    is_new: bool,
    told: u64,
}

/// Through links, without waiting for anything.
pub(crate) fn open_file(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)
}

/// The result of packing a piece.
enum Piece {
    /// There is more.
    More,
    /// That was the last one.
    Last,
}

impl Reading {
    /// Only for regular files.
    pub(crate) fn new(file: File, name: Vec<u8>) -> io::Result<Reading> {
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, NOT_REGULAR));
        }
        let meta = Meta {
            mode: metadata.mode() & 0o7777,
            mtime_s: metadata.mtime(),
            mtime_ns: u32::try_from(metadata.mtime_nsec()).unwrap_or_default(),
        };
        let size = metadata.len();
        let is_sparse = metadata.blocks().saturating_mul(512) < size;
        Ok(Reading { file, name, meta, size, offset: 0, data_end: None, is_sparse, is_new: true, told: 0 })
    }

    pub(crate) fn is_new(&self) -> bool {
        self.is_new
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Appends to `out` until that has `size` bytes; true at the end of the file.
    pub(crate) fn fill(&mut self, out: &mut Vec<u8>, size: usize, report: &mut Report, path: &[u8]) -> bool {
        if std::mem::take(&mut self.is_new) {
            Record::File { name: std::mem::take(&mut self.name), meta: self.meta, size: self.size }.encode(out);
        }
        loop {
            match self.piece(out, size) {
                Ok(Piece::More) if out.len() >= size => return false,
                Ok(Piece::More) => {}
                Ok(Piece::Last) => {
                    Record::Whole.encode(out);
                    report.files += 1;
                    report.bytes += self.told;
                    return true;
                }
                Err(error) => {
                    let reason = short_reason(error);
                    report.skip(path.to_vec(), reason.clone());
                    Record::Torn { reason }.encode(out);
                    return true;
                }
            }
        }
    }

    fn piece(&mut self, out: &mut Vec<u8>, size: usize) -> io::Result<Piece> {
        if self.is_sparse && self.data_end.is_none_or(|end| self.offset >= end) && !self.skip_hole(out)? {
            return Ok(Piece::Last);
        }
        // Files in /proc report size 0.
        let expected = if self.size == 0 { READ as u64 } else { self.data_end.unwrap_or(self.size) - self.offset };
        let room = size.saturating_sub(out.len()).max(4096);
        let wanted = expected.min(room as u64).min(READ as u64) as usize;
        if wanted == 0 {
            return Ok(Piece::Last);
        }
        let start = out.len();
        Record::Data(wanted as u32).encode(out);
        let content = out.len();
        out.resize(content + wanted, 0);
        let count = match read_full(&self.file, &mut out[content..], self.offset) {
            Ok(count) => count,
            Err(error) => {
                out.truncate(start);
                return Err(error);
            }
        };
        if count < wanted {
            // It is shorter than it was, or reports no size: correct the announced length.
            let mut announced = Vec::new();
            if count > 0 {
                Record::Data(count as u32).encode(&mut announced);
            }
            out.truncate(content + count);
            out.splice(start..content, announced);
        }
        self.offset += count as u64;
        self.told += count as u64;
        let is_last = count < wanted || (self.size > 0 && self.offset >= self.size);
        Ok(if is_last { Piece::Last } else { Piece::More })
    }

    /// Goes on to the next data; false when there is none.
    fn skip_hole(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
        let start = match seek(&self.file, SeekFrom::Data(self.offset)) {
            Ok(start) => start.min(self.size),
            Err(Errno::NXIO) => self.size,
            // The file system has no holes: all of it is data.
            Err(Errno::INVAL) => {
                self.is_sparse = false;
                return Ok(true);
            }
            Err(error) => return Err(error.into()),
        };
        if start > self.offset {
            Record::Hole(start - self.offset).encode(out);
            self.offset = start;
        }
        if start >= self.size {
            return Ok(false);
        }
        self.data_end = Some(seek(&self.file, SeekFrom::Hole(start))?.min(self.size));
        Ok(true)
    }
}

fn read_full(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
