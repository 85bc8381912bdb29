//! What the guest answers.

use serde::{Deserialize, Serialize};

#[allow(unused_imports, reason = "named in the docs")]
use crate::Request;
use crate::Setup;

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
    /// A process has ended; with what of it was killed, where it was not let to end by itself.
    Exited(Exit, Vec<Killed>),
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
    /// Whether the box is the asking session's now; if not, another one was first.
    Claimed(bool),
    /// How a sandbox is.
    Status(Status),
    /// Whether somebody listens at a port; if so, what follows is the connection.
    Connected(bool),
    /// What a sandbox uses.
    Stats(Stats),
    /// Which entries are not there just so, by their places in the list.
    Stale(Vec<u32>),
    /// A path without links and dots; what of it is not there is as it was.
    Resolved {
        /// Absolute.
        path: Vec<u8>,
    },
    /// The end of a search.
    Searched {
        /// There is more than was sent.
        truncated: bool,
        /// Files that were looked into.
        files: u64,
        /// Files that were not, because they are binary, too long or could not be read.
        skipped: u64,
    },
    /// A text was put in the place of another.
    Replaced {
        /// The file's absolute path.
        path: String,
        /// In so many places.
        count: u64,
    },
    /// A text is not there as often as it should be; nothing was changed.
    Occurs {
        /// So often.
        count: u64,
        /// In these lines, the first few.
        lines: Vec<u64>,
    },
}

/// A process that was killed with its command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Killed {
    /// As seen in the sandbox.
    pub pid: u32,
    /// A line for people.
    pub command: String,
}

/// What a sandbox uses, by its cgroup's own counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    /// Processor time so far.
    pub cpu_us: u64,
    /// Without what the kernel could drop at any time.
    pub memory_bytes: u64,
    /// At most so far.
    pub memory_peak_bytes: u64,
    /// Processes and threads.
    pub pids: u64,
    /// From disk so far.
    pub io_read_bytes: u64,
    /// To disk so far.
    pub io_write_bytes: u64,
    /// Disk space under the workdir.
    pub workspace_bytes: u64,
    /// Kills for memory so far.
    pub oom_kills: u64,
}

/// How a sandbox is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// As it is now: claimed, extended, bounded anew.
    pub setup: Setup,
    /// When it ends at the latest if nobody does anything; absent when never.
    pub expires_in_ms: Option<u64>,
    /// Disk space under the workdir, as last measured; zero where it is not watched.
    pub workspace_bytes: u64,
    /// Kills for memory so far.
    pub oom_kills: u64,
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
    /// Ended because the workspace grew past its limit while it wrote there.
    pub over_limit: bool,
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

/// What happened to a file or a folder. Paths are below the watched folder, and bytes; of a watched file, its name. An
/// empty one is the watched folder itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileChange {
    /// It appeared, with all that is below it told after it.
    Create(Vec<u8>),
    /// Its content, its mode, its owner or its times are others.
    Change(Vec<u8>),
    /// It is gone, with all that was below it.
    Delete(Vec<u8>),
    /// It has another name, and all below it with it. What was there before is gone.
    Rename {
        /// Its old path.
        from: Vec<u8>,
        /// Its new path.
        to: Vec<u8>,
    },
    /// More happened than could be told: what is below the watched folder must be looked at anew.
    Overflow,
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
