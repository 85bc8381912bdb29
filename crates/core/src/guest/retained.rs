//! Retained output: the head and the tail of one stream, within a limit.

use std::collections::VecDeque;

use cofferdam_protocol::Kept as GuestKept;

/// The smallest limit that has room for a note on what was left out.
const NOTE_FROM: usize = 1024;

/// Head and tail of a stream.
#[derive(Debug)]
pub(crate) struct Retained {
    limit: usize,
    head: Vec<u8>,
    /// The head is full.
    head_closed: bool,
    tail: VecDeque<u8>,
    lost: u64,
}

impl Retained {
    pub(crate) fn new(limit: usize) -> Retained {
        Retained { limit, head: Vec::new(), head_closed: false, tail: VecDeque::new(), lost: 0 }
    }

    /// Adds a piece of the stream. If the piece has whole characters, so have both sides of the gap.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let (head, rest) = bytes.split_at(self.head_share(bytes));
        self.head.extend_from_slice(head);
        // Only the end of the piece can fit.
        let tail_limit = self.limit / 2;
        let (skipped, rest) = rest.split_at(rest.len().saturating_sub(tail_limit));
        self.tail.extend(rest);
        let mut over = self.tail.len().saturating_sub(tail_limit);
        if over > 0 || !skipped.is_empty() {
            over += self.tail.iter().skip(over).take(3).take_while(|byte| is_continuation(**byte)).count();
        }
        self.tail.drain(..over);
        self.lost += (skipped.len() + over) as u64;
    }

    fn head_share(&mut self, bytes: &[u8]) -> usize {
        if self.head_closed {
            return 0;
        }
        let mut room = self.limit.div_ceil(2) - self.head.len();
        if bytes.len() <= room {
            return bytes.len();
        }
        self.head_closed = true;
        while room > 0 && is_continuation(bytes[room]) {
            room -= 1;
        }
        room
    }

    /// The retained bytes, and whether some are missing. `guest` says what the guest had already left out.
    pub(crate) fn finish(mut self, guest: GuestKept) -> (Vec<u8>, bool) {
        let lost = self.lost + guest.lost;
        if lost == 0 {
            self.head.extend(self.tail);
            return (self.head, false);
        }
        let mut head = self.head;
        let mut tail: Vec<u8> = self.tail.into();
        if self.lost == 0 {
            // Everything that the guest retained is here; the gap is where the guest made it.
            head.append(&mut tail);
            tail = head.split_off(head.len().min(usize::try_from(guest.head).unwrap_or(usize::MAX)));
        }
        if self.limit >= NOTE_FROM {
            let note = |lost: u64| format!("\n[… {lost} bytes left out …]\n");
            // The note takes its space from the tail, to stay within the limit.
            let room = self.limit.saturating_sub(head.len() + note(u64::MAX).len());
            let mut cut = tail.len().saturating_sub(room);
            while cut < tail.len() && is_continuation(tail[cut]) {
                cut += 1;
            }
            head.extend_from_slice(note(lost + cut as u64).as_bytes());
            tail.drain(..cut);
        }
        head.append(&mut tail);
        (head, true)
    }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn retain(limit: usize, pieces: &[&[u8]], guest: GuestKept) -> (String, bool) {
        let mut retained = Retained::new(limit);
        pieces.iter().for_each(|piece| retained.push(piece));
        let (bytes, truncated) = retained.finish(guest);
        (String::from_utf8(bytes).unwrap(), truncated)
    }

    #[test]
    fn output_within_the_limit_is_whole() {
        assert_eq!(retain(10, &[b"hello", b"world"], GuestKept::default()), ("helloworld".into(), false));
        assert_eq!(retain(0, &[], GuestKept::default()), (String::new(), false));
    }

    #[test]
    fn output_over_a_small_limit_keeps_head_and_tail() {
        assert_eq!(retain(4, &[b"abcdef", b"gh"], GuestKept::default()), ("abgh".into(), true));
        assert_eq!(retain(0, &[b"abc"], GuestKept::default()), (String::new(), true));
    }

    #[test]
    fn a_note_tells_how_much_is_missing_and_stays_within_the_limit() {
        let long = "é".repeat(5000);
        let (text, truncated) = retain(2000, &[long.as_bytes()], GuestKept::default());
        assert!(truncated && text.len() <= 2000 && text.contains("bytes left out"), "{}", text.len());
        let shown = text.matches('é').count() * 2;
        let missing: usize = text.split_whitespace().find_map(|word| word.parse().ok()).unwrap();
        assert_eq!(shown + missing, 10_000);
    }

    #[test]
    fn no_character_is_cut_at_either_side_of_the_gap() {
        for limit in 1..40 {
            let (text, truncated) =
                retain(limit, &["€😀é€".as_bytes(), "é€😀€".as_bytes()].repeat(2), GuestKept::default());
            assert!(truncated && text.len() <= limit, "{limit}: {text}");
        }
    }

    #[test]
    fn what_the_guest_left_out_is_counted_where_it_was() {
        let guest = GuestKept { head: 3, lost: 100 };
        assert_eq!(retain(10, &[b"abc", b"xyz"], guest), ("abcxyz".into(), true));
    }
}
