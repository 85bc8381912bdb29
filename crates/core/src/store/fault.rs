//! Store errors with public codes and without secrets.

use std::time::Duration;

use super::key::ObjectKey;
use super::options::{Secret, StoreKind, StoreOptions};
use crate::error::Source;
use crate::{Error, ErrorCode, Result};

/// How long a store may take to answer.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);

/// The most text to quote from a server.
const MAX_MESSAGE: usize = 1000;

/// Shorter secrets would match ordinary words.
const MIN_SECRET: usize = 4;

/// The store's display name, and the secrets to remove from messages.
#[derive(Clone)]
pub(super) struct Faults {
    store: &'static str,
    /// Its address, without credentials.
    place: Vec<String>,
    secrets: Vec<Secret>,
}

impl Faults {
    pub(super) fn new(options: &StoreOptions) -> Faults {
        let (store, place, secrets): (_, _, Vec<Option<&Secret>>) = match &options.kind {
            StoreKind::Nats(nats) => {
                let servers = nats.servers.iter().map(|server| without_user(server.reveal())).collect();
                ("nats", servers, vec![nats.password.as_ref(), nats.token.as_ref()])
            }
            StoreKind::S3(s3) => {
                let place = s3.endpoint.as_deref().map_or_else(|| s3.region.clone(), without_user);
                let keys = [Some(&s3.access_key_id), Some(&s3.secret_access_key), s3.session_token.as_ref()];
                ("s3", vec![place], keys.to_vec())
            }
            StoreKind::Folder(path) => ("folder", vec![path.clone()], Vec::new()),
            StoreKind::Memory => ("memory", Vec::new(), Vec::new()),
        };
        let mut secrets: Vec<Secret> = secrets.into_iter().flatten().cloned().collect();
        if let StoreKind::Nats(nats) = &options.kind {
            secrets.extend(nats.servers.iter().flat_map(|server| user_info(server.reveal())));
        }
        Faults { store, place, secrets }
    }

    /// Further secrets.
    pub(super) fn hide(&mut self, secrets: impl IntoIterator<Item = Secret>) {
        self.secrets.extend(secrets);
    }

    /// An error of this store; `message` may quote a server.
    pub(super) fn error(&self, code: ErrorCode, message: impl AsRef<str>) -> Error {
        let error = Error::new(code, self.scrub(message.as_ref())).with("store", self.store).of(Source::Store);
        match self.store {
            "nats" => error.with("servers", self.place.clone()),
            "s3" => error.with("endpoint", self.place.join(" ")),
            _ => error,
        }
    }

    /// The store's name and address.
    pub(super) fn name(&self) -> String {
        format!("the {} store at {}", self.store, self.place.join(", "))
    }

    /// The store does not answer, or cannot be reached.
    pub(super) fn unreachable(&self, doing: &str, last: impl std::fmt::Display) -> Error {
        let seconds = TIMEOUT.as_secs();
        let name = self.name();
        let message = format!("{doing}: no answer from {name} within {seconds} s; the last error was: {last}");
        self.error(ErrorCode::TimedOut, message)
    }

    pub(super) fn refused(&self, doing: &str, why: impl std::fmt::Display) -> Error {
        let message = format!("{doing}: {} refuses the credentials or lacks a permission: {why}", self.name());
        self.error(ErrorCode::PermissionDenied, message)
    }

    pub(super) fn full(&self, doing: &str, why: impl std::fmt::Display) -> Error {
        self.error(ErrorCode::LimitExceeded, format!("{doing}: {} is full: {why}", self.name()))
    }

    pub(super) fn missing(&self, key: &ObjectKey) -> Error {
        let message = format!("nothing is stored under {:?} in {}", key.as_str(), self.name());
        self.error(ErrorCode::FileNotFound, message).with("key", key.given())
    }

    /// The stored data is damaged.
    pub(super) fn damaged(&self, key: &ObjectKey, why: impl std::fmt::Display) -> Error {
        let message = format!("the object {:?} in {} is damaged: {why}", key.as_str(), self.name());
        self.error(ErrorCode::Protocol, message).with("key", key.given())
    }

    /// Waits for an answer, with a timeout.
    pub(super) async fn with_timeout<T>(&self, doing: &str, answer: impl Future<Output = Result<T>>) -> Result<T> {
        self.within(TIMEOUT, doing, answer).await
    }

    pub(super) async fn within<T>(
        &self,
        timeout: Duration,
        doing: &str,
        answer: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        match tokio::time::timeout(timeout, answer).await {
            Ok(outcome) => outcome,
            Err(_) => Err(self.unreachable(doing, "none")),
        }
    }

    fn scrub(&self, message: &str) -> String {
        let secrets = self.secrets.iter().map(Secret::reveal).filter(|secret| secret.len() >= MIN_SECRET);
        let said = secrets.fold(message.to_owned(), |message, secret| message.replace(secret, "***"));
        said.chars().take(MAX_MESSAGE).collect()
    }
}

/// A server's address without secrets.
fn without_user(address: &str) -> String {
    let (scheme, rest) = address.split_once("://").map_or(("", address), |(scheme, rest)| (scheme, rest));
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    if scheme.is_empty() { host.to_owned() } else { format!("{scheme}://{host}") }
}

fn user_info(address: &str) -> Vec<Secret> {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let Some((user, _)) = rest.rsplit_once('@') else { return Vec::new() };
    user.split(':').map(|part| Secret::from(part.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::super::options::NatsOptions;
    use super::*;

    fn options() -> StoreOptions {
        let secret = |text: &str| Some(Secret::from(text.to_owned()));
        let nats = NatsOptions {
            servers: vec![Secret::from("nats://anna:hunter22@example:4222".to_owned())],
            bucket: "b".to_owned(),
            password: secret("swordfish"),
            token: secret("t0ken-of-mine"),
            ..NatsOptions::default()
        };
        StoreOptions { kind: StoreKind::Nats(nats), prefix: String::new() }
    }

    #[test]
    fn says_no_secret() {
        let faults = Faults::new(&options());
        let quoted = "user anna with hunter22, swordfish or t0ken-of-mine at nats://anna:hunter22@example:4222";
        for error in [faults.unreachable("reading", quoted), faults.refused("reading", quoted)] {
            let said = format!("{error:?} {error}");
            for secret in ["hunter22", "swordfish", "t0ken-of-mine"] {
                assert!(!said.contains(secret), "{said}");
            }
            assert!(said.contains("nats://example:4222"), "{said}");
        }
    }

    #[test]
    fn prints_no_secret() {
        let printed = format!("{:?}", options());
        for secret in ["hunter22", "swordfish", "t0ken-of-mine"] {
            assert!(!printed.contains(secret), "{printed}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn gives_up_on_a_store_that_never_answers() {
        let faults = Faults::new(&options());
        let error = faults.with_timeout("reading", std::future::pending::<Result<()>>()).await.unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::TimedOut));
        assert_eq!(error.detail("servers"), Some(&serde_json::json!(["nats://example:4222"])));
    }
}
