//! What the namespaces backend and the keeper of a box share: files in the state folder, written and read by programs of one
//! build. Nothing of it is on a stream.

use serde::{Deserialize, Serialize};

use crate::message::{MessageError, decode};

/// The file in a box's folder that holds its [`Plan`].
pub const PLAN: &str = "plan";

/// The socket in a box's folder through which further links come.
pub const SOCKET: &str = "socket";

/// The file in a box's folder with two pids: its keeper's, and PID 1's as seen from outside.
pub const KEEPER: &str = "keeper";

/// The file in a box's folder that marks a box which outlives its hosts: for how long, in milliseconds, with zero for ever. It is
/// written when a session claims the box, which may be after the box was made. Earlier versions leave it empty.
pub const LASTING: &str = "lasting";

/// The folders of a state folder.
pub const BOXES: &str = "boxes";
/// Links from claims to boxes.
pub const CLAIMS: &str = "claims";
/// Folders that are being removed.
pub const TRASH: &str = "trash";
/// [`ExitRecord`]s, by box. Boxes of earlier versions use this name too.
pub const EXIT_RECORDS: &str = "obituaries";
/// Locked by a program that removes a claim.
pub const CLAIMS_LOCK: &str = "claims.lock";

/// A box to make and supervise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The program that asked for it.
    pub host: u32,
    /// How long it may live without a host, in milliseconds, where [`LASTING`] says nothing; zero means for ever.
    pub orphan_ms: u64,
    /// The memory limit that the guest enforces, in bytes; zero means none.
    pub watched_memory: u64,
    /// PID 1's environment.
    pub env: Vec<(String, String)>,
    /// What it is made of.
    pub root: Root,
    /// What it writes goes here.
    pub storage: Storage,
    /// Whether only `folders` may be written.
    pub read_only: bool,
    /// Mounted into it.
    pub folders: Vec<Folder>,
    /// Open files of PID 1.
    pub open_files: Option<u64>,
    /// Bytes of `/dev/shm`.
    pub shared_memory: u64,
    /// Files that are locked, shared with others, for as long as it lives.
    pub leases: Vec<String>,
    /// The cgroups it joins.
    pub cgroups: Vec<Cgroup>,
}

impl Plan {
    /// As the content of a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        postcard::to_allocvec(self).unwrap_or_default()
    }

    /// Reads it.
    pub fn from_bytes(bytes: &[u8]) -> Result<Plan, MessageError> {
        decode(bytes)
    }
}

/// The file system of a box.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Root {
    /// The machine's own programs; all else is private.
    Host {
        /// Links to make in `/usr/local/bin`: name and target.
        links: Vec<(String, String)>,
    },
    /// Folders, the lowest first.
    Layers(Vec<String>),
}

/// Where the files go that a box writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Storage {
    /// In its folder.
    Disk,
    /// In memory, with this limit in bytes: where the disk cannot be the upper layer of an overlay.
    Memory(u64),
}

/// A folder that is mounted into a box, writable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Folder {
    /// Where.
    pub at: String,
    /// Of this machine; absent for one in memory.
    pub source: Option<String>,
    /// Of one in memory.
    pub bytes: u64,
}

/// A cgroup that a box joins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cgroup {
    /// On this machine; the keeper makes and removes it.
    pub folder: String,
    /// Below `/sys/fs/cgroup` in the box; empty for the second version's only one.
    pub at: String,
    /// Files, and what to write to them.
    pub settings: Vec<(String, String)>,
}

/// The exit of a box that its keeper did not end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitRecord {
    /// As in shells: 128 and the signal.
    pub exit_code: i32,
    /// Whether the kernel killed a process in it for memory.
    pub oom: bool,
}

impl ExitRecord {
    /// As the content of a file.
    pub fn to_bytes(self) -> Vec<u8> {
        postcard::to_allocvec(&self).unwrap_or_default()
    }

    /// Reads it.
    pub fn from_bytes(bytes: &[u8]) -> Result<ExitRecord, MessageError> {
        decode(bytes)
    }
}

/// Why there is no box: the keeper's report before it gives up. An empty report is success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The step that failed.
    pub step: Step,
    /// The kernel's error number; zero where there is none.
    pub errno: i32,
    /// For people.
    pub message: String,
}

impl Refusal {
    /// As bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        postcard::to_allocvec(self).unwrap_or_default()
    }

    /// Reads one; ignores what follows it.
    pub fn from_bytes(bytes: &[u8]) -> Option<Refusal> {
        postcard::take_from_bytes(bytes).ok().map(|(refusal, _)| refusal)
    }
}

/// A part of making a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// Reading the plan, finding the program that asked.
    Begin,
    /// New namespaces.
    Namespaces,
    /// User and group ids.
    Ids,
    /// Limits by cgroup.
    Cgroups,
    /// Gathering what the root is made of.
    Sources,
    /// The overlay.
    Overlay,
    /// `/proc`.
    Proc,
    /// `/dev`, `/sys` and other mounts.
    Mounts,
    /// Giving up privileges.
    Confinement,
    /// PID 1.
    Start,
}
