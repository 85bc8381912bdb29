//! Replies of the guest.

use serde::{Deserialize, Serialize};

#[allow(unused_imports, reason = "named in the docs")]
use crate::Request;
use crate::Setup;

/// A reply of the guest.
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
    /// A process has ended; with the processes of its tree that were killed.
    Exited(Exit, Vec<Killed>),
    /// The end of a [`Request::Read`].
    Read {
        /// Nothing more will come.
        done: bool,
        /// Bytes after `since_seq` that were dropped.
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
    /// Whether the session owns the box now; if not, another one was first.
    Claimed(bool),
    /// The status of a sandbox.
    Status(Status),
    /// Whether a program listens on the port; if so, the connection follows.
    Connected(bool),
    /// What a sandbox uses.
    Stats(Stats),
    /// The entries that differ, by their index in the list.
    Stale(Vec<u32>),
    /// A path without links and dots; the part that does not exist is unchanged.
    Resolved {
        /// Absolute.
        path: Vec<u8>,
    },
    /// The end of a search.
    Searched {
        /// There are more results.
        truncated: bool,
        /// Files that were searched.
        files: u64,
        /// Files that were not, because they are binary, too long or could not be read.
        skipped: u64,
    },
    /// Text was replaced.
    Replaced {
        /// The file's absolute path.
        path: String,
        /// Number of replacements.
        count: u64,
    },
    /// The text does not occur as often as expected; nothing was changed.
    Occurs {
        /// Number of occurrences.
        count: u64,
        /// The lines of the first ones.
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
    /// Without what the kernel can reclaim.
    pub memory_bytes: u64,
    /// The maximum so far.
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

/// The status of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// As it is now, after claims, extensions and new bounds.
    pub setup: Setup,
    /// Time until its end if nothing happens; absent when it never ends.
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
    /// Ended by its timeout.
    pub timed_out: bool,
    /// The kernel killed it, or a process of its tree, for memory.
    pub oom_killed: bool,
    /// Since its start.
    pub duration_us: u64,
    /// Retained standard output.
    pub stdout: Kept,
    /// Retained standard error.
    pub stderr: Kept,
    /// Ended because the workspace grew past its limit while it wrote there.
    pub over_limit: bool,
}

/// Retained output of one stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// Bytes retained from the start; the rest is from the end.
    pub head: u64,
    /// Bytes dropped in between.
    pub lost: u64,
}

/// One process, running or ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessInfo {
    /// Chosen by the host that started it.
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
    /// It appeared; what is below it follows.
    Create(Vec<u8>),
    /// Its content, mode, owner or times changed.
    Change(Vec<u8>),
    /// It is gone, with everything below it.
    Delete(Vec<u8>),
    /// It was renamed, with everything below it. What had the new name before is gone.
    Rename {
        /// Its old path.
        from: Vec<u8>,
        /// Its new path.
        to: Vec<u8>,
    },
    /// Events were dropped: everything below the watched folder may have changed.
    Overflow,
}

/// Why a request failed.
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
