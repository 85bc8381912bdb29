//! The lines of one source that match a pattern, with the lines around them.
//!
//! Works on a buffer that grows with the longest line, up to [`MAX_LINE`], one block at a time. It does not open files.

use std::collections::VecDeque;
use std::io::{self, Read};

use cofferdam_protocol::{Hit, MAX_LINE_TEXT};
use memchr::{memchr, memchr_iter, memrchr, memrchr_iter};

use super::Step;
use super::pattern::Pattern;

/// The size of a block, unless a line is longer.
const BLOCK: usize = 64 * 1024;

/// The rest of a longer line is not searched.
const MAX_LINE: usize = 8 * 1024 * 1024;

/// A NUL in the first bytes makes a file binary.
const BINARY_BYTES: usize = 8 * 1024;

/// The context lines of a match.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Around {
    pub(super) before: usize,
    pub(super) after: usize,
}

pub(super) struct Lines<R> {
    source: R,
    around: Around,
    /// Matches that may still be returned.
    rest: u64,
    /// There was one more than that.
    more: bool,
    buffer: Vec<u8>,
    max_line: usize,
    /// What was not searched yet begins here; whole lines of it end at `block`, and all of it at `filled`.
    start: usize,
    block: usize,
    filled: usize,
    /// Whether the block may have a match.
    promising: bool,
    /// In a line that is longer than the buffer may be.
    skipping: bool,
    ended: bool,
    line: u64,
    before: VecDeque<Vec<u8>>,
    /// Matches whose lines after them are not complete.
    waiting: VecDeque<Hit>,
}

impl<R: Read> Lines<R> {
    /// `None` when it is binary.
    pub(super) fn new(source: R, around: Around, limit: u64) -> io::Result<Option<Lines<R>>> {
        Lines::with_buffer(source, around, limit, BLOCK, MAX_LINE)
    }

    fn with_buffer(
        source: R,
        around: Around,
        limit: u64,
        block: usize,
        max_line: usize,
    ) -> io::Result<Option<Lines<R>>> {
        let mut lines = Lines {
            source,
            around,
            rest: limit,
            more: false,
            buffer: vec![0; block],
            max_line,
            start: 0,
            block: 0,
            filled: 0,
            promising: false,
            skipping: false,
            ended: false,
            line: 1,
            before: VecDeque::new(),
            waiting: VecDeque::new(),
        };
        lines.read()?;
        let beginning = &lines.buffer[..lines.filled];
        if memchr(0, &beginning[..beginning.len().min(BINARY_BYTES)]).is_some() {
            return Ok(None);
        }
        if beginning.starts_with(b"\xef\xbb\xbf") {
            lines.start = 3;
            lines.block = 3;
        }
        Ok(Some(lines))
    }

    /// Whether there are more matches than the limit.
    pub(super) fn has_more(&self) -> bool {
        self.more
    }

    pub(super) fn step(&mut self, pattern: &Pattern) -> io::Result<Step<Hit>> {
        loop {
            let is_complete = |hit: &Hit| hit.after.len() >= self.around.after;
            if self.waiting.front().is_some_and(is_complete) {
                return Ok(self.waiting.pop_front().map_or(Step::Busy, Step::Found));
            }
            if self.more && self.waiting.is_empty() {
                return Ok(Step::End);
            }
            if self.start < self.block {
                if self.promising || !self.waiting.is_empty() {
                    self.take_line(pattern);
                } else {
                    self.pass_block();
                }
            } else if self.skipping {
                self.skip()?;
                return Ok(Step::Busy);
            } else if self.ended && self.start == self.filled {
                return Ok(self.waiting.pop_front().map_or(Step::End, Step::Found));
            } else {
                self.fill()?;
                self.promising = !self.more && pattern.may_be_in(&self.buffer[self.start..self.block]);
                return Ok(Step::Busy);
            }
        }
    }

