//! Which entries of a tree are left out: patterns of the caller, and the tree's own `.gitignore` files.

use std::io::Read;
use std::path::Path;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::folder::{Folder, os};

/// No sane `.gitignore` is longer.
const MAX_RULES: u64 = 1024 * 1024;

/// The caller's own patterns.
#[derive(Debug, Clone)]
pub struct Rules {
    exclude: Gitignore,
    gitignore: bool,
    /// Of the folders above the root, the nearest first, each with the way down from it.
    above: Vec<(Vec<u8>, Gitignore)>,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules { exclude: Gitignore::empty(), gitignore: false, above: Vec::new() }
    }
}

/// Why an entry is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    Excluded,
    Ignored,
}

impl Reason {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Reason::Excluded => "excluded",
            Reason::Ignored => "ignored by .gitignore",
        }
    }
}

impl Rules {
    /// `exclude` has the syntax of a `.gitignore` at the root; with `gitignore`, the tree's own rules apply too. Fails with
    /// the first invalid pattern, and why.
    pub fn new(exclude: &[String], gitignore: bool) -> Result<Rules, String> {
        let mut builder = GitignoreBuilder::new("");
        for pattern in exclude {
            builder.add_line(None, pattern).map_err(|error| format!("{pattern:?} is not a pattern: {error}"))?;
        }
        let exclude = builder.build().map_err(|error| error.to_string())?;
        Ok(Rules { exclude, gitignore, above: Vec::new() })
    }

    /// The rules of a folder above the root apply too, where the tree's own do. Call it for the nearest one first;
    /// `down` is the path from it to the root.
    pub fn inherit(&mut self, folder: &Folder, down: &[u8]) {
        if let Some(rules) = self.of(folder) {
            self.above.push((down.to_vec(), rules));
        }
    }

    /// The rules of a folder for what is below it.
    pub(crate) fn of(&self, folder: &Folder) -> Option<Gitignore> {
        if !self.gitignore {
            return None;
        }
        let file = folder.read(b".gitignore").ok()?;
        if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
            return None;
        }
        let mut text = Vec::new();
        file.take(MAX_RULES).read_to_end(&mut text).ok()?;
        let mut builder = GitignoreBuilder::new("");
        for line in String::from_utf8_lossy(&text).lines() {
            // As in git: an invalid line matches nothing.
            let _ = builder.add_line(None, line);
        }
        builder.build().ok().filter(|rules| !rules.is_empty())
    }

    /// `levels` are the rules of the folders from the root down to the entry's own, each with the length of its path.
    pub(crate) fn reason<'a>(
        &self,
        path: &[u8],
        is_dir: bool,
        levels: impl DoubleEndedIterator<Item = (usize, &'a Gitignore)>,
    ) -> Option<Reason> {
        if self.exclude.matched(Path::new(os(path)), is_dir).is_ignore() {
            return Some(Reason::Excluded);
        }
        for (length, rules) in levels.rev() {
            let below = if length == 0 { path } else { &path[length + 1..] };
            match rules.matched(Path::new(os(below)), is_dir) {
                Match::Ignore(_) => return Some(Reason::Ignored),
                Match::Whitelist(_) => return None,
                Match::None => {}
            }
        }
        for (down, rules) in &self.above {
            let below = [down, path].join(&b'/');
            match rules.matched(Path::new(os(&below)), is_dir) {
                Match::Ignore(_) => return Some(Reason::Ignored),
                Match::Whitelist(_) => return None,
                Match::None => {}
            }
        }
        None
    }
}
