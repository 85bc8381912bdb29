//! The language that the core and the guest speak over one byte stream.
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

/// The guest's own path in every sandbox.
pub const GUEST_PATH: &str = "/.cofferdam/guest";

/// Where whole outputs are kept as files, by exec id.
pub const LOG_DIR: &str = "/tmp/.cofferdam-logs";

/// The guest's abstract socket, in the sandbox's own network namespace.
pub const DOOR: &str = "cofferdam";

/// A visitor's first byte: what follows on this socket is a link.
pub const DOOR_LINK: u8 = b'D';

/// A visitor's first byte: it comes with two descriptors that are a link.
pub const DOOR_HAND_OVER: u8 = b'L';
