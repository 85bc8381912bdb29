//! Control messages, encoded with postcard.
//!
//! The order of fields and variants *is* the encoding: append, never reorder, and raise [`crate::GENERATION`] when an
//! older peer would misread the result. `tests/snapshot.rs` holds the bytes of the present generation.

use bytes::Bytes;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{Frame, GENERATION, Kind, MAX_MESSAGE};

/// Longest fragment of a message in one frame.
const FRAGMENT: usize = 64 * 1024;

/// The channel of the handshake.
pub const LINK_CHANNEL: u32 = 0;

const MAGIC: [u8; 4] = *b"CFDM";

/// A message that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// Not postcard of the expected type.
    #[error("a message could not be decoded: {0}")]
    Malformed(postcard::Error),
    /// Longer than [`MAX_MESSAGE`].
    #[error("a message is longer than {MAX_MESSAGE} bytes")]
    TooLong,
    /// The handshake does not start as ours does.
    #[error("the peer is not a cofferdam guest")]
    NotAGuest,
    /// Built from another version of this crate.
    #[error("the guest speaks protocol generation {0}, this build speaks {GENERATION}")]
    Generation(u16),
}

/// Reads one message; trailing bytes are an error.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, MessageError> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        Ok(_) => Err(MessageError::Malformed(postcard::Error::DeserializeBadEncoding)),
        Err(error) => Err(MessageError::Malformed(error)),
    }
}

/// The frames that carry `message` on `channel`.
pub fn encode<T: Serialize>(channel: u32, message: &T) -> Result<Vec<Frame>, MessageError> {
    let mut rest = Bytes::from(postcard::to_allocvec(message).map_err(MessageError::Malformed)?);
    if rest.len() > MAX_MESSAGE {
        return Err(MessageError::TooLong);
    }
    let mut frames = Vec::with_capacity(1);
    while rest.len() > FRAGMENT {
        frames.push(Frame::new(channel, Kind::More, rest.split_to(FRAGMENT)));
    }
    frames.push(Frame::new(channel, Kind::Message, rest));
    Ok(frames)
}

/// Puts a message together from its fragments.
#[derive(Debug, Default)]
pub struct Assembler {
    parts: Vec<u8>,
}

impl Assembler {
    /// Takes a [`Kind::More`] payload.
    pub fn more(&mut self, payload: &[u8]) -> Result<(), MessageError> {
        if self.parts.len() + payload.len() > MAX_MESSAGE {
            return Err(MessageError::TooLong);
        }
        self.parts.extend_from_slice(payload);
        Ok(())
    }

    /// Takes the [`Kind::Message`] payload and gives the message.
    pub fn finish<T: DeserializeOwned>(&mut self, payload: &[u8]) -> Result<T, MessageError> {
        if self.parts.is_empty() {
            return decode(payload);
        }
        self.more(payload)?;
        decode(&std::mem::take(&mut self.parts))
    }
}

/// What the guest was told when its box was made; handed to it as its command line, so that no sandbox is ever half
/// set up, and told to every new link.
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
}

impl Setup {
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

/// The guest's first words on every link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The guest's package version.
    pub version: String,
    /// What it was told at its start.
    pub setup: Setup,
    /// Milliseconds since its start.
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

/// What the host asks; the first message on each channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Answered by [`Reply::Done`].
    Ping,
    /// Runs a command. See [`Output`] for what comes back.
    Start(Start),
    /// Joins a running or finished process: its output as in `output`, then [`Reply::Exited`].
    Attach {
        /// Which.
        exec_id: String,
        /// Only chunks after this one.
        since_seq: u64,
        /// How.
        output: Output,
    },
    /// Answered by what is kept of the output after `since_seq`, then [`Reply::Read`].
    Read {
        /// Which.
        exec_id: String,
        /// Only chunks after this one.
        since_seq: u64,
        /// At most so many.
        max_chunks: u32,
        /// How long to wait for a first one.
        wait_ms: u64,
    },
    /// [`Kind::Data`] on this channel goes to the process's input until [`Kind::End`]; then [`Reply::Done`].
    Stdin {
        /// Which.
        exec_id: String,
    },
    /// Sends one signal to the whole tree, or ends it. Answered by [`Reply::Done`].
    Kill {
        /// Which.
        exec_id: String,
        /// How.
        how: Kill,
    },
    /// Answered by [`Reply::Processes`].
    Processes,
    /// [`Kind::Data`] until [`Kind::End`] becomes the file's content; then [`Reply::Written`].
    Write(Write),
    /// Answered by [`Reply::Opened`], [`Kind::Data`], then [`Reply::Content`].
    ReadFile {
        /// Which file.
        path: String,
        /// Where to start.
        offset: u64,
        /// At most so many bytes.
        limit: u64,
    },
    /// Answered by [`Kind::Data`] frames, each a `Vec<FileEntry>`, then [`Reply::Done`].
    List {
        /// Which folder.
        path: String,
        /// With everything below it.
        recursive: bool,
        /// At most so many.
        max_entries: u64,
    },
    /// Answered by [`Reply::Stat`].
    Stat {
        /// Of what; a link is not followed.
        path: String,
    },
    /// Makes a folder and its parents. Answered by [`Reply::Done`].
    Mkdir {
        /// Which.
        path: String,
        /// Permission bits of the last one.
        mode: Option<u32>,
    },
    /// Renames, over file systems if need be. Answered by [`Reply::Done`].
    Move {
        /// Old path.
        from: String,
        /// New path.
        to: String,
    },
    /// Copies a file or a whole folder. Answered by [`Reply::Done`].
    Copy {
        /// What.
        from: String,
        /// Where.
        to: String,
    },
    /// Answered by [`Reply::Removed`].
    Remove {
        /// What.
        path: String,
        /// A folder with all below it.
        recursive: bool,
    },
}

