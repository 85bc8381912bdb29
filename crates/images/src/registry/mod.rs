//! One repository of a registry: its manifests and its blobs, each checked against its digest before use.

mod auth;
mod download;
mod wire;

use std::path::PathBuf;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue, RANGE, USER_AGENT};
use hyper::{Response, StatusCode};
use serde::Deserialize;
use tokio::sync::Mutex;

use crate::credentials::{self, Credentials};
use crate::digest::Digest;
use crate::error::{ImageError, ImageErrorKind, Result};
use crate::manifest::{ACCEPTED, Descriptor, ImageManifest, Manifest, for_this_machine};
use crate::reference::Reference;
use auth::Challenge;
pub(crate) use wire::Wire;

/// The longest manifest that the specification requires registries to take.
const LONGEST_DOCUMENT: usize = 4 * 1024 * 1024;

/// Tries when a registry is busy or a connection breaks, and the pause before the next.
const TRIES: u32 = 4;
const PAUSE: Duration = Duration::from_millis(250);

pub(crate) struct Registry {
    wire: Wire,
    reference: Reference,
    config: Option<PathBuf>,
    /// The last accepted authorization.
    authorization: Mutex<Option<HeaderValue>>,
}

/// Whether there are credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Nothing,
    Credentials,
}

impl Registry {
    pub(crate) fn new(wire: Wire, reference: Reference, config: Option<PathBuf>) -> Registry {
        Registry { wire, reference, config, authorization: Mutex::default() }
    }

    /// The manifest of the image for this machine, and its digest.
    pub(crate) async fn manifest(&self) -> Result<(ImageManifest, Digest)> {
        let named = self.reference.manifest();
        let (content, digest) = self.document(&format!("manifests/{named}"), self.reference.digest.as_ref()).await?;
        let index = match Manifest::parse(&content)? {
            Manifest::Image(image) => return Ok((image, digest)),
            Manifest::Index(index) => index,
        };
        let chosen = for_this_machine(&index)?;
        let (content, digest) = self.document(&format!("manifests/{}", chosen.digest), Some(&chosen.digest)).await?;
        match Manifest::parse(&content)? {
            Manifest::Image(image) => Ok((image, digest)),
            Manifest::Index(_) => Err(ImageError::unsupported("its index lists another index, which is not supported")),
        }
    }

    /// A small blob.
    pub(crate) async fn small_blob(&self, descriptor: &Descriptor) -> Result<Vec<u8>> {
        let digest = &descriptor.digest;
        Ok(self.document(&format!("blobs/{digest}"), Some(digest)).await?.0)
    }

    async fn document(&self, path: &str, wanted: Option<&Digest>) -> Result<(Vec<u8>, Digest)> {
        let content = again(|| async {
            let response = self.get(path, None).await?;
            self.wire.body(response.into_body(), LONGEST_DOCUMENT, &self.url(path)).await
        });
        let content = content.await?;
        let digest = Digest::of(&content);
        if let Some(wanted) = wanted {
            wanted.check(&digest, &format!("{} from {}", path, self.reference.registry))?;
        }
        Ok((content, digest))
    }

    fn url(&self, path: &str) -> String {
        format!("{}/v2/{}/{path}", self.reference.origin(), self.reference.repository)
    }

