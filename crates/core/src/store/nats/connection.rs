//! The NATS connection: one for all transfers of a manager, opened on first use and again when it was lost.

use std::error::Error as StdError;
use std::str::FromStr;
use std::sync::{Arc, Mutex as SyncMutex, MutexGuard};
use std::time::Duration;

use async_nats::connection::State;
use async_nats::jetstream::context::{GetStreamError, GetStreamErrorKind, ObjectStoreErrorKind};
use async_nats::jetstream::object_store::{Config, ObjectStore};
use async_nats::jetstream::stream::{ConsumerError, ConsumerErrorKind};
use async_nats::jetstream::{Context, ContextBuilder, ErrorCode as Code};
use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event, ServerAddr};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::super::fault::{Faults, TIMEOUT};
use super::super::options::{NatsOptions, Secret};
use super::{chunk_subject, stream_name};
use crate::lock::lock;
use crate::{Error, ErrorCode, Result};

/// Pause between two attempts to connect.
const PAUSE: Duration = Duration::from_millis(200);

/// How often the client retries each server when a connection breaks. Then it gives up and stops all its tasks; the next
/// transfer reconnects.
const RECONNECTS: usize = 10;

/// Uploads whose chunks could not be removed yet.
const MAX_ORPHANS: usize = 1000;

/// An open connection and the bucket on it.
#[derive(Clone)]
pub(super) struct Session {
    pub(super) client: Client,
    pub(super) context: Context,
    pub(super) bucket: ObjectStore,
}

pub(super) struct Connection {
    options: NatsOptions,
    servers: Vec<ServerAddr>,
    /// The content of the credentials file, read once.
    credentials: Option<Secret>,
    faults: Faults,
    session: Mutex<Option<Session>>,
    /// The server's last asynchronous error: its only reaction to a forbidden request.
    complaint: Arc<SyncMutex<Option<String>>>,
    orphans: SyncMutex<Vec<String>>,
}

impl Connection {
    pub(super) fn new(options: NatsOptions, mut faults: Faults) -> Result<Connection> {
        let parse = |server: &Secret| {
            let shown = faults.name();
            ServerAddr::from_str(server.reveal()).map_err(|error| {
                faults.error(ErrorCode::InvalidArgument, format!("{shown} has no such address: {error}"))
            })
        };
        let servers = options.servers.iter().map(parse).collect::<Result<Vec<_>>>()?;
        let credentials = options.credentials_file.as_deref().map(|path| {
            std::fs::read_to_string(path).map(Secret::from).map_err(|error| {
                let message = format!("credentialsFile {path:?} of the store cannot be read: {error}");
                faults.error(ErrorCode::InvalidArgument, message).with("path", path)
            })
        });
        let credentials = credentials.transpose()?;
        if let Some(file) = &credentials {
            faults.hide(file.reveal().lines().filter(|line| line.len() > 40).map(|line| line.to_owned().into()));
        }
        Ok(Connection {
            options,
            servers,
            credentials,
            faults,
            session: Mutex::new(None),
            complaint: Arc::default(),
            orphans: SyncMutex::default(),
        })
    }

    pub(super) fn faults(&self) -> &Faults {
        &self.faults
    }

    pub(super) fn bucket_name(&self) -> &str {
        &self.options.bucket
    }

    /// The open connection, or a new one.
    pub(super) async fn session(&self) -> Result<Session> {
        let mut current = self.session.lock().await;
        if let Some(session) = &*current
            && session.client.connection_state() == State::Connected
        {
            return Ok(session.clone());
        }
        // Transfers on the old connection fail on their own.
        *current = None;
        let client = self.connect().await?;
        let context = ContextBuilder::new().timeout(TIMEOUT).ack_timeout(TIMEOUT).build(client.clone());
        let bucket = self.faults.with_timeout("opening the bucket", self.open_bucket(&context)).await?;
        let session = Session { client, context, bucket };
        self.remove_orphans(&session).await;
        Ok(current.insert(session).clone())
    }

