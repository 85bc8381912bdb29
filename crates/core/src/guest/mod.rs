//! The host end of the protocol: everything a sandbox can do, as messages over one byte stream.
//!
//! The guest is untrusted. Nothing here relies on a length, a number or an order that it sends: a protocol violation ends
//! the link with `PROTOCOL` for every pending call. The windows that the host grants bound its memory.

mod binary;
mod channel;
mod command;
mod connection;
mod edit;
mod exec;
mod execution;
mod files;
mod link;
mod output;
mod ports;
mod process;
mod retained;
mod search;
mod setup;
#[cfg(unix)]
mod transfer;
mod trees;
mod watch;

pub use binary::{Arch, GuestBinary, guest_binary};
pub use command::SpawnRequest;
pub use connection::{Connect, Guest};
pub use edit::ReplaceRequest;
pub(crate) use exec::overdue;
pub use exec::{ExecRequest, ExecResult};
pub use execution::Execution;
pub use files::{FileContent, FileReader, FileWriter, ListRequest, WriteRequest};
pub use output::{Chunk, OutputStream, StreamName};
pub use ports::PortForward;
pub use process::{Process, Recent};
pub use search::{Found, GlobRequest, GrepRequest, SearchScope};
pub use trees::{OnProgress, Progress, Skipped, TransferReport, TransferRequest};
pub use watch::FileWatch;

pub(crate) use command::check_env;
pub(crate) use connection::closed_error;
pub(crate) use files::check_path;
pub(crate) use link::{HELLO_TIMEOUT, OnNotice, ending_reason};
pub(crate) use search::{check_patterns, leads_out};
pub(crate) use setup::setup_bytes;

use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};

/// What a backend provides: bytes to and from a guest. It ends when either half does.
pub struct ByteStream {
    /// Bytes from the guest.
    pub reader: Pin<Box<dyn AsyncRead + Send>>,
    /// Bytes to the guest.
    pub writer: Pin<Box<dyn AsyncWrite + Send>>,
}
