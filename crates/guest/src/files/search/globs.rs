//! Patterns for paths.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use cofferdam_protocol::{Fault, FaultCode};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::requests::fault;

/// Where a pattern without a `/` applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// In the root only, as in a shell.
    Root,
    /// Anywhere below it, as in a `.gitignore`.
    Anywhere,
}

/// Any of several patterns.
pub(super) struct Globs {
    all: GlobSet,
    /// Those that end in a `/`.
    folders: GlobSet,
}

impl Globs {
    pub(super) fn new(patterns: &[String], reach: Reach) -> Result<Globs, Fault> {
        let (mut all, mut folders) = (GlobSetBuilder::new(), GlobSetBuilder::new());
        for pattern in patterns {
            let text = pattern.strip_prefix("./").unwrap_or(pattern);
            let (text, is_folder) = text.strip_suffix('/').map_or((text, false), |text| (text, true));
            let anywhere = reach == Reach::Anywhere && !text.contains('/');
            let text = if anywhere { format!("**/{text}") } else { text.trim_start_matches('/').to_owned() };
            let glob = GlobBuilder::new(&text).literal_separator(true).build().map_err(not_a_pattern)?;
            if is_folder {
                folders.add(glob)
            } else {
                all.add(glob)
            };
        }
        let build = |builder: GlobSetBuilder| builder.build().map_err(not_a_pattern);
        Ok(Globs { all: build(all)?, folders: build(folders)? })
    }

    /// Whether a path below the root matches.
    pub(super) fn matches(&self, path: &[u8], is_folder: bool) -> bool {
        let path = OsStr::from_bytes(path);
        self.all.is_match(path) || (is_folder && self.folders.is_match(path))
    }
}

fn not_a_pattern(error: globset::Error) -> Fault {
    fault(FaultCode::InvalidArgument, format!("not a pattern for paths: {error}"))
}
