//! The output buffer of a process: the start and the end of each stream, cut into numbered chunks.
//!
//! Invariants: at most `keep` bytes of each stream are held; `seq` rises by one per chunk over both streams; a chunk
//! that a reader has got never changes its number or grows; no chunk starts or ends inside a UTF-8 character
//! (the pump ensures that), nor does trimming cut one.

use std::collections::VecDeque;

use bytes::{BufMut, Bytes, BytesMut};
use cofferdam_protocol::{Kept, Kind};

use crate::fd::READ_SIZE;

/// Chunks remembered per stream and half: bounds what many tiny chunks cost beyond their bytes.
const MAX_CHUNKS: usize = 16 * 1024;

/// How many readers' positions are remembered, to count what each of them has lost.
const MAX_MARKS: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

impl Stream {
    pub(crate) const BOTH: [Stream; 2] = [Stream::Stdout, Stream::Stderr];

    pub(crate) fn kind(self) -> Kind {
        match self {
            Stream::Stdout => Kind::Stdout,
            Stream::Stderr => Kind::Stderr,
        }
    }
}

/// A numbered piece of output, ready to be sent: the payload starts with the number.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Chunk {
    pub(crate) seq: u64,
    pub(crate) stream: Stream,
    pub(crate) payload: Bytes,
}

impl Chunk {
    fn new(seq: u64, stream: Stream, length: usize, fill: impl FnOnce(&mut BytesMut)) -> Chunk {
        let mut payload = BytesMut::with_capacity(8 + length);
        payload.put_u64_le(seq);
        fill(&mut payload);
        Chunk { seq, stream, payload: payload.freeze() }
    }
}

#[derive(Debug)]
pub(crate) struct Log {
    keep: usize,
    last_seq: u64,
    handed: u64,
    streams: [StreamLog; 2],
    marks: VecDeque<(u64, u64)>,
}

impl Log {
    pub(crate) fn new(keep: usize) -> Log {
        Log { keep, last_seq: 0, handed: 0, streams: Default::default(), marks: VecDeque::new() }
    }

    /// Takes at most one frame's worth of output, and shows each chunk it became to `follow`, if there is a follower.
    pub(crate) fn append(&mut self, stream: Stream, bytes: &[u8], mut follow: Option<impl FnMut(Chunk)>) {
        let (head, tail) = bytes.split_at(self.streams[stream as usize].head_share(bytes, self.keep.div_ceil(2)));
        for (half, piece) in [(HalfName::Head, head), (HalfName::Tail, tail)] {
            if piece.is_empty() {
                continue;
            }
            let log = &mut self.streams[stream as usize];
            // A chunk that no reader has got may grow instead of making another.
            let growing = follow.is_none() && self.last_seq > self.handed && log.may_grow(half, self.last_seq, piece);
            self.last_seq += u64::from(!growing);
            log.push(half, self.last_seq, piece, self.keep / 2);
            if let Some(follow) = &mut follow {
                self.handed = self.last_seq;
                follow(Chunk::new(self.last_seq, stream, piece.len(), |payload| payload.put_slice(piece)));
            }
        }
    }

    /// The retained chunks after `since`, oldest first.
    pub(crate) fn since(&mut self, since: u64, max_chunks: usize) -> Vec<Chunk> {
        let mut places: Vec<_> = Stream::BOTH
            .into_iter()
            .flat_map(|stream| self.streams[stream as usize].places().map(move |place| (stream, place)))
            .filter(|(_, place)| place.seq > since)
            .collect();
        places.sort_unstable_by_key(|(_, place)| place.seq);
        places.truncate(max_chunks);
        self.handed = self.handed.max(places.last().map_or(0, |(_, place)| place.seq));
        places
            .into_iter()
            .map(|(stream, Place { half, seq, start, length })| {
                let bytes = &self.streams[stream as usize].half(half).bytes;
                Chunk::new(seq, stream, length, |payload| payload.extend(bytes.range(start..start + length)))
            })
            .collect()
    }

