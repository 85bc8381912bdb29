//! The protocol between the core and the guest, over one byte stream.
//!
//! This crate owns the shape of every byte on that stream and does no I/O. Both ends are made by one build; the
//! [`GENERATION`] in the handshake tells an older sandbox apart. Either end may be hostile to the other, so nothing
//! here panics on input, and every length is bounded before anything is allocated for it.

mod frame;
mod handshake;
pub mod keeper;
mod message;
mod reply;
mod request;
mod search;
mod signal;
mod tree;

pub use frame::{Decoder, Frame, FrameError, HEADER_LEN, Kind, MAX_PAYLOAD, encode_header, io_slices};
pub use handshake::*;
pub use message::*;
pub use reply::*;
pub use request::*;
pub use search::*;
pub use signal::{signal_name, signal_number};
pub use tree::{Fingerprint, MAX_DEPTH, Meta, Record, TreeDecoder, TreeError, TreeItem, is_name, short_reason};

/// Raised with every change that an older peer would misread. A snapshot test pins the encoding of each generation.
pub const GENERATION: u16 = 4;

/// Bytes that one side may send on a channel before the other grants more.
pub const WINDOW: u32 = 1024 * 1024;

/// The longest message that may be put together from [`Kind::More`] fragments.
pub const MAX_MESSAGE: usize = 4 * 1024 * 1024;

/// Where the guest binary is mounted in every sandbox.
pub const GUEST_DIR: &str = "/.cofferdam";

/// The guest binary's file name in [`GUEST_DIR`].
pub const GUEST_FILE: &str = "guest";

/// The guest binary's path in every sandbox.
pub const GUEST_PATH: &str = "/.cofferdam/guest";

/// Open files that PID 1 needs at least: its links, and a few per command.
pub const GUEST_OPEN_FILES: u64 = 4096;

/// The share of a box's memory limit that one in-memory folder may take. Two of them stay below the limit: no process can be
/// killed to free what is written there.
pub const fn memory_share(limit: u64) -> u64 {
    limit / 5 * 2
}

/// The folder of log files with whole outputs, by exec id.
pub const LOG_DIR: &str = "/tmp/.cofferdam-logs";

/// The guest's abstract socket, in the sandbox's own network namespace.
pub const LINK_SOCKET: &str = "cofferdam";

/// The first byte on a connection to [`LINK_SOCKET`]: the connection itself is the link.
pub const IS_LINK: u8 = b'D';

/// The first byte on a connection to [`LINK_SOCKET`]: it carries two descriptors, and those are the link.
pub const HANDS_OVER: u8 = b'L';
