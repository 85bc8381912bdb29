//! Object store options of a manager. Secrets in them are never printed.

use std::fmt;

/// A value that must never appear in a message or a debug print.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Its value, for authentication only.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(value: String) -> Secret {
        Secret(value)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}

/// An object store, and a prefix in it.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// Its kind and connection.
    pub kind: StoreKind,
    /// Prefix of every key; may be empty.
    pub prefix: String,
}

/// The supported object stores.
#[derive(Debug, Clone)]
pub enum StoreKind {
    /// A bucket of NATS JetStream.
    Nats(NatsOptions),
    /// A bucket of S3 or a compatible store.
    S3(S3Options),
    /// A folder on the host.
    Folder(String),
    /// The manager's own memory.
    Memory,
}

/// Connection to a NATS bucket.
#[derive(Debug, Clone, Default)]
pub struct NatsOptions {
    /// `nats://host:4222`, `tls://…`. Secret, because it may contain a user and a password.
    pub servers: Vec<Secret>,
    /// The bucket's name.
    pub bucket: String,
    /// Create the bucket if it is missing.
    pub create: bool,
    /// User name; needs a password.
    pub user: Option<Secret>,
    /// Password of the user.
    pub password: Option<Secret>,
    /// Token, instead of user and password.
    pub token: Option<Secret>,
    /// Path of a file with a JWT and an nkey seed.
    pub credentials_file: Option<String>,
}

/// Connection to an S3 bucket.
#[derive(Debug, Clone)]
pub struct S3Options {
    /// The bucket's name.
    pub bucket: String,
    /// The region to sign for.
    pub region: String,
    /// URL of a store other than Amazon's; may be `http://`.
    pub endpoint: Option<String>,
    /// Access key id.
    pub access_key_id: Secret,
    /// Secret access key.
    pub secret_access_key: Secret,
    /// Session token of temporary credentials.
    pub session_token: Option<Secret>,
}