    /// An answer that is one.
    async fn get(&self, path: &str, from: Option<u64>) -> Result<Response<Incoming>> {
        let url = self.url(path);
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static(if path.starts_with("manifests") { ACCEPTED } else { "*/*" }));
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("cofferdam/", env!("CARGO_PKG_VERSION"))));
        if let Some(range) = from.and_then(|from| HeaderValue::from_str(&format!("bytes={from}-")).ok()) {
            headers.insert(RANGE, range);
        }
        let known = self.authorization.lock().await.clone();
        if let Some(known) = known {
            headers.insert(AUTHORIZATION, known);
        }
        let response = self.wire.get(&url, &headers).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            return self.check(response, Shown::Nothing).await;
        }
        let Some(challenge) = Challenge::read(response.headers()) else {
            return self.check(response, Shown::Nothing).await;
        };
        let credentials = self.credentials().await?;
        let shown = if credentials.is_some() { Shown::Credentials } else { Shown::Nothing };
        let answer = challenge.answer(&self.wire, credentials.as_ref(), &self.reference.repository).await;
        let Some(authorization) = answer.map_err(|error| self.denied(error, shown))? else {
            return self.check(response, Shown::Nothing).await;
        };
        headers.insert(AUTHORIZATION, authorization.clone());
        *self.authorization.lock().await = Some(authorization);
        let response = self.wire.get(&url, &headers).await?;
        self.check(response, shown).await
    }

    async fn credentials(&self) -> Result<Option<Credentials>> {
        match &self.config {
            Some(config) => credentials::find(config, &self.reference).await,
            None => Ok(None),
        }
    }

    async fn check(&self, response: Response<Incoming>, shown: Shown) -> Result<Response<Incoming>> {
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let Reference { registry, .. } = &self.reference;
        let said = self.wire.body(response.into_body(), 64 * 1024, registry).await.unwrap_or_default();
        let said = said_in(&said).unwrap_or_else(|| format!("status {}", status.as_u16()));
        let (kind, message) = match status {
            StatusCode::NOT_FOUND => {
                (ImageErrorKind::NotFound, format!("{registry} does not have it ({said}). Check the name and the tag"))
            }
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                return Err(self.denied(ImageError::new(ImageErrorKind::Unauthorized, said), shown));
            }
            StatusCode::TOO_MANY_REQUESTS => (
                ImageErrorKind::RateLimited,
                format!(
                    "{registry} limits the rate of requests ({said}). Wait, or log in with docker login {registry}"
                ),
            ),
            _ => (
                ImageErrorKind::Unreachable,
                format!("{registry} answers {} ({said}). Try again later, or ask its administrator", status.as_u16()),
            ),
        };
        Err(ImageError::new(kind, message))
    }

    fn denied(&self, error: ImageError, shown: Shown) -> ImageError {
        if error.kind != ImageErrorKind::Unauthorized {
            return error;
        }
        let registry = &self.reference.registry;
        let config =
            self.config.as_ref().map_or("docker's configuration".to_owned(), |path| path.display().to_string());
        let message = match shown {
            Shown::Credentials => format!(
                "{registry} does not let the user of {config} have it ({}). Check that the account may pull it, and log in \
                 again with docker login {registry}",
                error.message
            ),
            Shown::Nothing => format!(
                "{registry} has no such public image ({}), and there are no credentials for it in {config}. Check the name, or \
                 log in with docker login {registry}",
                error.message
            ),
        };
        ImageError::new(ImageErrorKind::Unauthorized, message)
    }
}

/// Retries what may succeed later.
async fn again<T, F: Future<Output = Result<T>>>(mut attempt: impl FnMut() -> F) -> Result<T> {
    let mut tries = 0;
    loop {
        tries += 1;
        match attempt().await {
            Err(error) if error.kind == ImageErrorKind::Unreachable && tries < TRIES => {
                tokio::time::sleep(PAUSE * 2_u32.pow(tries - 1)).await;
            }
            outcome => return outcome,
        }
    }
}

/// The registry's own error message, on one line.
fn said_in(content: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Answer {
        errors: Vec<Fault>,
    }
    #[derive(Deserialize)]
    struct Fault {
        code: Option<String>,
        message: Option<String>,
    }
    let answer: Answer = serde_json::from_slice(content).ok()?;
    let Fault { code, message } = answer.errors.into_iter().next()?;
    let said = message.filter(|message| !message.is_empty()).or(code)?;
    Some(said.chars().filter(|letter| !letter.is_control()).take(300).collect())
}
