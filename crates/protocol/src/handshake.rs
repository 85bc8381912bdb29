//! The handshake of a link, the guest's setup, and notices that the guest sends without a request.

use serde::{Deserialize, Serialize};

use crate::message::{MessageError, decode};
use crate::{Frame, GENERATION, Kind, MAX_PAYLOAD};

/// The channel of the handshake and of [`Notice`]s.
pub const LINK_CHANNEL: u32 = 0;

const HELLO_MAGIC: [u8; 4] = *b"CFDM";
const SETUP_MAGIC: [u8; 4] = *b"CFDS";

/// The longest encoded [`Setup`]: every [`Hello`] repeats it in one frame, with a few numbers beside it.
pub const MAX_SETUP: usize = MAX_PAYLOAD - 256;

/// What a guest needs to know before it serves anything: the first frame of its first stream. The guest repeats it in
/// the [`Hello`] of every link. A warm box has no key yet; [`crate::Request::Claim`] brings the rest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// `sbx_…`
    pub sandbox_id: String,
    /// `workflow:wf_abc123:default`
    pub key: String,
    /// Where relative paths start and commands run.
    pub workdir: String,
    /// The command user, who owns new files; root when absent.
    pub user: Option<String>,
    /// When the sandbox ends by itself.
    pub lease: Lease,
    /// For every command, over the box's own environment.
    pub env: Vec<(String, String)>,
    /// The caller's labels, where the backend cannot store them.
    pub labels: Vec<(String, String)>,
    /// Limits that the guest enforces.
    pub bounds: Bounds,
}

impl Setup {
    /// Whether a session owns it.
    pub fn is_claimed(&self) -> bool {
        !self.key.is_empty()
    }

    /// The first frame that a guest reads. It never travels on a command line: every user of the machine can read those.
    pub fn to_frame(&self) -> Result<Frame, MessageError> {
        let message = postcard::to_allocvec(self).map_err(MessageError::Malformed)?;
        if message.len() > MAX_SETUP {
            return Err(MessageError::SetupTooLong(message.len()));
        }
        Ok(opening_frame(SETUP_MAGIC, &message))
    }

    /// Reads the first frame of a guest's first stream.
    pub fn from_frame(frame: &Frame) -> Result<Setup, MessageError> {
        decode(opening_message(frame, SETUP_MAGIC, MessageError::NotASetup)?)
    }
}

/// A frame on [`LINK_CHANNEL`] with the generation before the message, where every generation can read it.
fn opening_frame(magic: [u8; 4], message: &[u8]) -> Frame {
    let payload = [&magic, &GENERATION.to_le_bytes()[..], message].concat();
    Frame::new(LINK_CHANNEL, Kind::Message, payload)
}

/// The message in such a frame; `otherwise` for any other frame.
fn opening_message(frame: &Frame, magic: [u8; 4], otherwise: MessageError) -> Result<&[u8], MessageError> {
    let is_opening = frame.channel == LINK_CHANNEL && frame.kind == Kind::Message;
    let Some((generation, message)) =
        frame.payload.strip_prefix(&magic).filter(|_| is_opening).and_then(<[u8]>::split_first_chunk::<2>)
    else {
        return Err(otherwise);
    };
    match u16::from_le_bytes(*generation) {
        GENERATION => Ok(message),
        other => Err(MessageError::Generation(other)),
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

/// The limits that the guest enforces, because the kernel or the engine does not. Zero means none.
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

/// The guest's first frame on every link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The guest's package version.
    pub version: String,
    /// As it is now.
    pub setup: Setup,
    /// Milliseconds since its start, or since it was claimed.
    pub uptime_ms: u64,
}

impl Hello {
    /// The frame that opens a link.
    pub fn to_frame(&self) -> Frame {
        opening_frame(HELLO_MAGIC, &postcard::to_allocvec(self).unwrap_or_default())
    }

    /// Reads the frame that opens a link.
    pub fn from_frame(frame: &Frame) -> Result<Hello, MessageError> {
        decode(opening_message(frame, HELLO_MAGIC, MessageError::NotAGuest)?)
    }
}

/// The host's answer to [`Hello`], on [`LINK_CHANNEL`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Join {
    /// The same on all links of one host process: a process that is not detached ends some time after the last link of its
    /// client.
    pub client: u128,
}

/// Sent by the guest on [`LINK_CHANNEL`], to every link, without a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Notice {
    /// The lease is about to run out.
    Expiring {
        /// Which part of it.
        term: Term,
        /// Unless something happens before.
        in_ms: u64,
    },
    /// The last frame of a guest that ends.
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
    /// The engine stopped PID 1, by itself or on request.
    Stopped,
    /// A host asked for it, with [`crate::Request::End`].
    Asked,
}

impl Ending {
    const EXIT_CODES: [(Ending, u8); 5] = [
        (Ending::Asked, 0),
        (Ending::Expired(Term::Idle), 101),
        (Ending::Expired(Term::MaxLifetime), 102),
        (Ending::Expired(Term::Orphan), 103),
        // As of every program that ends on SIGTERM.
        (Ending::Stopped, 143),
    ];

    /// The exit code of a guest that ends for this reason: an engine may drop the last bytes of a stream, and with them
    /// [`Notice::Ending`].
    pub fn exit_code(self) -> u8 {
        Self::EXIT_CODES.into_iter().find_map(|(ending, code)| (ending == self).then_some(code)).unwrap_or_default()
    }

    /// The reason that an exit code stands for; `None` when the guest did not end by itself.
    pub fn from_exit_code(code: i64) -> Option<Ending> {
        Self::EXIT_CODES.into_iter().find_map(|(ending, own)| (i64::from(own) == code).then_some(ending))
    }
}
