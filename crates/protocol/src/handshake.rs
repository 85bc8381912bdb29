//! What is said once per link, and what the guest says unasked: who it is, when it ends, and why it did.

use serde::{Deserialize, Serialize};

use crate::message::{MessageError, decode};
use crate::{Frame, GENERATION, Kind};

/// The channel of the handshake and of [`Notice`]s.
pub const LINK_CHANNEL: u32 = 0;

const MAGIC: [u8; 4] = *b"CFDM";

/// What the guest was told when its box was made; handed to it as its command line, so that no sandbox is ever half
/// set up, and told to every new link. A box that was made before anybody asked for it has no key, and is told the rest
/// with [`crate::Request::Claim`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// `sbx_…`
    pub sandbox_id: String,
    /// `workflow:wf_abc123:default`
    pub key: String,
    /// Where relative paths start and commands run.
    pub workdir: String,
    /// Whom commands run as and files belong to; root when absent.
    pub user: Option<String>,
    /// When the sandbox ends by itself.
    pub lease: Lease,
    /// For every command, over the box's own environment.
    pub env: Vec<(String, String)>,
    /// The caller's own, where the backend has no place for them.
    pub labels: Vec<(String, String)>,
    /// What the guest itself sees to.
    pub bounds: Bounds,
}

impl Setup {
    /// Whether a session has it already.
    pub fn is_claimed(&self) -> bool {
        !self.key.is_empty()
    }

    /// One word for a command line.
    pub fn to_argument(&self) -> String {
        let bytes = postcard::to_allocvec(self).unwrap_or_default();
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The other way around.
    pub fn from_argument(argument: &str) -> Result<Setup, MessageError> {
        let malformed = MessageError::Malformed(postcard::Error::DeserializeBadEncoding);
        let digits = argument.as_bytes();
        if !digits.len().is_multiple_of(2) {
            return Err(malformed);
        }
        let nibble = |digit: u8| (digit as char).to_digit(16).map(|value| value as u8);
        let bytes: Option<Vec<u8>> =
            digits.chunks_exact(2).map(|pair| Some(nibble(pair[0])? << 4 | nibble(pair[1])?)).collect();
        decode(&bytes.ok_or(malformed)?)
    }
}

/// When a sandbox ends by itself. All in milliseconds; zero means never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// With no request and no output.
    pub idle_ms: u64,
    /// Since its start, whatever happens.
    pub max_ms: u64,
    /// With no host linked.
    pub orphan_ms: u64,
}

/// The limits that the guest keeps, because the kernel or the engine does not. Zero means none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// On disk, under the workdir.
    pub workspace_bytes: u64,
    /// Open files per process.
    pub open_files: u64,
    /// Of all commands together.
    pub memory_bytes: u64,
    /// Processes of each user.
    pub pids: u64,
}

/// The guest's first words on every link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The guest's package version.
    pub version: String,
    /// What it was told at its start.
    pub setup: Setup,
    /// Milliseconds since its start, or since it was claimed.
    pub uptime_ms: u64,
}

impl Hello {
    /// The frame that opens a link. The generation stands before the message so that any generation can read it.
    pub fn to_frame(&self) -> Frame {
        let mut payload = Vec::from(MAGIC);
        payload.extend_from_slice(&GENERATION.to_le_bytes());
        payload.extend(postcard::to_allocvec(self).unwrap_or_default());
        Frame::new(LINK_CHANNEL, Kind::Message, payload)
    }

    /// Reads the frame that opens a link.
    pub fn from_frame(frame: &Frame) -> Result<Hello, MessageError> {
        let (LINK_CHANNEL, Kind::Message, Some((magic, rest))) =
            (frame.channel, frame.kind, frame.payload.split_first_chunk::<4>())
        else {
            return Err(MessageError::NotAGuest);
        };
        let (true, Some((generation, message))) = (*magic == MAGIC, rest.split_first_chunk::<2>()) else {
            return Err(MessageError::NotAGuest);
        };
        match u16::from_le_bytes(*generation) {
            GENERATION => decode(message),
            other => Err(MessageError::Generation(other)),
        }
    }
}

/// The host's answer to [`Hello`], on [`LINK_CHANNEL`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Join {
    /// The same on all links of one host process: a process that is not detached lives as long as its client has a
    /// link, or comes back in time.
    pub client: u128,
}

/// Said by the guest on [`LINK_CHANNEL`], to every link, without being asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Notice {
    /// The lease is about to run out.
    Expiring {
        /// Which part of it.
        term: Term,
        /// Unless something happens before.
        in_ms: u64,
    },
    /// The guest's last words.
    Ending(Ending),
    /// A command was started. Only to links that asked for it with [`crate::Request::Watch`].
    Started {
        /// Given by the host that started it.
        exec_id: String,
        /// A line for people.
        command: String,
    },
    /// A command has ended. Only to links that asked for it.
    Finished {
        /// Given by the host that started it.
        exec_id: String,
        /// How.
        exit: crate::Exit,
    },
}

impl Notice {
    /// The frame that carries it.
    pub fn to_frame(&self) -> Frame {
        Frame::new(LINK_CHANNEL, Kind::Message, postcard::to_allocvec(self).unwrap_or_default())
    }
}

/// A part of a [`Lease`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Term {
    /// No request and no output.
    Idle,
    /// Since its start.
    MaxLifetime,
    /// No host linked.
    Orphan,
}

/// Why a guest ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// Its lease ran out.
    Expired(Term),
    /// The engine, or somebody through it, asked PID 1 to stop.
    Stopped,
    /// A host asked for it, with [`crate::Request::End`].
    Asked,
}
