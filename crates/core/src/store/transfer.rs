//! Stage and publish: files between a sandbox and the store, piece by piece through the host.
//!
//! Data is counted and hashed on the way. The target appears only when it is complete and verified.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use sha2::{Digest as _, Sha256};

use super::{Digest, Store, Unfinished};
use crate::guest::WriteRequest;
use crate::id::hex;
use crate::id::random_id;
use crate::sandbox::Sandbox;
use crate::{Error, ErrorCode, Result};

/// An object to stage into a sandbox.
#[derive(Debug, Clone)]
pub struct StageRequest {
    /// The object's name.
    pub key: String,
    /// The file to write.
    pub file: WriteRequest,
    /// Expected SHA-256, in hexadecimal.
    pub sha256: Option<String>,
    /// A larger object is an error.
    pub max_bytes: Option<u64>,
}

/// A file that was staged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Staged {
    /// Absolute.
    pub path: String,
    /// Its size in bytes.
    pub size: u64,
    /// In hexadecimal.
    pub sha256: String,
}

/// An object that was published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// Its name, without the store's prefix.
    pub key: String,
    /// Its size in bytes.
    pub size: u64,
    /// In hexadecimal.
    pub sha256: String,
}

impl Sandbox {
    /// Copies an object from the store into the sandbox. The file appears complete, or not at all.
    pub async fn stage(&self, request: &StageRequest) -> Result<Staged> {
        let store = self.store()?;
        let expected = request.sha256.as_deref().map(parse_digest).transpose()?;
        store.unless_closed(self.stage_from(store, request, expected)).await
    }

    /// Copies a file of the sandbox to the store; by default under a generated name.
    pub async fn publish(&self, path: &str, key: Option<&str>, max_bytes: Option<u64>) -> Result<Published> {
        let store = self.store()?;
        let key = key.map_or_else(|| random_id("files/f_"), str::to_owned);
        store.unless_closed(self.publish_to(store, path, key, max_bytes)).await
    }

    async fn stage_from(&self, store: &Store, request: &StageRequest, expected: Option<Digest>) -> Result<Staged> {
        let mut object = store.bucket().await?.download(&store.key(&request.key)?).await?;
        if let Some(most) = request.max_bytes
            && object.size > most
        {
            return Err(too_large(&request.key, most).with("key", request.key.as_str()).with("sizeBytes", object.size));
        }
        let mut file = Arc::clone(self).file_writer(&request.file).await?;
        let mut sum = Sum::default();
        while let Some(piece) = object.pieces.next().await.transpose()? {
            sum.add(&piece);
            if sum.size > object.size {
                break;
            }
            file.write(piece).await?;
        }
        let (size, digest) = sum.finish();
        let wrong = |what: &str, expected: String, actual: String| {
            let key = request.key.as_str();
            let message = format!(
                "the object {key:?} has the {what} {actual} and should have {expected}; \
                 it was not staged as {:?}",
                request.file.path
            );
            Error::new(ErrorCode::Protocol, message).with("key", key).with("expected", expected).with("actual", actual)
        };
        if size != object.size {
            return Err(wrong("size", object.size.to_string(), size.to_string()));
        }
        for announced in [object.digest, expected].into_iter().flatten() {
            if announced != digest {
                return Err(wrong("SHA-256", hex(&announced), hex(&digest)));
            }
        }
        let (path, written) = file.finish().await?;
        if written != size {
            let message = format!("the sandbox wrote {written} bytes to \"{path}\" of the {size} it was sent");
            return Err(Error::new(ErrorCode::Protocol, message));
        }
        Ok(Staged { path, size, sha256: hex(&digest) })
    }

    async fn publish_to(&self, store: &Store, path: &str, key: String, max_bytes: Option<u64>) -> Result<Published> {
        let name = store.key(&key)?;
        // One more than allowed, to detect that there is more.
        let limit = max_bytes.map_or(u64::MAX, |most| most.saturating_add(1));
        let mut file = Arc::clone(self).file_reader(path, 0, limit).await?;
        // Read first: an unreadable file needs no request to the store.
        let mut next = file.next().await?;
        let mut object = Unfinished::new(store.bucket().await?.upload(&name).await?, store);
        let mut sum = Sum::default();
        while let Some(piece) = next {
            sum.add(&piece);
            if let Some(most) = max_bytes
                && sum.size > most
            {
                return Err(too_large(path, most).with("path", path));
            }
            object.write(piece).await?;
            next = file.next().await?;
        }
        let (size, digest) = sum.finish();
        object.finish(size, digest).await?;
        Ok(Published { key, size, sha256: hex(&digest) })
    }
}

/// Byte count and hash so far.
#[derive(Default)]
struct Sum {
    size: u64,
    hash: Sha256,
}

impl Sum {
    fn add(&mut self, bytes: &Bytes) {
        self.size += bytes.len() as u64;
        self.hash.update(bytes);
    }

    fn finish(self) -> (u64, Digest) {
        (self.size, self.hash.finalize().into())
    }
}

fn too_large(what: &str, most: u64) -> Error {
    let message = format!("{what:?} has more than the {most} bytes allowed; raise maxBytes if that is meant");
    Error::new(ErrorCode::LimitExceeded, message).with("maxBytes", most)
}

fn parse_digest(text: &str) -> Result<Digest> {
    let bad = || Error::invalid(format!("sha256 must be 64 hexadecimal digits, not {text:?}"));
    if text.len() != 64 || !text.is_ascii() {
        return Err(bad());
    }
    let mut digest = [0; 32];
    for (byte, digits) in digest.iter_mut().zip(text.as_bytes().chunks(2)) {
        let digits = std::str::from_utf8(digits).map_err(|_| bad())?;
        // Not from_str_radix alone: it accepts a sign.
        *byte = u8::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+')).ok_or_else(bad)?;
    }
    Ok(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_read_as_they_are_written() {
        let digest: Digest = std::array::from_fn(|index| index as u8 * 7);
        assert_eq!(parse_digest(&hex(&digest)).unwrap(), digest);
        assert_eq!(parse_digest(&hex(&digest).to_uppercase()).unwrap(), digest);
        for bad in ["", "00", &"g".repeat(64), &"+0".repeat(32), &"ä".repeat(32)] {
            assert_eq!(parse_digest(bad).unwrap_err().code(), Some(ErrorCode::InvalidArgument));
        }
    }
}