/// A command to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// Chosen by the host, so that a start is never done twice when a link breaks in the middle.
    pub exec_id: String,
    /// What to run.
    pub command: Command,
    /// The sandbox's workdir when absent; relative to it.
    pub cwd: Option<String>,
    /// Over the sandbox's own environment.
    pub env: Vec<(String, String)>,
    /// The sandbox's own user when absent.
    pub user: Option<String>,
    /// Where its input comes from.
    pub stdin: Stdin,
    /// What happens to its output.
    pub output: Output,
    /// How much of each output stream is kept, half from its start and half from its end.
    pub keep_bytes: u64,
    /// When to end it; zero means never.
    pub timeout_ms: u64,
    /// From TERM to KILL.
    pub grace_ms: u64,
    /// Keep it when its client goes away.
    pub detached: bool,
}

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Through the sandbox's shell.
    Shell(String),
    /// As it is.
    Program(Vec<String>),
}

/// Where a process's input comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stdin {
    /// Nowhere: end of input at once.
    Empty,
    /// [`Kind::Data`] on the channel of [`Start`], until [`Kind::End`].
    Channel,
    /// Stays open; written with [`Request::Stdin`].
    Open,
}

/// What happens to a process's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Output {
    /// What was kept is sent when the process has ended, then [`Reply::Exited`].
    Collect,
    /// Everything is sent as it comes, and a slow reader slows the process; then [`Reply::Exited`].
    Follow,
    /// [`Reply::Started`] at once and nothing more. Nothing is lost for a reader that comes within seconds: a process
    /// that fills what may be kept waits that long for one.
    Hold,
}

/// How to end a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kill {
    /// This signal to each process of the tree.
    Signal(u8),
    /// TERM, the grace period, KILL; answered when nothing of the tree is left.
    Terminate,
}

/// A file to write. It appears whole or not at all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Write {
    /// Where; missing parents are made.
    pub path: String,
    /// Permission bits; those of the file it replaces, or 0644, when absent.
    pub mode: Option<u32>,
    /// Whether to replace a file.
    pub overwrite: bool,
    /// Whom it belongs to; the sandbox's user when absent.
    pub user: Option<String>,
}

/// What the guest answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// It is done.
    Done,
    /// It could not be done.
    Fault(Fault),
    /// A process runs.
    Started {
        /// As seen in the sandbox.
        pid: u32,
    },
    /// A process has ended.
    Exited(Exit),
    /// The end of a [`Request::Read`].
    Read {
        /// Nothing more will come.
        done: bool,
        /// Bytes after `since_seq` that were not kept.
        lost_bytes: u64,
    },
    /// All processes known.
    Processes(Vec<ProcessInfo>),
    /// A file was written.
    Written {
        /// Its absolute path.
        path: String,
        /// Its size.
        size: u64,
    },
    /// A file is about to be sent.
    Opened {
        /// As the file system has it; more or less may come.
        size: u64,
    },
    /// The end of a file's content.
    Content {
        /// The whole file's size.
        size: u64,
        /// Whether the file goes on after what was sent.
        truncated: bool,
    },
    /// What is at a path, if anything.
    Stat(Option<FileEntry>),
    /// Whether there was anything to remove.
    Removed(bool),
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// 128+n when a signal ended it.
    pub code: u8,
    /// The signal, if one did.
    pub signal: Option<u8>,
    /// Ended because its time was up.
    pub timed_out: bool,
    /// The kernel killed it, or a part of it, for memory.
    pub oom_killed: bool,
    /// Since its start.
    pub duration_us: u64,
    /// What is kept of standard output.
    pub stdout: Kept,
    /// What is kept of standard error.
    pub stderr: Kept,
}

/// What is kept of one output stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// Bytes kept from the start; what follows them is from the end.
    pub head: u64,
    /// Bytes left out between.
    pub lost: u64,
}

/// One process, running or ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessInfo {
    /// Given by the host that started it.
    pub exec_id: String,
    /// As seen in the sandbox.
    pub pid: u32,
    /// A line for people.
    pub command: String,
    /// Since its start.
    pub age_ms: u64,
    /// Absent while it runs.
    pub exit: Option<Exit>,
}

/// What a path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileType {
    /// A regular file.
    File,
    /// A folder.
    Dir,
    /// A symbolic link.
    Symlink,
    /// A device, a socket or a FIFO.
    Other,
}

/// One name in a folder. Names are bytes: Linux promises no encoding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Absolute.
    pub path: Vec<u8>,
    /// What it is.
    pub file_type: FileType,
    /// In bytes.
    pub size: u64,
    /// Permission bits.
    pub mode: u32,
    /// Milliseconds since 1970.
    pub mtime_ms: i64,
    /// Where a link points.
    pub target: Option<Vec<u8>>,
}

/// Why something could not be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// For programs.
    pub code: FaultCode,
    /// For people: what was tried, with which value.
    pub message: String,
}

/// The kinds of fault; each is one public error code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FaultCode {
    /// `INVALID_ARGUMENT`
    InvalidArgument,
    /// `COMMAND_NOT_FOUND`
    CommandNotFound,
    /// `PROCESS_NOT_FOUND`
    ProcessNotFound,
    /// `FILE_NOT_FOUND`
    FileNotFound,
    /// `FILE_EXISTS`
    FileExists,
    /// `NOT_A_DIRECTORY`
    NotADirectory,
    /// `IS_A_DIRECTORY`
    IsADirectory,
    /// `PERMISSION_DENIED`
    PermissionDenied,
    /// `LIMIT_EXCEEDED`
    LimitExceeded,
    /// `INTERNAL`
    Internal,
}
