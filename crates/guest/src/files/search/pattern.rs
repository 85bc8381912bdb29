//! The pattern of a search.

use std::error::Error;

use cofferdam_protocol::{Fault, FaultCode};
use memchr::memchr;
use regex_automata::meta::{Config, Regex};
use regex_automata::nfa::thompson::WhichCaptures;
use regex_syntax::ParserBuilder;

use crate::requests::fault;

/// The longest pattern.
const MAX_PATTERN: usize = 16 * 1024;

/// The largest compiled pattern. The search time is bounded by this times the length of the text.
const MAX_COMPILED: usize = 4 * 1024 * 1024;

/// The cache of the regex engine.
const MAX_CACHE: usize = 1024 * 1024;

/// A compiled pattern.
pub(super) struct Pattern {
    regex: Regex,
    /// Whether it can be matched against a whole block: it has no anchor to the very start or end.
    fits_blocks: bool,
}

impl Pattern {
    pub(super) fn new(text: &str, literal: bool, ignore_case: bool) -> Result<Pattern, Fault> {
        if text.len() > MAX_PATTERN {
            let message = format!("the pattern has {} bytes, more than the {MAX_PATTERN} allowed", text.len());
            return Err(fault(FaultCode::InvalidArgument, message));
        }
        let escaped = if literal { regex_syntax::escape(text) } else { text.to_owned() };
        let refused = |error: &(dyn Error + 'static)| {
            // The last one in the chain says what is wrong.
            let mut reason = error;
            while let Some(deeper) = reason.source() {
                reason = deeper;
            }
            let hint = if literal { "" } else { "; pass literal: true to search for the text as it is" };
            fault(FaultCode::InvalidArgument, format!("{text:?} is not a pattern: {reason}{hint}"))
        };
        let hir = ParserBuilder::new()
            .utf8(false)
            .multi_line(true)
            .case_insensitive(ignore_case)
            .build()
            .parse(&escaped)
            .map_err(|error| refused(&error))?;
        let config = Config::new()
            .utf8_empty(false)
            .which_captures(WhichCaptures::Implicit)
            .nfa_size_limit(Some(MAX_COMPILED))
            .hybrid_cache_capacity(MAX_CACHE);
        let regex = Regex::builder().configure(config).build_from_hir(&hir).map_err(|error| refused(&error))?;
        Ok(Pattern { regex, fits_blocks: !hir.properties().look_set().contains_anchor_haystack() })
    }

    /// The first match in a line without its end.
    pub(super) fn find(&self, line: &[u8]) -> Option<(usize, usize)> {
        self.regex.find(line).map(|found| (found.start(), found.end()))
    }

    /// False only when no line of a block has a match: much faster than line by line.
    pub(super) fn may_be_in(&self, block: &[u8]) -> bool {
        // With CRLF line ends, the engine's end of line is not the end of the text.
        !self.fits_blocks || memchr(b'\r', block).is_some() || self.regex.is_match(block)
    }
}
