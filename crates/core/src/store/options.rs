//! Which object store a manager stages from and publishes to. What is secret in it is never printed.

use std::fmt;

/// A value that must not be seen: not in a message, not in a debug print.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Its value, for the one who signs in with it.
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

/// An object store, and where in it.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// What it is and how to reach it.
    pub kind: StoreKind,
    /// Every key is under it; empty for none.
    pub prefix: String,
}

/// The object stores there are.
#[derive(Debug, Clone)]
pub enum StoreKind {
    /// A bucket of NATS JetStream.
    Nats(NatsOptions),
    /// A bucket of S3, or of what speaks as it does.
    S3(S3Options),
    /// A folder of the host.
    Folder(String),
    /// The manager's own memory.
    Memory,
}

/// How to reach a bucket of NATS.
#[derive(Debug, Clone, Default)]
pub struct NatsOptions {
    /// `nats://host:4222`, `tls://…`; may hold a user and a password, and is a secret for that.
    pub servers: Vec<Secret>,
    /// The bucket's name.
    pub bucket: String,
    /// Make the bucket when it is missing.
    pub create: bool,
    /// With a password.
    pub user: Option<Secret>,
    /// With a user.
    pub password: Option<Secret>,
    /// Instead of user and password.
    pub token: Option<Secret>,
    /// Path of a file with a JWT and an nkey seed.
    pub credentials_file: Option<String>,
}

/// How to reach a bucket of S3.
#[derive(Debug, Clone)]
pub struct S3Options {
    /// The bucket's name.
    pub bucket: String,
    /// The region to sign for.
    pub region: String,
    /// Where another than Amazon's is; may be `http://`.
    pub endpoint: Option<String>,
    /// Whose key it is.
    pub access_key_id: Secret,
    /// What requests are signed with.
    pub secret_access_key: Secret,
    /// With temporary credentials.
    pub session_token: Option<Secret>,
}
