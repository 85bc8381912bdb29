//! Reads lines, replaces text, and writes many small files at once.

use bytes::Bytes;
use cofferdam_protocol::{Content, Replace, Reply, Request};

use super::channel::unexpected;
use super::connection::Guest;
use super::files::{FileContent, send_all};
use crate::{Error, Result};

/// Both texts of a replacement together: they are sent in one message.
const MAX_TEXT: usize = 2 * 1024 * 1024;

/// Paths and sizes of one request: they are sent in one message.
const MAX_PATHS: usize = 1024 * 1024;

/// How many line numbers an error lists when a text does not occur as often as expected.
const MAX_LINES: usize = 10;

/// A text replacement in a file.
#[derive(Debug, Clone, Default)]
pub struct ReplaceRequest {
    /// The file.
    pub path: String,
    /// The text to find.
    pub search: String,
    /// The text to put in its place.
    pub replacement: String,
    /// Replace all occurrences; otherwise there must be exactly one.
    pub all: bool,
    /// Exact number of occurrences to replace.
    pub expected: Option<u64>,
}

impl Guest {
    /// Reads lines `from` to `to`, counted from 1, inclusive; past the end the result is empty.
    pub async fn read_lines(&self, path: &str, from: u64, to: u64, limit: u64) -> Result<FileContent> {
        self.admit(path).await?;
        if from == 0 {
            return Err(Error::invalid("fromLine must be at least 1: lines are counted from 1"));
        }
        if to < from {
            return Err(Error::invalid(format!("toLine {to} is before fromLine {from}")));
        }
        self.read_content(&Request::ReadLines { path: path.to_owned(), from, to, limit }, 0, limit).await
    }

    /// Replaces text; returns the file's absolute path and the number of replacements. Never retried: it is not
    /// idempotent.
    pub async fn replace(&self, replace: &ReplaceRequest) -> Result<(String, u64)> {
        self.admit(&replace.path).await?;
        check_replace(replace)?;
        let request = &Request::Replace(Replace {
            path: replace.path.clone(),
            search: replace.search.clone(),
            replacement: replace.replacement.clone(),
            all: replace.all,
            expected: replace.expected,
        });
        let reply = self.with_link_once(|link| async move {
            match link.request(request, 1)? {
                Ok(mut channel) => channel.reply().await,
                Err(error) => Ok(Err(error)),
            }
        });
        match reply.await? {
            Reply::Replaced { path, count } => Ok((path, count)),
            Reply::Occurs { count, lines } => Err(refusal(replace, count, &lines)),
            _ => Err(unexpected()),
        }
    }

    /// Writes several files, each atomically, in as few round trips as possible. Stops at the first that cannot be
    /// written.
    pub async fn write_many(&self, files: &[(String, Bytes)]) -> Result<()> {
        self.admit_files(files.len())?;
        for (path, content) in files {
            self.admit(path).await?;
            self.files.admit_size(path, content.len() as u64)?;
        }
        let mut rest = files;
        while !rest.is_empty() {
            let mut taken = 0;
            let full = rest.iter().position(|(path, _)| {
                taken += path.len() + 16;
                taken > MAX_PATHS
            });
            let (now, later) = rest.split_at(full.unwrap_or(rest.len()));
            rest = later;
            let describe =
                |(path, content): &(String, Bytes)| Content { path: path.clone(), size: content.len() as u64 };
            let request = &Request::WriteMany(now.iter().map(describe).collect());
            let contents = &now.iter().map(|(_, content)| content.clone()).collect::<Vec<_>>();
            match self.with_link(|link| send_all(link, request, contents)).await? {
                Reply::Done => {}
                _ => return Err(unexpected()),
            }
        }
        Ok(())
    }
}

fn check_replace(replace: &ReplaceRequest) -> Result<()> {
    if replace.search.is_empty() {
        return Err(Error::invalid("search is empty: give the text to replace, or write() the whole file"));
    }
    if replace.expected == Some(0) {
        return Err(Error::invalid("expected must be at least 1: with 0 there is nothing to replace"));
    }
    if replace.search.len() + replace.replacement.len() > MAX_TEXT {
        let message =
            format!("search and replacement have more than {MAX_TEXT} bytes together; write() the whole file");
        return Err(Error::invalid(message));
    }
    Ok(())
}

fn refusal(replace: &ReplaceRequest, count: u64, lines: &[u64]) -> Error {
    let lines = &lines[..lines.len().min(MAX_LINES)];
    let shown: String = replace.search.chars().take(60).collect();
    let what = format!("{shown:?}{} ", if shown.len() < replace.search.len() { "…" } else { "" });
    let times = |count: u64| if count == 1 { "once".to_owned() } else { format!("{count} times") };
    let places = || format!("occurs {}, in {}", times(count), named(lines, count));
    let message = match (count, replace.expected) {
        (0, _) => format!(
            "{what}does not occur in \"{}\": read it again, and give the text just as it is there, with its spaces and line \
             ends",
            replace.path
        ),
        (_, Some(expected)) => {
            format!("{what}{}, not {} as expected: look at these places again", places(), times(expected))
        }
        _ => format!("{what}{}: give more of the text around it, or pass all: true", places()),
    };
    Error::invalid(message).with("path", replace.path.as_str()).with("count", count).with("lines", lines.to_vec())
}

/// "line 4", "lines 4, 9 and 20", "lines 4, 9, 20 and further ones".
fn named(lines: &[u64], count: u64) -> String {
    let mut names: Vec<String> = lines.iter().map(u64::to_string).collect();
    names.dedup();
    if count > lines.len() as u64 {
        names.push("further ones".to_owned());
    }
    match names.split_last() {
        Some((last, [])) => format!("line {last}"),
        Some((last, first)) => format!("lines {} and {last}", first.join(", ")),
        None => "no line".to_owned(),
    }
}
