//! Requests of the host.

use serde::{Deserialize, Serialize};

use crate::{Bounds, Fingerprint, Glob, Grep, Replace, Setup};
#[allow(unused_imports, reason = "named in the docs")]
use crate::{Kind, Notice, Reply};

/// A request of the host: the first message on each channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Answered by [`Reply::Done`].
    Ping,
    /// Runs a command. See [`Output`] for what comes back.
    Start(Start),
    /// Attaches to a running or ended process: its output as in `output`, then [`Reply::Exited`].
    Attach {
        /// Which.
        exec_id: String,
        /// Only chunks after this one.
        since_seq: u64,
        /// How.
        output: Output,
    },
    /// Answered by the retained output after `since_seq`, then [`Reply::Read`].
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
    /// Renames, across file systems if needed. Answered by [`Reply::Done`].
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
    /// Gives a warm box to a session. Answered by [`Reply::Claimed`]; the first one wins.
    Claim(Setup),
    /// Answered by [`Reply::Status`].
    Status,
    /// Changes the lease, and counts as activity. Answered by [`Reply::Done`].
    Extend {
        /// The new idle time.
        idle_ms: Option<u64>,
        /// Milliseconds until its end, from now; zero means never.
        max_ms: Option<u64>,
    },
    /// Answered by [`Reply::Done`]; applies to commands that start from now on.
    SetBounds(Bounds),
    /// From now on this link gets notices of all commands. Answered by [`Reply::Done`].
    Watch,
    /// PID 1 ends, and the sandbox with it. Answered by [`Notice::Ending`].
    End,
    /// Changes the size of a process's terminal. Answered by [`Reply::Done`].
    Resize {
        /// Which.
        exec_id: String,
        /// The new one.
        size: TerminalSize,
    },
    /// Connects to a port on the sandbox's own loopback. Answered by [`Reply::Connected`]; then [`Kind::Data`] both ways,
    /// each way until its own [`Kind::End`]; then [`Reply::Done`].
    Connect {
        /// TCP.
        port: u16,
    },
    /// Answered by [`Reply::Stats`].
    Stats,
    /// Answered by a walk ([`crate::Record`]) as [`Kind::Data`], then [`Reply::Done`].
    Pack {
        /// A folder or a file; a link there is followed.
        path: String,
        /// What is left out.
        filter: Filter,
        /// Only these, by their paths below the folder.
        only: Option<Vec<Vec<u8>>>,
    },
    /// [`Kind::Data`] until [`Kind::End`] is a walk ([`crate::Record`]), which is built there; then [`Reply::Done`].
    Unpack {
        /// Where its root goes.
        path: String,
    },
    /// Answered by [`Kind::Data`] frames, each a `Vec<Fingerprint>` of what is below a folder, then [`Reply::Done`].
    Survey {
        /// Which folder.
        path: String,
        /// What is left out.
        filter: Filter,
    },
    /// Answered by [`Reply::Stale`].
    Compare {
        /// Which folder.
        path: String,
        /// What should be below it.
        entries: Vec<Fingerprint>,
    },
    /// Answered by [`Reply::Resolved`].
    Resolve {
        /// It may lead through links.
        path: String,
    },
    /// Answered by [`Reply::Done`] once the watch is complete; then [`Kind::Data`] frames, each a
    /// `Vec<FileChange>`, until the host closes the channel or what it watches is gone, which is [`Reply::Done`] again.
    WatchFiles {
        /// A folder, or one file.
        path: String,
        /// With all folders below it.
        recursive: bool,
    },
    /// Answered by [`Kind::Data`] frames, each a `Vec<FileEntry>`, then [`Reply::Searched`].
    Glob(Glob),
    /// Answered by [`Kind::Data`] frames, each a `Vec<Hit>`, then [`Reply::Searched`].
    Grep(Grep),
    /// Replaces text. Answered by [`Reply::Replaced`] or [`Reply::Occurs`].
    Replace(Replace),
    /// Answered by [`Reply::Opened`], [`Kind::Data`], then [`Reply::Content`].
    ReadLines {
        /// Of which file.
        path: String,
        /// The first one, counted from 1.
        from: u64,
        /// The last one.
        to: u64,
        /// At most so many bytes.
        limit: u64,
    },
    /// [`Kind::Data`] until [`Kind::End`] is the content of all of them, one after the other; then [`Reply::Done`].
    WriteMany(Vec<Content>),
}

/// One of several files to write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// Where; missing parents are made.
    pub path: String,
    /// Bytes of it in the data that follows.
    pub size: u64,
}

/// What to leave out of a tree.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    /// As in a `.gitignore` at the root.
    pub exclude: Vec<String>,
    /// By the tree's own `.gitignore` files, too.
    pub gitignore: bool,
}

/// A command to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// Chosen by the host, so that a repeated request after a broken link does not start it twice.
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
    /// Output buffer per stream: half for its start and half for its end.
    pub keep_bytes: u64,
    /// When to end it; zero means never.
    pub timeout_ms: u64,
    /// From TERM to KILL.
    pub grace_ms: u64,
    /// Whether it outlives its client.
    pub detached: bool,
    /// On a terminal of this size, where both output streams are one.
    pub terminal: Option<TerminalSize>,
    /// Bytes of the output that also go to a file in [`crate::LOG_DIR`].
    pub log_bytes: u64,
}

/// Of a terminal, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalSize {
    /// Width.
    pub cols: u16,
    /// Height.
    pub rows: u16,
}

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Through the sandbox's shell.
    Shell(String),
    /// Without a shell.
    Program(Vec<String>),
    /// The user's own shell, interactive.
    UserShell,
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
    /// The retained output is sent when the process has ended, then [`Reply::Exited`].
    Collect,
    /// Everything is sent as it comes, and a slow reader slows the process; then [`Reply::Exited`].
    Follow,
    /// [`Reply::Started`] at once and nothing more. A process whose output buffer is full waits some seconds for a first
    /// reader, so that reader loses nothing.
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
    /// Its owner; the command user when absent.
    pub user: Option<String>,
    /// Whether to append to an existing file.
    pub append: bool,
}
