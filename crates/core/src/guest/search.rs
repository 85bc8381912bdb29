//! Searches for names and lines, done by the guest.
//!
//! Results are counted and measured here: a guest that sends more than requested violates the protocol.

use cofferdam_protocol::{FileEntry, Filter, Glob, Grep, Hit, MAX_CONTEXT, MAX_LINE_TEXT, Reply, Request};
use serde::de::DeserializeOwned;

use super::channel::unexpected;
use super::connection::Guest;
use super::files::MAX_PATH;
use super::link::{Event, LinkEnd};
use crate::{Error, Result};

/// Results of one search.
const MAX_RESULTS: u64 = 100_000;

/// Patterns of one search, and the length of each.
const MAX_PATTERNS: usize = 1000;
const MAX_PATTERN: usize = 4096;

/// Where to search, and what to leave out.
#[derive(Debug, Clone, Default)]
pub struct SearchScope {
    /// Absolute, or under the workdir.
    pub path: String,
    /// Patterns as in a `.gitignore` in that folder.
    pub exclude: Vec<String>,
    /// Also honor the `.gitignore` files there and above, and skip `.git`.
    pub gitignore: bool,
    /// Include names that begin with a dot.
    pub hidden: bool,
}

/// Names to find.
#[derive(Debug, Clone, Default)]
pub struct GlobRequest {
    /// Where.
    pub scope: SearchScope,
    /// Any of them.
    pub patterns: Vec<String>,
    /// The most results.
    pub max_results: u64,
}

/// Lines to find.
#[derive(Debug, Clone, Default)]
pub struct GrepRequest {
    /// Where; a file, or a folder.
    pub scope: SearchScope,
    /// A regular expression.
    pub pattern: String,
    /// The pattern is plain text.
    pub literal: bool,
    /// Ignore case.
    pub ignore_case: bool,
    /// Only files that match one of these globs.
    pub include: Vec<String>,
    /// Lines of context before each match.
    pub before: u64,
    /// Lines of context after each match.
    pub after: u64,
    /// The most matches in total.
    pub max_matches: u64,
    /// The most matches per file.
    pub max_per_file: u64,
    /// Skip longer files.
    pub max_file_bytes: u64,
}

/// The results of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found<T> {
    /// In the order of the walk.
    pub results: Vec<T>,
    /// There are more results.
    pub truncated: bool,
    /// Files searched.
    pub files: u64,
    /// Files skipped: binary, too long, or not readable.
    pub skipped: u64,
}

impl SearchScope {
    fn filter(&self) -> Result<Filter> {
        check_patterns("exclude", &self.exclude)?;
        let pattern = |text: &str, is_wanted: bool| is_wanted.then(|| text.to_owned());
        // The last match decides: an `exclude` of "!.env" brings back what is hidden, and nothing brings back .git.
        let exclude = pattern(".*", !self.hidden).into_iter();
        let exclude = exclude.chain(self.exclude.iter().cloned()).chain(pattern(".git", self.gitignore));
        Ok(Filter { exclude: exclude.collect(), gitignore: self.gitignore })
    }
}

impl Guest {
    /// Everything below a folder whose path matches a pattern.
    pub async fn glob(&self, glob: &GlobRequest) -> Result<Found<FileEntry>> {
        self.admit_tree(&glob.scope.path).await?;
        check_patterns("pattern", &glob.patterns)?;
        if let Some(pattern) = glob.patterns.iter().find(|pattern| leads_out(pattern)) {
            let message =
                format!("pattern {pattern:?} leads out of the folder; pass path: \"/…\" and a pattern from there");
            return Err(Error::invalid(message));
        }
        check_count("maxResults", glob.max_results, MAX_RESULTS)?;
        let request = Request::Glob(Glob {
            path: glob.scope.path.clone(),
            patterns: glob.patterns.clone(),
            filter: glob.scope.filter()?,
            max_results: glob.max_results,
        });
        let is_sound = |entry: &FileEntry| {
            entry.path.len() < MAX_PATH && entry.target.as_ref().is_none_or(|target| target.len() < MAX_PATH)
        };
        self.search(&request, glob.max_results, is_sound).await
    }

