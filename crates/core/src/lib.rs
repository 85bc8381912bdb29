//! The core of cofferdam: sessions on backends, and the host side of the guest protocol.
//!
//! Independent of JavaScript; usable and tested as a plain Rust crate. Data flows one way in and the same way back:
//! [`Manager`] → [`Sandbox`] → [`guest`] → bytes through a [`backend`] → the guest in the sandbox.
//!
//! ```no_run
//! # async fn example() -> Result<(), cofferdam_core::Error> {
//! use cofferdam_core::{ExecRequest, Manager, OpenRequest};
//! let manager = Manager::new(Default::default());
//! let sandbox = manager.open(OpenRequest { image: Some("python".into()), ..Default::default() }).await?;
//! let result = sandbox.exec(ExecRequest::shell("python -c 'print(6 * 7)'")).await?;
//! assert_eq!(result.stdout, b"42\n");
//! manager.close().await?;
//! # Ok(())
//! # }
//! ```

pub mod backend;
mod clock;
mod error;
mod events;
mod file_policy;
pub mod guest;
mod host;
mod id;
mod image;
mod key;
mod lock;
mod manager;
mod options;
mod packages;
mod policy;
mod pool;
mod register;
mod run;
mod sandbox;
mod sessions;
mod store;

pub use backend::Network;
pub use error::{Error, ErrorCode, Result};
pub use events::{Event, EventKind, EventStream};
pub use file_policy::FilePolicy;
pub use guest::{
    Chunk, ExecRequest, ExecResult, Execution, FileContent, FileReader, FileWatch, FileWriter, Found, GlobRequest,
    GrepRequest, ListRequest, OutputStream, PortForward, Process, Recent, ReplaceRequest, SearchScope, SpawnRequest,
    StreamName, WriteRequest,
};
pub use guest::{OnProgress, Progress, Skipped, TransferReport, TransferRequest};
pub use image::{DEFAULT_IMAGE, resolve_image};
pub use key::{Scope, Session, SessionKey, is_isolated, session_name};
pub use manager::{Manager, Opened};
pub use options::{
    BackendKind, DEFAULT_WORKDIR, DockerOptions, Limits, ManagerOptions, OnPull, OpenRequest, PullPolicy, PullProgress,
    Timeouts, TlsFiles, WarmRequest,
};
pub use packages::Packages;
pub use policy::{NetworkRule, Policy};
pub use run::{Artifact, Omitted, RunRequest, RunResult, Running, Runtime};
pub use sandbox::Sandbox;
pub use store::{NatsOptions, Published, S3Options, Secret, StageRequest, Staged, StoreKind, StoreOptions};

pub use cofferdam_protocol::{
    Command, FileChange, FileEntry, FileType, Hit, Killed, ProcessInfo, Stats, TerminalSize, signal_name, signal_number,
};
pub use tokio_util::sync::CancellationToken;
