//! Object names: validated, and confined to the store's prefix.

use crate::{Error, Result};

/// The limit of S3. NATS allows more; a folder allows less per segment.
const MAX_KEY: usize = 1024;

/// A name that is valid in every store, with the store's prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ObjectKey {
    whole: String,
    /// Where the caller's name starts.
    given: usize,
}

impl ObjectKey {
    pub(super) fn new(prefix: &str, key: &str) -> Result<ObjectKey> {
        check("key", key)?;
        let prefix = prefix.trim_end_matches('/');
        if prefix.is_empty() {
            return Ok(ObjectKey { whole: key.to_owned(), given: 0 });
        }
        check("prefix", prefix)?;
        let whole = format!("{prefix}/{key}");
        if whole.len() > MAX_KEY {
            return Err(refused("key", key, &format!("with the prefix it is longer than {MAX_KEY} bytes")));
        }
        Ok(ObjectKey { given: whole.len() - key.len(), whole })
    }

    /// The name in the store, with its prefix.
    pub(super) fn as_str(&self) -> &str {
        &self.whole
    }

    /// The caller's name, without the prefix.
    pub(super) fn given(&self) -> &str {
        &self.whole[self.given..]
    }
}

fn check(what: &str, key: &str) -> Result<()> {
    let problem = if key.is_empty() {
        "it is empty"
    } else if key.len() > MAX_KEY {
        "it is longer than 1024 bytes"
    } else if key.contains(|c: char| c.is_ascii_control()) {
        "it holds a control character"
    } else if key.starts_with('/') {
        "it begins with a slash"
    } else if key.split('/').any(str::is_empty) {
        "a part between slashes is empty"
    } else if key.split('/').any(|part| part == "." || part == "..") {
        "a part between slashes is \".\" or \"..\""
    } else {
        return Ok(());
    };
    Err(refused(what, key, problem))
}

fn refused(what: &str, key: &str, problem: &str) -> Error {
    let shown: String = key.chars().take(80).collect();
    Error::invalid(format!("{shown:?} is not a {what} of an object store: {problem}")).with(what, shown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorCode;

    #[test]
    fn takes_any_text_that_names_something() {
        for key in ["a", "a/b.txt", "files/f_01", "日本語/…/ü 🙂", "a b#c%2e?*", "..a/b..", "#1"] {
            assert_eq!(ObjectKey::new("", key).unwrap().as_str(), key);
        }
        assert!(ObjectKey::new("", &"ä".repeat(512)).is_ok());
    }

    #[test]
    fn refuses_what_is_no_name_or_leaves_the_prefix() {
        let long = "a".repeat(MAX_KEY + 1);
        for key in ["", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/./b", "a\0b", "a\nb", &long] {
            assert_eq!(ObjectKey::new("", key).unwrap_err().code(), Some(ErrorCode::InvalidArgument), "{key:?}");
            assert!(ObjectKey::new("under", key).is_err(), "{key:?}");
        }
        assert!(ObjectKey::new("under", &long[..MAX_KEY - 2]).is_err());
    }

    #[test]
    fn stays_under_its_prefix() {
        for prefix in ["tenant/7", "tenant/7/"] {
            let key = ObjectKey::new(prefix, "a/b").unwrap();
            assert_eq!((key.as_str(), key.given()), ("tenant/7/a/b", "a/b"));
        }
        for prefix in ["/tenant", "../tenant", "tenant//7"] {
            assert!(ObjectKey::new(prefix, "a").is_err(), "{prefix:?}");
        }
    }
}
