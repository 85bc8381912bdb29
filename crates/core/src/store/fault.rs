//! What goes wrong with a store, in the public codes, and without its secrets.

use std::time::Duration;

use super::key::ObjectKey;
use super::options::{Secret, StoreKind, StoreOptions};
use crate::{Error, ErrorCode, Result};

/// How long a store may leave us without an answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// A server may answer at length.
const MAX_MESSAGE: usize = 1000;

/// Shorter ones would be found in innocent words.
const MIN_SECRET: usize = 4;

/// Which store it is, for people, and what must not be said of it.
#[derive(Clone)]
pub(super) struct Faults {
    store: &'static str,
    /// Where it is, without credentials.
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

    /// More that must not be said.
    pub(super) fn hide(&mut self, secrets: impl IntoIterator<Item = Secret>) {
        self.secrets.extend(secrets);
    }

    /// An error of this store; `message` may quote what a server said.
    pub(super) fn error(&self, code: ErrorCode, message: impl AsRef<str>) -> Error {
        let error = Error::new(code, self.scrub(message.as_ref())).with("store", self.store);
        match self.store {
            "nats" => error.with("servers", self.place.clone()),
            "s3" => error.with("endpoint", self.place.join(" ")),
            _ => error,
        }
    }

    /// The name of the store, and where it is.
    pub(super) fn name(&self) -> String {
        format!("the {} store at {}", self.store, self.place.join(", "))
    }

    /// It gives no answer, or the way to it is broken.
    pub(super) fn unreachable(&self, doing: &str, last: impl std::fmt::Display) -> Error {
        let seconds = PATIENCE.as_secs();
        let name = self.name();
        let message = format!("{doing}: no answer from {name} within {seconds} s; the last word was: {last}");
        self.error(ErrorCode::TimedOut, message)
    }

    pub(super) fn refused(&self, doing: &str, why: impl std::fmt::Display) -> Error {
        let message = format!("{doing}: {} refuses the credentials or lacks a permission: {why}", self.name());
        self.error(ErrorCode::PermissionDenied, message)
    }

    pub(super) fn full(&self, doing: &str, why: impl std::fmt::Display) -> Error {
        self.error(ErrorCode::LimitExceeded, format!("{doing}: {} has no more room: {why}", self.name()))
    }

    pub(super) fn missing(&self, key: &ObjectKey) -> Error {
        let message = format!("nothing is stored under {:?} in {}", key.as_str(), self.name());
        self.error(ErrorCode::FileNotFound, message).with("key", key.given())
    }

    /// What is stored is not what was stored.
    pub(super) fn damaged(&self, key: &ObjectKey, why: impl std::fmt::Display) -> Error {
        let message = format!("the object {:?} in {} is damaged: {why}", key.as_str(), self.name());
        self.error(ErrorCode::Protocol, message).with("key", key.given())
    }

    /// Waits for an answer, but not for ever.
    pub(super) async fn patient<T>(&self, doing: &str, answer: impl Future<Output = Result<T>>) -> Result<T> {
        self.within(PATIENCE, doing, answer).await
    }

    pub(super) async fn within<T>(
        &self,
        patience: Duration,
        doing: &str,
        answer: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        match tokio::time::timeout(patience, answer).await {
            Ok(outcome) => outcome,
            Err(_) => Err(self.unreachable(doing, "nothing")),
        }
    }

    fn scrub(&self, message: &str) -> String {
        let secrets = self.secrets.iter().map(Secret::reveal).filter(|secret| secret.len() >= MIN_SECRET);
        let said = secrets.fold(message.to_owned(), |message, secret| message.replace(secret, "***"));
        said.chars().take(MAX_MESSAGE).collect()
    }
}

/// A server's address as it may be shown.
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
        let error = faults.patient("reading", std::future::pending::<Result<()>>()).await.unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::TimedOut));
        assert_eq!(error.detail("servers"), Some(&serde_json::json!(["nats://example:4222"])));
    }
}
