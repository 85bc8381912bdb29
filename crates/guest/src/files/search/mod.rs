//! Searches: names by glob patterns, and lines by regular expressions.
//!
//! A search runs in slices, each a trip to a helper thread, so it ends soon after its caller is gone, and shares the few
//! threads. Results are sent as they are found: it needs memory for a batch, and for the longest line. It follows no symbolic
//! link below its folder.

mod globs;
mod lines;
mod matches;
mod names;
mod pattern;

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use cofferdam_protocol::{Fault, Filter, Glob, Grep, Kind, Reply};
use cofferdam_tree::{Folder, Rules};
use serde::Serialize;

use self::matches::Matches;
use self::names::Names;
use super::listing::batch;
use super::place::{Place, blocking};
use super::transfer::rules;
use crate::channel::Channel;
use crate::requests::Failure;

/// The duration of a slice.
const SLICE: Duration = Duration::from_millis(20);

/// No other call would take longer paths.
const MAX_PATH: usize = 4095;

/// The result of a step of a search.
#[derive(Debug, PartialEq)]
enum Step<T> {
    Found(T),
    /// Nothing yet: time to check the clock.
    Busy,
    End,
}

trait Search: Sized + Send + 'static {
    type Found: Serialize;

    fn step(&mut self) -> Step<Self::Found>;

    /// Its largest encoded size.
    fn weight(found: &Self::Found) -> usize;

    fn reply(&self) -> Reply;
}

pub(crate) async fn glob(place: Place, workdir: &Place, glob: Glob, channel: &Channel) -> Result<Reply, Failure> {
    let workdir = workdir.path.clone();
    let names = blocking(move || {
        let rules = rules_at(&place.path, &workdir, &glob.filter)?;
        Names::new(place, &glob, rules)
    });
    run(names.await?, channel).await
}

pub(crate) async fn grep(place: Place, workdir: &Place, grep: Grep, channel: &Channel) -> Result<Reply, Failure> {
    let workdir = workdir.path.clone();
    let matches = blocking(move || {
        let rules = rules_at(&place.path, &workdir, &grep.filter)?;
        Matches::new(place, grep, rules)
    });
    run(matches.await?, channel).await
}

async fn run<S: Search>(mut search: S, channel: &Channel) -> Result<Reply, Failure> {
    loop {
        let (next, encoded, over) = blocking(move || {
            let until = Instant::now() + SLICE;
            let mut over = false;
            let found = std::iter::from_fn(|| {
                loop {
                    match search.step() {
                        Step::Found(found) => return Some(found),
                        Step::Busy if Instant::now() < until => {}
                        Step::Busy => return None,
                        Step::End => {
                            over = true;
                            return None;
                        }
                    }
                }
            });
            let encoded = batch(found, S::weight)?;
            Ok((search, encoded, over))
        })
        .await?;
        search = next;
        if let Some(encoded) = encoded {
            channel.send(Kind::Data, encoded).await?;
        }
        if over {
            return Ok(search.reply());
        }
    }
}

/// The rules of the folders above apply too: up to the root of the repository, or to the workdir.
fn rules_at(root: &Path, workdir: &Path, filter: &Filter) -> Result<Rules, Fault> {
    let mut rules = rules(filter)?;
    let (Ok(root), Ok(workdir)) = (root.canonicalize(), workdir.canonicalize()) else { return Ok(rules) };
    let is_top = |folder: &Path| folder == workdir || folder.join(".git").symlink_metadata().is_ok();
    let Some(height) = root.ancestors().position(is_top) else { return Ok(rules) };
    for above in root.ancestors().take(height + 1).skip(1) {
        if let (Ok(folder), Ok(down)) = (Folder::open(above), root.strip_prefix(above)) {
            rules.inherit(&folder, down.as_os_str().as_bytes());
        }
    }
    Ok(rules)
}

/// The absolute path of what is below a root.
fn below(root: &Path, path: &[u8]) -> Vec<u8> {
    let root = root.as_os_str().as_bytes();
    [if root == b"/" { b"" } else { root }, path].join(&b'/')
}
