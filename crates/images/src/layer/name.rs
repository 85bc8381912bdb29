//! The meaning of names in a layer.

use super::tarball::told;
use crate::error::{ImageError, Result};

const WHITEOUT: &[u8] = b".wh.";
const OPAQUE: &[u8] = b".wh..wh..opq";

/// What only aufs needed.
const AUFS: &[u8] = b".wh..wh.";

/// What the name of an entry means.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Name {
    /// An entry at this path; the empty path is the root.
    Entry(Vec<u8>),
    /// Removes this path from the layers below.
    Removed(Vec<u8>),
    /// Hides what the layers below have in this folder.
    Opaque(Vec<u8>),
    /// Nothing.
    Nothing,
}

impl Name {
    pub(crate) fn parse(raw: &[u8]) -> Result<Name> {
        let path = clean(raw)?;
        let parts: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
        let last = parts[parts.len() - 1];
        let folder = || path[..path.len().saturating_sub(last.len() + 1)].to_vec();
        if last != OPAQUE && parts.iter().any(|part| part.starts_with(AUFS)) {
            return Ok(Name::Nothing);
        }
        if parts[..parts.len() - 1].iter().any(|part| part.starts_with(WHITEOUT)) {
            let message = format!("{} is below a name that means a removal", told(raw));
            return Err(ImageError::invalid_layer(message));
        }
        if last == OPAQUE {
            return Ok(Name::Opaque(folder()));
        }
        let Some(removed) = last.strip_prefix(WHITEOUT) else { return Ok(Name::Entry(path)) };
        if matches!(removed, b"" | b"." | b"..") {
            return Err(ImageError::invalid_layer(format!("{} is a removal without a name", told(raw))));
        }
        let mut path = folder();
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(removed);
        Ok(Name::Removed(path))
    }
}

/// A path below the root, without `.`, doubled slashes and a slash in front.
pub(crate) fn clean(raw: &[u8]) -> Result<Vec<u8>> {
    if raw.contains(&0) {
        return Err(ImageError::invalid_layer(format!("the name {} has a NUL in it", told(raw))));
    }
    let mut path = Vec::with_capacity(raw.len());
    for part in raw.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b".")) {
        if part == b".." {
            return Err(ImageError::invalid_layer(format!("the name {} leads out of its folder", told(raw))));
        }
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(part);
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(path: &str) -> Name {
        Name::Entry(path.into())
    }

    #[test]
    fn a_name_says_what_is_there_and_what_is_gone() {
        for (raw, name) in [
            ("./", entry("")),
            ("/", entry("")),
            ("/etc/passwd", entry("etc/passwd")),
            ("./a//b/./c/", entry("a/b/c")),
            ("a..b/...", entry("a..b/...")),
            (".wh.x", Name::Removed("x".into())),
            ("a/.wh.b", Name::Removed("a/b".into())),
            ("a/.wh..b", Name::Removed("a/.b".into())),
            (".wh..wh..opq", Name::Opaque("".into())),
            ("a/b/.wh..wh..opq", Name::Opaque("a/b".into())),
            (".wh..wh.plnk", Name::Nothing),
            (".wh..wh.plnk/1.2", Name::Nothing),
        ] {
            assert_eq!(Name::parse(raw.as_bytes()).unwrap(), name, "{raw}");
        }
        for raw in ["..", "a/../b", "/..", "a/..", ".wh.", ".wh..", "a/.wh...", "a\0b", ".wh.a/b"] {
            assert!(Name::parse(raw.as_bytes()).is_err(), "{raw}");
        }
    }

    proptest! {
        #[test]
        fn no_name_leads_out_or_means_two_things(raw in prop::collection::vec(
            prop_oneof![Just(b'/'), Just(b'.'), Just(0), Just(b'w'), Just(b'h'), any::<u8>()], 0..40,
        )) {
            if let Ok(Name::Entry(path) | Name::Removed(path) | Name::Opaque(path)) = Name::parse(&raw) {
                let parts: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
                let is_plain = |part: &&[u8]| !matches!(*part, b"" | b"." | b"..") && !part.contains(&0);
                prop_assert!(path.is_empty() || parts.iter().all(is_plain), "{path:?}");
                prop_assert_eq!(clean(&path).unwrap(), path);
            }
        }
    }
}
