//! Digests: they name content, and prove that it is what was asked for.

use std::fmt;
use std::io::{self, Read};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::error::{ImageError, ImageErrorKind};

/// The SHA-256 of some content, as `sha256:<64 hexadecimal digits>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Digest(String);

impl Digest {
    pub(crate) fn of(content: &[u8]) -> Digest {
        Digest::from_hash(Sha256::digest(content))
    }

    fn from_hash(hash: impl AsRef<[u8]>) -> Digest {
        Digest(hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Only digits: safe as a file's name.
    pub(crate) fn hex(&self) -> &str {
        &self.0
    }

    /// The short form that docker shows for layers.
    pub(crate) fn short(&self) -> &str {
        &self.0[..12]
    }

    pub(crate) fn check(&self, found: &Digest, what: &str) -> Result<(), ImageError> {
        if self == found {
            return Ok(());
        }
        let message = format!(
            "{what} should be {self} and is {found}: it was changed or damaged on its way. Nothing of it was kept; try \
             again, and if it stays so, do not trust its source"
        );
        Err(ImageError::new(ImageErrorKind::DigestMismatch, message))
    }
}

impl FromStr for Digest {
    type Err = String;

    fn from_str(text: &str) -> Result<Digest, String> {
        let (kind, hex) = text.split_once(':').ok_or_else(|| format!("{text:?} is not a digest"))?;
        if kind != "sha256" {
            return Err(format!("digests of the kind {kind:?} are not supported, only sha256"));
        }
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        match hex.len() == 64 && hex.bytes().all(is_digit) {
            true => Ok(Digest(hex.to_owned())),
            false => Err(format!("{text:?} is not a digest: sha256 takes 64 hexadecimal digits in lower case")),
        }
    }
}

impl TryFrom<String> for Digest {
    type Error = String;

    fn try_from(text: String) -> Result<Digest, String> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> String {
        digest.to_string()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "sha256:{}", self.0)
    }
}

/// Hashes content as it comes.
#[derive(Default)]
pub(crate) struct Hasher(Sha256);

impl Hasher {
    pub(crate) fn update(&mut self, content: &[u8]) {
        self.0.update(content);
    }

    pub(crate) fn finish(self) -> Digest {
        Digest::from_hash(self.0.finalize())
    }
}

/// A reader that hashes all it reads.
pub(crate) struct Hashing<R> {
    inner: R,
    hasher: Hasher,
}

impl<R: Read> Hashing<R> {
    pub(crate) fn new(inner: R) -> Hashing<R> {
        Hashing { inner, hasher: Hasher::default() }
    }

    pub(crate) fn finish(self) -> Digest {
        self.hasher.finish()
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.hasher.update(&buffer[..count]);
        Ok(count)
    }
}
