//! The names of files that are being written: a watcher of the folder recognizes them, and knows the final name.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

const SUFFIX: &[u8] = b".cofferdam";
const NEW: &[u8] = b".new";

/// What happens to the target when a draft is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// There was none.
    New,
    /// There was one.
    Replaces,
}

/// A name in the target's folder that no other draft has: none of this program, and none left by an earlier one that was
/// killed, which had the same pid in every sandbox.
pub fn draft_name(target: &[u8], fate: Fate) -> Vec<u8> {
    static NEXT: LazyLock<AtomicU64> = LazyLock::new(|| AtomicU64::new(RandomState::new().hash_one(())));
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    // UTF-8, which some file systems require, and never too long.
    let short: String = String::from_utf8_lossy(target).chars().take(40).collect();
    let name = match fate {
        Fate::New => format!(".{short}.{number}.new.cofferdam"),
        Fate::Replaces => format!(".{short}.{number}.cofferdam"),
    };
    name.into_bytes()
}

/// Of a name that [`draft_name`] gave; `None` of every other.
pub fn draft_fate(name: &[u8]) -> Option<Fate> {
    let numbered = name.strip_prefix(b".")?.strip_suffix(SUFFIX)?;
    let (numbered, fate) = match numbered.strip_suffix(NEW) {
        Some(rest) => (rest, Fate::New),
        None => (numbered, Fate::Replaces),
    };
    let dot = numbered.iter().rposition(|byte| *byte == b'.')?;
    let number = &numbered[dot + 1..];
    (!number.is_empty() && number.iter().all(u8::is_ascii_digit)).then_some(fate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_is_known_by_its_name_whatever_its_target_is_called() {
        let long = "é".repeat(200);
        for target in ["a", "", "a.b", ".hidden", "x.new", "x.1.new", "7", long.as_str()] {
            for fate in [Fate::New, Fate::Replaces] {
                let name = draft_name(target.as_bytes(), fate);
                assert_eq!(draft_fate(&name), Some(fate), "{target}");
                assert!(name.len() < 255);
            }
        }
    }

    #[test]
    fn other_names_are_no_drafts() {
        for name in
            ["", "a", ".a", "a.1.cofferdam", ".a.cofferdam", ".a.new.cofferdam", ".a.x1.cofferdam", ".cofferdam"]
        {
            assert_eq!(draft_fate(name.as_bytes()), None, "{name}");
        }
    }
}
