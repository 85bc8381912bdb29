//! Lines that match, in one file or in all files below a folder.

use std::fs::File;
use std::io::{Read, Take};
use std::os::unix::ffi::OsStrExt;

use cofferdam_protocol::{Fault, Grep, Hit, MAX_CONTEXT, Reply};
use cofferdam_tree::{Folder, Kind, Rules, Step as WalkStep, Walk};

use super::globs::{Globs, Reach};
use super::lines::{Around, Lines};
use super::pattern::Pattern;
use super::{MAX_PATH, Search, Step, below};
use crate::files::content::open_regular;
use crate::files::place::Place;

pub(super) struct Matches {
    place: Place,
    /// Absent for one file.
    walk: Option<Walk>,
    include: Option<Globs>,
    pattern: Pattern,
    around: Around,
    rest: u64,
    max_per_file: u64,
    max_file_bytes: u64,
    open: Option<Open>,
    files: u64,
    skipped: u64,
    truncated: bool,
}

/// The file that is being searched.
struct Open {
    path: Vec<u8>,
    lines: Lines<Take<File>>,
}

impl Matches {
    pub(super) fn new(place: Place, grep: Grep, rules: Rules) -> Result<Matches, Fault> {
        let pattern = Pattern::new(&grep.pattern, grep.literal, grep.ignore_case)?;
        let include = (!grep.include.is_empty()).then(|| Globs::new(&grep.include, Reach::Anywhere)).transpose()?;
        let mut matches = Matches {
            place,
            walk: None,
            include,
            pattern,
            around: Around {
                before: grep.before.min(MAX_CONTEXT) as usize,
                after: grep.after.min(MAX_CONTEXT) as usize,
            },
            rest: grep.max_matches,
            max_per_file: grep.max_per_file,
            max_file_bytes: grep.max_file_bytes,
            open: None,
            files: 0,
            skipped: 0,
            truncated: false,
        };
        let Matches { place, .. } = &matches;
        if place.path.is_dir() {
            let walk = Folder::open(&place.path).and_then(|root| Walk::new(root, rules));
            matches.walk = Some(walk.map_err(|error| place.fault("search", &error))?);
        } else {
            let (path, file) = (place.path.as_os_str().as_bytes().to_vec(), open_regular(place)?);
            matches.begin(path, Some(file));
        }
        Ok(matches)
    }

    /// Opens a file, or counts it as skipped.
    fn begin(&mut self, path: Vec<u8>, file: Option<File>) {
        self.open = file.filter(|file| self.is_wanted(file)).and_then(|file| {
            let limit = self.rest.min(self.max_per_file);
            let lines = Lines::new(file.take(self.max_file_bytes), self.around, limit).ok()??;
            Some(Open { path, lines })
        });
        match self.open {
            Some(_) => self.files += 1,
            None => self.skipped += 1,
        }
    }

    fn is_wanted(&self, file: &File) -> bool {
        file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() <= self.max_file_bytes)
    }

    fn step_in(&mut self, mut open: Open) -> Step<Hit> {
        match open.lines.step(&self.pattern) {
            Ok(Step::Found(hit)) => {
                self.rest -= 1;
                let hit = Hit { path: open.path.clone(), ..hit };
                self.open = Some(open);
                Step::Found(hit)
            }
            Ok(Step::Busy) => {
                self.open = Some(open);
                Step::Busy
            }
            Ok(Step::End) if open.lines.has_more() => {
                self.truncated = true;
                if self.rest == 0 { Step::End } else { Step::Busy }
            }
            Ok(Step::End) => Step::Busy,
            // Earlier matches in it stand.
            Err(_) => {
                self.files -= 1;
                self.skipped += 1;
                Step::Busy
            }
        }
    }
}

impl Search for Matches {
    type Found = Hit;

    fn step(&mut self) -> Step<Hit> {
        if let Some(open) = self.open.take() {
            return self.step_in(open);
        }
        let Some(walk) = &mut self.walk else { return Step::End };
        match walk.next() {
            None => Step::End,
            Some(WalkStep::Entry(name, Kind::File)) => {
                let path = walk.path(&name);
                if self.include.as_ref().is_none_or(|include| include.matches(&path, false)) {
                    let file = walk.folder().and_then(|folder| folder.read(&name).ok());
                    let path = below(&self.place.path, &path);
                    let file = file.filter(|_| path.len() <= MAX_PATH);
                    self.begin(path, file);
                }
                Step::Busy
            }
            Some(_) => Step::Busy,
        }
    }

    fn weight(hit: &Hit) -> usize {
        let around = hit.before.iter().chain(&hit.after).map(|line| 2 + line.len()).sum::<usize>();
        30 + hit.path.len() + hit.text.len() + around
    }

    fn reply(&self) -> Reply {
        Reply::Searched { truncated: self.truncated, files: self.files, skipped: self.skipped }
    }
}