    /// Reads until the buffer is full or the source has ended.
    fn read(&mut self) -> io::Result<()> {
        while self.filled < self.buffer.len() {
            match self.source.read(&mut self.buffer[self.filled..]) {
                Ok(0) => {
                    self.ended = true;
                    return Ok(());
                }
                Ok(count) => self.filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads a block of whole lines.
    fn fill(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.start..self.filled, 0);
        self.filled -= self.start;
        self.start = 0;
        let mut seen = 0;
        loop {
            self.read()?;
            if self.ended {
                self.block = self.filled;
                return Ok(());
            }
            if let Some(last) = memrchr(b'\n', &self.buffer[seen..self.filled]) {
                self.block = seen + last + 1;
                return Ok(());
            }
            if self.buffer.len() >= self.max_line {
                self.block = self.filled;
                self.skipping = true;
                return Ok(());
            }
            seen = self.filled;
            self.buffer.resize((self.buffer.len() * 2).min(self.max_line), 0);
        }
    }

    /// Looks for the end of a line that is too long.
    fn skip(&mut self) -> io::Result<()> {
        self.filled = 0;
        self.read()?;
        let end = memchr(b'\n', &self.buffer[..self.filled]);
        self.skipping = end.is_none() && !self.ended;
        self.start = end.map_or(self.filled, |end| end + 1);
        self.block = self.start;
        Ok(())
    }

    fn take_line(&mut self, pattern: &Pattern) {
        let rest = &self.buffer[self.start..self.block];
        let end = memchr(b'\n', rest);
        let raw = &rest[..end.unwrap_or(rest.len())];
        let line = raw.strip_suffix(b"\r").unwrap_or(raw);
        if !self.waiting.is_empty() {
            let text = beginning(line);
            self.waiting.iter_mut().filter(|hit| hit.after.len() < self.around.after).for_each(|hit| {
                hit.after.push(text.to_vec());
            });
        }
        if self.promising
            && let Some((start, end)) = pattern.find(line)
        {
            if self.rest == 0 {
                self.more = true;
                self.promising = false;
            } else {
                self.rest -= 1;
                self.waiting.push_back(Hit {
                    path: Vec::new(),
                    line: self.line,
                    column: characters(&line[..start]) + 1,
                    text: surroundings(line, start, end).to_vec(),
                    before: self.before.iter().cloned().collect(),
                    after: Vec::new(),
                });
            }
        }
        if self.around.before > 0 {
            if self.before.len() == self.around.before {
                self.before.pop_front();
            }
            self.before.push_back(beginning(line).to_vec());
        }
        self.line += 1;
        self.start += end.map_or(rest.len(), |end| end + 1);
    }

    /// Counts the lines of a block without a match, and keeps the last ones.
    fn pass_block(&mut self) {
        if self.around.before > 0 {
            let rest = &self.buffer[self.start..self.block];
            let body = rest.strip_suffix(b"\n").unwrap_or(rest);
            let tail = memrchr_iter(b'\n', body).nth(self.around.before - 1).map_or(0, |at| at + 1);
            for raw in body[tail..].split(|byte| *byte == b'\n') {
                if self.before.len() == self.around.before {
                    self.before.pop_front();
                }
                self.before.push_back(beginning(raw.strip_suffix(b"\r").unwrap_or(raw)).to_vec());
            }
        }
        self.line += memchr_iter(b'\n', &self.buffer[self.start..self.block]).count() as u64;
        // The last line has no end where the source has none, or where it is too long.
        self.line += u64::from(self.buffer[self.block - 1] != b'\n');
        self.start = self.block;
    }
}

fn is_inside(text: &[u8], at: usize) -> bool {
    text.get(at).is_some_and(|byte| byte & 0xc0 == 0x80)
}

/// The nearest character boundary, at most three bytes on.
fn boundary_after(text: &[u8], at: usize) -> usize {
    (at..at + 4).find(|at| !is_inside(text, *at)).unwrap_or(at)
}

fn boundary_before(text: &[u8], at: usize) -> usize {
    (at.saturating_sub(3)..=at).rev().find(|at| !is_inside(text, *at)).unwrap_or(at)
}

/// As much of a line as is sent.
fn beginning(line: &[u8]) -> &[u8] {
    if line.len() <= MAX_LINE_TEXT { line } else { &line[..boundary_before(line, MAX_LINE_TEXT)] }
}

/// As much of a line as is sent, around a match.
fn surroundings(line: &[u8], start: usize, end: usize) -> &[u8] {
    if line.len() <= MAX_LINE_TEXT {
        return line;
    }
    let room = MAX_LINE_TEXT.saturating_sub(end - start);
    let from = start.saturating_sub(room / 2).min(line.len() - MAX_LINE_TEXT);
    let to = from + MAX_LINE_TEXT;
    &line[boundary_after(line, from)..boundary_before(line, to)]
}

/// The number of characters; invalid UTF-8 counts as it is shown.
fn characters(text: &[u8]) -> u64 {
    text.utf8_chunks()
        .map(|chunk| chunk.valid().chars().count() + usize::from(!chunk.invalid().is_empty()))
        .sum::<usize>() as u64
}

#[cfg(test)]
#[path = "lines_test.rs"]
mod tests;
