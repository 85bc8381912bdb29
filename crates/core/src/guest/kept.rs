//! What a result keeps of one output stream: its start and its end, within a limit.

use std::collections::VecDeque;

use cofferdam_protocol::Kept as GuestKept;

/// Below this, a note on what was left out would itself leave out too much.
const NOTE_FROM: usize = 1024;

/// Head and tail of a stream.
#[derive(Debug)]
pub(crate) struct Kept {
    limit: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    lost: u64,
}

impl Kept {
    pub(crate) fn new(limit: usize) -> Kept {
        Kept { limit, head: Vec::new(), tail: VecDeque::new(), lost: 0 }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let head_limit = self.limit.div_ceil(2);
        let room = if self.tail.is_empty() && self.lost == 0 { head_limit.saturating_sub(self.head.len()) } else { 0 };
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        // Only the end of what is pushed can stay.
        let tail_limit = self.limit / 2;
        let (skipped, rest) = rest.split_at(rest.len().saturating_sub(tail_limit));
        self.tail.extend(rest);
        let over = self.tail.len().saturating_sub(tail_limit);
        self.tail.drain(..over);
        self.lost += (skipped.len() + over) as u64;
    }

    /// The bytes to show, and whether some are missing. `guest` tells what the guest itself had already left out.
    pub(crate) fn finish(mut self, guest: GuestKept) -> (Vec<u8>, bool) {
        let lost = self.lost + guest.lost;
        if lost == 0 {
            self.head.extend(self.tail);
            return (self.head, false);
        }
        let mut head = self.head;
        let mut tail: Vec<u8> = self.tail.into();
        if self.lost == 0 {
            // All that the guest kept is here; the cut is where the guest made it.
            head.append(&mut tail);
            tail = head.split_off(head.len().min(usize::try_from(guest.head).unwrap_or(usize::MAX)));
        }
        if self.limit >= NOTE_FROM {
            let note = |lost: u64| format!("\n[… {lost} bytes left out …]\n");
            // The note takes its room from the tail, so that the whole stays within the limit.
            let room = self.limit.saturating_sub(head.len() + note(u64::MAX).len());
            let mut cut = tail.len().saturating_sub(room);
            while cut < tail.len() && tail[cut] & 0b1100_0000 == 0b1000_0000 {
                cut += 1;
            }
            head.extend_from_slice(note(lost + cut as u64).as_bytes());
            tail.drain(..cut);
        }
        head.append(&mut tail);
        (head, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(limit: usize, pieces: &[&[u8]], guest: GuestKept) -> (String, bool) {
        let mut kept = Kept::new(limit);
        pieces.iter().for_each(|piece| kept.push(piece));
        let (bytes, truncated) = kept.finish(guest);
        (String::from_utf8(bytes).unwrap(), truncated)
    }

    #[test]
    fn output_within_the_limit_is_whole() {
        assert_eq!(keep(10, &[b"hello", b"world"], GuestKept::default()), ("helloworld".into(), false));
        assert_eq!(keep(0, &[], GuestKept::default()), (String::new(), false));
    }

    #[test]
    fn output_over_a_small_limit_keeps_head_and_tail() {
        assert_eq!(keep(4, &[b"abcdef", b"gh"], GuestKept::default()), ("abgh".into(), true));
        assert_eq!(keep(0, &[b"abc"], GuestKept::default()), (String::new(), true));
    }

    #[test]
    fn a_note_tells_how_much_is_missing_and_stays_within_the_limit() {
        let long = "é".repeat(5000);
        let (text, truncated) = keep(2000, &[long.as_bytes()], GuestKept::default());
        assert!(truncated && text.len() <= 2000 && text.contains("bytes left out"), "{}", text.len());
        let shown = text.matches('é').count() * 2;
        let missing: usize = text.split_whitespace().find_map(|word| word.parse().ok()).unwrap();
        assert_eq!(shown + missing, 10_000);
    }

    #[test]
    fn what_the_guest_left_out_is_counted_where_it_was() {
        let guest = GuestKept { head: 3, lost: 100 };
        assert_eq!(keep(10, &[b"abc", b"xyz"], guest), ("abcxyz".into(), true));
    }
}