    async fn connect(&self) -> Result<Client> {
        let deadline = Instant::now() + TIMEOUT;
        let mut last = String::from("nothing");
        while let Ok(outcome) = tokio::time::timeout_at(deadline, self.options()?.connect(&self.servers[..])).await {
            match outcome {
                Ok(client) => return Ok(client),
                Err(error) => match error.kind() {
                    ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
                        return Err(self.faults.refused("connecting", error));
                    }
                    _ => last = error.to_string(),
                },
            }
            if Instant::now() + PAUSE >= deadline {
                break;
            }
            tokio::time::sleep(PAUSE).await;
        }
        Err(self.faults.unreachable("connecting", last))
    }

    fn options(&self) -> Result<ConnectOptions> {
        let given = &self.options;
        let complaint = Arc::clone(&self.complaint);
        let mut options = ConnectOptions::new()
            .name("cofferdam")
            .connection_timeout(TIMEOUT / 2)
            .request_timeout(Some(TIMEOUT))
            .max_reconnects(RECONNECTS * self.servers.len())
            .reconnect_delay_callback(|attempt| if attempt <= 1 { Duration::ZERO } else { PAUSE })
            .event_callback(move |event| {
                if let Event::ServerError(error) = event {
                    *lock(&complaint) = Some(error.to_string());
                }
                std::future::ready(())
            });
        if let (Some(user), Some(password)) = (&given.user, &given.password) {
            options = options.user_and_password(user.reveal().to_owned(), password.reveal().to_owned());
        }
        if let Some(token) = &given.token {
            options = options.token(token.reveal().to_owned());
        }
        if let Some(credentials) = &self.credentials {
            options = options.credentials(credentials.reveal()).map_err(|error| {
                let message = format!("credentialsFile of the store holds no credentials: {error}");
                self.faults.error(ErrorCode::InvalidArgument, message)
            })?;
        }
        Ok(options)
    }

    async fn open_bucket(&self, context: &Context) -> Result<ObjectStore> {
        let name = self.bucket_name();
        let error = match context.get_object_store(name).await {
            Ok(bucket) => return Ok(bucket),
            Err(error) if error.kind() == ObjectStoreErrorKind::InvalidBucketName => {
                let message = format!("{name:?} is not a name of a bucket: use letters, digits, - and _");
                return Err(self.faults.error(ErrorCode::InvalidArgument, message).with("bucket", name));
            }
            Err(error) => error,
        };
        if !(self.options.create && code_of(&error) == Some(Code::STREAM_NOT_FOUND)) {
            return Err(self.explain("opening the bucket", &error));
        }
        let config = Config { bucket: name.to_owned(), num_replicas: 1, ..Config::default() };
        if let Err(error) = context.create_object_store(config).await
            && code_of(&error) != Some(Code::STREAM_NAME_EXIST)
        {
            return Err(self.explain("creating the bucket", &error));
        }
        // Created by us, or by another program in the meantime.
        context.get_object_store(name).await.map_err(|error| self.explain("opening the bucket", &error))
    }

    /// Removes all chunks of one version of an object; if that fails, remembers them for the next connection.
    pub(super) async fn purge(&self, session: &Session, nuid: &str) -> Result<()> {
        let subject = chunk_subject(self.bucket_name(), nuid);
        let doing = "removing chunks";
        let stream = session.context.get_stream_no_info(stream_name(self.bucket_name()));
        let purged = self.faults.with_timeout(doing, async {
            let stream = stream.await.map_err(|error| self.explain(doing, &error))?;
            stream.purge().filter(&subject).await.map(drop).map_err(|error| self.explain(doing, &error))
        });
        match purged.await {
            Ok(()) => self.orphans().retain(|orphan| orphan != nuid),
            Err(error) => {
                self.remember_orphan(nuid);
                return Err(error);
            }
        }
        Ok(())
    }

    fn orphans(&self) -> MutexGuard<'_, Vec<String>> {
        lock(&self.orphans)
    }

    pub(super) fn remember_orphan(&self, nuid: &str) {
        let mut orphans = self.orphans();
        if orphans.len() < MAX_ORPHANS && !orphans.iter().any(|orphan| orphan == nuid) {
            orphans.push(nuid.to_owned());
        }
    }

    async fn remove_orphans(&self, session: &Session) {
        let orphans = self.orphans().clone();
        for nuid in orphans {
            let _ = self.purge(session, &nuid).await;
        }
    }

    /// Converts a client error.
    pub(super) fn explain(&self, doing: &str, error: &(dyn StdError + 'static)) -> Error {
        let (faults, name) = (&self.faults, self.bucket_name());
        let complaint = lock(&self.complaint).take();
        match code_of(error) {
            Some(Code::STREAM_NOT_FOUND) => {
                let message =
                    format!("{doing}: the bucket {name:?} is not in {}; create: true makes it", faults.name());
                faults.error(ErrorCode::FileNotFound, message).with("bucket", name)
            }
            Some(Code::JETSTREAM_NOT_ENABLED | Code::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT) => {
                let message = format!("{doing}: JetStream is not enabled on {}", faults.name());
                faults.error(ErrorCode::InvalidArgument, message)
            }
            Some(
                Code::ACCOUNT_RESOURCES_EXCEEDED
                | Code::INSUFFICIENT_RESOURCES
                | Code::STORAGE_RESOURCES_EXCEEDED
                | Code::MEMORY_RESOURCES_EXCEEDED
                | Code::STREAM_LIMITS
                | Code::STREAM_STORE_FAILED,
            ) => faults.full(doing, error),
            Some(_) => faults.error(ErrorCode::Protocol, format!("{doing}: {} answered: {error}", faults.name())),
            None => match complaint {
                Some(text) if text.to_lowercase().contains("permissions violation") => faults.refused(doing, text),
                Some(text) => faults.unreachable(doing, format!("{error}; {text}")),
                None => faults.unreachable(doing, error),
            },
        }
    }
}

/// JetStream's error code, if the error has one.
fn code_of(error: &(dyn StdError + 'static)) -> Option<Code> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(answer) = error.downcast_ref::<async_nats::jetstream::Error>() {
            return Some(answer.error_code());
        }
        if let Some(GetStreamErrorKind::JetStream(answer)) = error.downcast_ref().map(GetStreamError::kind) {
            return Some(answer.error_code());
        }
        if let Some(ConsumerErrorKind::JetStream(answer)) = error.downcast_ref().map(ConsumerError::kind) {
            return Some(answer.error_code());
        }
        cause = error.source();
    }
    None
}