    /// Bytes after `since` that were dropped; remembers that a reader has got to `now_at`.
    pub(crate) fn lost_since(&mut self, since: u64, now_at: u64) -> u64 {
        let lost: u64 = self.streams.iter().map(|stream| stream.lost).sum();
        let known = self.marks.iter().rev().find(|(seq, _)| *seq <= since).map_or(0, |(_, lost)| *lost);
        if self.marks.back().is_none_or(|(seq, _)| *seq < now_at) {
            self.marks.push_back((now_at, lost));
            if self.marks.len() > MAX_MARKS {
                self.marks.pop_front();
            }
        }
        lost - known
    }

    pub(crate) fn kept(&self, stream: Stream) -> Kept {
        let log = &self.streams[stream as usize];
        Kept { head: log.head.bytes.len() as u64, lost: log.lost }
    }

    pub(crate) fn last_seq(&self) -> u64 {
        self.last_seq
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.streams.iter().map(|stream| stream.head.bytes.len() + stream.tail.bytes.len()).sum()
    }

    /// Whether another piece could push out an older one.
    pub(crate) fn is_full(&self) -> bool {
        let held = |log: &StreamLog| log.head.bytes.len() + log.tail.bytes.len();
        self.streams.iter().map(held).any(|held| held > 0 && held + READ_SIZE > self.keep)
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum HalfName {
    Head,
    Tail,
}

/// Where a chunk's bytes are.
struct Place {
    half: HalfName,
    seq: u64,
    start: usize,
    length: usize,
}

#[derive(Debug, Default)]
struct StreamLog {
    head: Half,
    tail: Half,
    head_closed: bool,
    lost: u64,
}

impl StreamLog {
    fn half(&self, name: HalfName) -> &Half {
        match name {
            HalfName::Head => &self.head,
            HalfName::Tail => &self.tail,
        }
    }

    /// How many of `bytes` still belong to the head: whole characters only. Once one byte did not, none does.
    fn head_share(&mut self, bytes: &[u8], limit: usize) -> usize {
        if self.head_closed {
            return 0;
        }
        let room = limit - self.head.bytes.len();
        if bytes.len() <= room && self.head.chunks.len() < MAX_CHUNKS {
            return bytes.len();
        }
        self.head_closed = true;
        let mut cut = room.min(bytes.len());
        while cut > 0 && cut < bytes.len() && is_continuation(bytes[cut]) {
            cut -= 1;
        }
        cut
    }

    fn may_grow(&self, half: HalfName, seq: u64, piece: &[u8]) -> bool {
        let last = self.half(half).chunks.back();
        last.is_some_and(|(last, length)| *last == seq && *length as usize + piece.len() <= READ_SIZE)
    }

    fn push(&mut self, half: HalfName, seq: u64, piece: &[u8], tail_limit: usize) {
        match half {
            HalfName::Head => self.head.push(seq, piece),
            HalfName::Tail => {
                self.tail.push(seq, piece);
                self.lost += self.tail.trim(tail_limit);
            }
        }
    }

    fn places(&self) -> impl Iterator<Item = Place> {
        [HalfName::Head, HalfName::Tail].into_iter().flat_map(|half| {
            self.half(half).chunks.iter().scan(0, move |start, (seq, length)| {
                let place = Place { half, seq: *seq, start: *start, length: *length as usize };
                *start += place.length;
                Some(place)
            })
        })
    }
}

/// A run of bytes with the numbers and lengths of the chunks it is cut into.
#[derive(Debug, Default)]
struct Half {
    bytes: VecDeque<u8>,
    chunks: VecDeque<(u64, u32)>,
}

impl Half {
    fn push(&mut self, seq: u64, bytes: &[u8]) {
        self.bytes.extend(bytes);
        match self.chunks.back_mut() {
            Some((last, length)) if *last == seq => *length += bytes.len() as u32,
            _ => self.chunks.push_back((seq, bytes.len() as u32)),
        }
    }

    /// Drops whole characters from the front until at most `limit` bytes and [`MAX_CHUNKS`] chunks are left.
    fn trim(&mut self, limit: usize) -> u64 {
        let mut dropped = self.bytes.len().saturating_sub(limit);
        while dropped > 0 && dropped < self.bytes.len() && is_continuation(self.bytes[dropped]) {
            dropped += 1;
        }
        if self.chunks.len() > MAX_CHUNKS {
            dropped = dropped.max(self.chunks[0].1 as usize);
        }
        self.bytes.drain(..dropped);
        let mut rest = dropped as u32;
        while rest > 0 {
            match self.chunks.front_mut() {
                Some((_, length)) if *length > rest => {
                    *length -= rest;
                    break;
                }
                Some((_, length)) => {
                    rest -= *length;
                    self.chunks.pop_front();
                }
                None => break,
            }
        }
        dropped as u64
    }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOBODY: Option<fn(Chunk)> = None;

    fn text(chunks: &[Chunk]) -> String {
        chunks.iter().map(|chunk| String::from_utf8(chunk.payload[8..].to_vec()).unwrap()).collect()
    }

    #[test]
    fn short_output_is_kept_whole_and_in_one_chunk_until_somebody_looks() {
        let mut log = Log::new(1000);
        log.append(Stream::Stdout, b"one ", NOBODY);
        log.append(Stream::Stdout, b"two ", NOBODY);
        let chunks = log.since(0, 100);
        assert_eq!((chunks.len(), chunks[0].seq, text(&chunks).as_str()), (1, 1, "one two "));
        log.append(Stream::Stdout, b"three", NOBODY);
        let chunks = log.since(1, 100);
        assert_eq!((chunks.len(), chunks[0].seq, text(&chunks).as_str()), (1, 2, "three"));
    }

    #[test]
    fn numbers_rise_by_one_over_both_streams() {
        let mut log = Log::new(1000);
        for stream in [Stream::Stdout, Stream::Stderr, Stream::Stdout] {
            log.append(stream, b"x", NOBODY);
        }
        let chunks = log.since(0, 100);
        assert_eq!(chunks.iter().map(|chunk| chunk.seq).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(log.since(1, 1)[0].stream, Stream::Stderr);
    }

    #[test]
    fn long_output_keeps_head_and_tail_and_counts_the_rest() {
        let mut log = Log::new(10);
        let mut seen = Vec::new();
        for digit in b'0'..=b'9' {
            log.append(Stream::Stdout, &[digit; 4], Some(|chunk| seen.push(chunk)));
        }
        assert_eq!(text(&log.since(0, 100)), "0000199999".replace("99999", "89999"));
        assert_eq!(log.kept(Stream::Stdout), Kept { head: 5, lost: 30 });
        assert_eq!(text(&seen).len(), 40);
        assert!(seen.windows(2).all(|pair| pair[1].seq == pair[0].seq + 1));
    }

    #[test]
    fn characters_are_never_cut() {
        for keep in 1..40 {
            let mut log = Log::new(keep);
            for _ in 0..20 {
                log.append(Stream::Stdout, "añ€😀".as_bytes(), NOBODY);
            }
            assert!(text(&log.since(0, usize::MAX)).len() <= keep);
        }
    }

    #[test]
    fn a_reader_is_told_what_it_lost_itself() {
        let mut log = Log::new(8);
        log.append(Stream::Stdout, b"abcd", NOBODY);
        assert_eq!(log.lost_since(0, 1), 0);
        log.append(Stream::Stdout, b"0123456789", NOBODY);
        let last = log.since(1, 9).last().unwrap().seq;
        assert_eq!(log.lost_since(1, last), 6);
        log.append(Stream::Stdout, b"xy", NOBODY);
        let now = log.since(last, 9).last().unwrap().seq;
        assert_eq!(log.lost_since(last, now), 2, "pushed out by xy after the last read");
    }
}
