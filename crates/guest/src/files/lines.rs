//! A range of lines of a file: the guest finds where it starts and ends, and sends only that.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use cofferdam_protocol::{Fault, Reply};
use memchr::memchr_iter;

use super::content::{open_regular, read};
use super::place::{Place, blocking, brief};
use crate::channel::Channel;
use crate::fd::READ_SIZE;
use crate::requests::Failure;

/// What one trip to a helper thread looks through.
const STRETCH: usize = 16 * 1024 * 1024;

pub(crate) async fn read_lines(
    place: Place,
    from: u64,
    to: u64,
    limit: u64,
    channel: &Channel,
) -> Result<Reply, Failure> {
    let mut scan = Scan { place: place.clone(), file: None, offset: 0, line: 1, from, to, begin: None, end: None };
    let mut over;
    // Most files end in the first stretch, and need no helper thread.
    (scan, over) = brief(move || scan.advance(READ_SIZE)).await?;
    while !over {
        (scan, over) = blocking(move || scan.advance(STRETCH)).await?;
    }
    let Some(begin) = scan.begin else {
        channel.reply(&Reply::Opened { size: scan.offset }).await?;
        return Ok(Reply::Content { size: scan.offset, truncated: false });
    };
    let wanted = scan.end.map_or(u64::MAX, |end| end - begin);
    match read(place, begin, wanted.min(limit), channel).await? {
        // Content after the last line was not asked for.
        Reply::Content { size, .. } if scan.end.is_some() => Ok(Reply::Content { size, truncated: wanted > limit }),
        reply => Ok(reply),
    }
}

struct Scan {
    place: Place,
    file: Option<File>,
    offset: u64,
    /// The line that begins, or goes on, at the offset.
    line: u64,
    from: u64,
    to: u64,
    begin: Option<u64>,
    end: Option<u64>,
}

impl Scan {
    /// Looks through the next `stretch` bytes. True when there is nothing more to find.
    fn advance(mut self, stretch: usize) -> Result<(Scan, bool), Fault> {
        let file = match self.file.take() {
            Some(file) => file,
            None => open_regular(&self.place)?,
        };
        let mut block = vec![0; READ_SIZE];
        for _ in 0..stretch.div_ceil(READ_SIZE) {
            let filled = match file.read_at(&mut block, self.offset) {
                Ok(0) => return Ok((self, true)),
                Ok(filled) => filled,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.place.fault("read", &error)),
            };
            if self.take(&block[..filled]) {
                return Ok((self, true));
            }
        }
        self.file = Some(file);
        Ok((self, false))
    }

    /// True when both ends are known, or the end is the file's own.
    fn take(&mut self, block: &[u8]) -> bool {
        let offset = self.offset;
        self.offset += block.len() as u64;
        if self.line == self.from {
            self.begin.get_or_insert(offset);
        }
        let breaks = memchr_iter(b'\n', block);
        // Counting is much faster than looking at each, and most blocks are before the first line.
        let count = breaks.clone().count() as u64;
        if self.begin.is_none() && self.line + count < self.from {
            self.line += count;
            return false;
        }
        for at in breaks {
            let next = offset + at as u64 + 1;
            if self.line == self.to {
                self.end = Some(next);
                return true;
            }
            self.line += 1;
            if self.line == self.from {
                self.begin = Some(next);
            }
            if self.begin.is_some() && self.to == u64::MAX {
                return true;
            }
        }
        self.begin.is_some() && self.to == u64::MAX
    }
}