    /// Every line that matches, in a file or below a folder.
    pub async fn grep(&self, grep: &GrepRequest) -> Result<Found<Hit>> {
        self.admit_tree(&grep.scope.path).await?;
        check_patterns("include", &grep.include)?;
        check_count("maxMatches", grep.max_matches, MAX_RESULTS)?;
        check_count("before", grep.before, MAX_CONTEXT.into())?;
        check_count("after", grep.after, MAX_CONTEXT.into())?;
        if grep.literal && grep.pattern.contains('\n') {
            return Err(Error::invalid(
                "the text has a line break, and lines are searched one by one; search for one line",
            ));
        }
        let request = Request::Grep(Grep {
            path: grep.scope.path.clone(),
            pattern: grep.pattern.clone(),
            literal: grep.literal,
            ignore_case: grep.ignore_case,
            include: grep.include.clone(),
            filter: grep.scope.filter()?,
            before: grep.before as u32,
            after: grep.after as u32,
            max_matches: grep.max_matches,
            max_per_file: grep.max_per_file,
            max_file_bytes: grep.max_file_bytes,
        });
        let is_sound = |hit: &Hit| {
            let mut lines = hit.before.iter().chain(&hit.after).chain([&hit.text]);
            hit.path.len() < MAX_PATH
                && hit.before.len() as u64 <= grep.before
                && hit.after.len() as u64 <= grep.after
                && lines.all(|line| line.len() <= MAX_LINE_TEXT)
        };
        self.search(&request, grep.max_matches, is_sound).await
    }

    async fn search<T: DeserializeOwned>(
        &self,
        request: &Request,
        max: u64,
        is_sound: impl Fn(&T) -> bool,
    ) -> Result<Found<T>> {
        let is_sound = &is_sound;
        self.with_link(|link| async move {
            let mut channel = match link.request(request, 1)? {
                Ok(channel) => channel,
                Err(error) => return Ok(Err(error)),
            };
            let mut results: Vec<T> = Vec::new();
            loop {
                match channel.next().await? {
                    Event::Data(data) => {
                        let batch: Vec<T> =
                            cofferdam_protocol::decode(&data).map_err(|error| LinkEnd::Protocol(error.to_string()))?;
                        if (results.len() + batch.len()) as u64 > max || !batch.iter().all(is_sound) {
                            return Ok(Err(unexpected()));
                        }
                        results.extend(batch);
                    }
                    Event::Reply(Reply::Searched { truncated, files, skipped }) => {
                        return Ok(Ok(Found { results, truncated, files, skipped }));
                    }
                    Event::Reply(Reply::Fault(fault)) => return Ok(Err(fault.into())),
                    _ => return Ok(Err(unexpected())),
                }
            }
        })
        .await
    }
}

fn check_count(name: &str, value: u64, max: u64) -> Result<()> {
    if value > max {
        return Err(Error::invalid(format!("{name} must be at most {max}, not {value}")).with(name, value));
    }
    Ok(())
}

pub(crate) fn check_patterns(name: &str, patterns: &[String]) -> Result<()> {
    if patterns.len() > MAX_PATTERNS {
        return Err(Error::invalid(format!("{name} has {} patterns, more than {MAX_PATTERNS}", patterns.len())));
    }
    match patterns.iter().find(|pattern| pattern.is_empty() || pattern.len() > MAX_PATTERN) {
        Some(pattern) if pattern.is_empty() => Err(Error::invalid(format!("{name} has an empty pattern"))),
        Some(_) => Err(Error::invalid(format!("{name} has a pattern of more than {MAX_PATTERN} bytes"))),
        None => Ok(()),
    }
}

/// Patterns for names hold from the folder down.
pub(crate) fn leads_out(pattern: &str) -> bool {
    pattern.starts_with('/') || pattern.split('/').any(|part| part == "..")
}
