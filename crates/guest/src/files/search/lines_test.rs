//! The line searcher against one that has all the time in the world.

use std::io::Read;

use cofferdam_protocol::{Hit, MAX_LINE_TEXT};
use proptest::prelude::*;

use super::*;

/// Gives a few bytes at a time, as a source may.
struct Drip<'a>(&'a [u8], usize);

impl Read for Drip<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.0.len().min(into.len()).min(self.1);
        into[..count].copy_from_slice(&self.0[..count]);
        self.0 = &self.0[count..];
        Ok(count)
    }
}

fn search(text: &[u8], pattern: &Pattern, around: Around, limit: u64, block: usize, max: usize) -> (Vec<Hit>, bool) {
    let mut lines = Lines::with_buffer(Drip(text, 7), around, limit, block, max).unwrap().unwrap();
    let mut hits = Vec::new();
    loop {
        match lines.step(pattern).unwrap() {
            Step::Found(hit) => hits.push(hit),
            Step::Busy => {}
            Step::End => return (hits, lines.has_more()),
        }
    }
}

fn all(text: &[u8], pattern: &Pattern) -> Vec<Hit> {
    search(text, pattern, Around::default(), u64::MAX, BLOCK, MAX_LINE).0
}

fn naive(text: &[u8], pattern: &Pattern, around: Around, limit: u64) -> (Vec<Hit>, bool) {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    if lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    let lines: Vec<&[u8]> = lines.into_iter().map(|line| line.strip_suffix(b"\r").unwrap_or(line)).collect();
    let mut hits = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let Some((start, _)) = pattern.find(line) else { continue };
        if hits.len() as u64 == limit {
            return (hits, true);
        }
        let owned = |lines: &[&[u8]]| lines.iter().map(|line| line.to_vec()).collect::<Vec<_>>();
        hits.push(Hit {
            path: vec![],
            line: index as u64 + 1,
            column: String::from_utf8_lossy(&line[..start]).chars().count() as u64 + 1,
            text: line.to_vec(),
            before: owned(&lines[index.saturating_sub(around.before)..index]),
            after: owned(&lines[index + 1..(index + 1 + around.after).min(lines.len())]),
        });
    }
    (hits, false)
}

fn pattern(text: &str) -> Pattern {
    Pattern::new(text, false, false).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn finds_what_a_naive_search_finds(
        text in prop::collection::vec(prop_oneof![
            4 => Just(b"a".to_vec()), 4 => Just(b"b".to_vec()), 3 => Just(b"\n".to_vec()), 1 => Just(b"\r\n".to_vec()),
            1 => Just(b"\r".to_vec()), 1 => Just(b" ".to_vec()), 1 => Just("\u{20ac}".as_bytes().to_vec()),
            1 => Just(b"\xff".to_vec()), 1 => Just(b"\xef\xbb\xbf".to_vec()), 1 => Just(b"needle".to_vec()),
        ], 0..200),
        expression in prop::sample::select(vec![
            "a", "needle", "a+b", "^a", "b$", "^$", "", r"\Aa", r"b\z", r"\ba", r"a\s+b", "[^a]b", r"\x{20ac}", "(?i)NEEDLE",
            "(?-u:\\xff)", "a.b", r"\Ba", "(?-m)^a", "a|^b$",
        ]),
        before in 0usize..4, after in 0usize..4, limit in prop_oneof![Just(u64::MAX), 0u64..5], block in 8usize..40,
    ) {
        let (text, pattern, around) = (text.concat(), pattern(expression), Around { before, after });
        prop_assert_eq!(search(&text, &pattern, around, limit, block, MAX_LINE), naive(&text, &pattern, around, limit));
    }

    #[test]
    fn cuts_lines_to_what_was_found_and_never_inside_a_character(
        lead in 0usize..2000, tail in 0usize..2000, character in prop::sample::select(vec!["x", "\u{e9}", "\u{20ac}", "\u{1f600}"]),
    ) {
        let line = format!("{}needle{}", character.repeat(lead), character.repeat(tail));
        let hits = all(line.as_bytes(), &pattern("needle"));
        prop_assert_eq!(hits.len(), 1);
        let text = std::str::from_utf8(&hits[0].text).unwrap();
        prop_assert!(text.len() <= MAX_LINE_TEXT && text.contains("needle") && line.contains(text));
        prop_assert!(line.len() <= MAX_LINE_TEXT || text.len() > MAX_LINE_TEXT - 8);
        prop_assert_eq!(hits[0].column, lead as u64 + 1);
    }
}

#[test]
fn a_nul_early_on_makes_it_binary_and_a_late_one_does_not() {
    let with_nul_at = |at: usize| {
        let mut text = vec![b'x'; 20_000];
        text[at] = 0;
        Lines::new(Drip(&text, 4096), Around::default(), 1).unwrap().is_none()
    };
    assert!(with_nul_at(0) && with_nul_at(BINARY_BYTES - 1));
    assert!(!with_nul_at(BINARY_BYTES));
}

#[test]
fn a_line_that_is_longer_than_the_buffer_may_be_counts_as_one_and_is_searched_at_its_start() {
    let mut text = b"first\n".to_vec();
    text.extend(b"needle".iter().chain(&[b'x'; 500]));
    text.extend(b"needle\nneedle at last\n");
    let hits = search(&text, &pattern("needle"), Around::default(), u64::MAX, 16, 64).0;
    let found: Vec<_> = hits.iter().map(|hit| (hit.line, hit.text.len())).collect();
    assert_eq!(found, [(2, 64), (3, "needle at last".len())]);
    let unseen = [&[b'y'; 500][..], b"needle"].concat();
    assert_eq!(search(&unseen, &pattern("needle"), Around::default(), u64::MAX, 16, 64).0, []);
}

#[test]
fn the_end_of_a_line_may_be_crlf() {
    let hits = all(b"one\r\ntwo\r\n", &pattern("e$|^two$"));
    let found: Vec<_> = hits.iter().map(|hit| (hit.line, hit.text.as_slice())).collect();
    assert_eq!(found, [(1, &b"one"[..]), (2, b"two")]);
}
