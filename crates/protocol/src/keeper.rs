//! What the namespaces backend tells the keeper of a box. Not on the stream: it is a file in the box's own folder, written
//! by the core and read by the keeper, which come from one build.

use serde::{Deserialize, Serialize};

use crate::Setup;
use crate::message::{MessageError, decode};

/// The file in a box's folder that holds its [`Plan`].
pub const PLAN: &str = "plan";

/// The socket in a box's folder through which further links come.
pub const SOCKET: &str = "socket";

/// The file in a box's folder with two numbers: its keeper's, and PID 1's as seen from outside.
pub const KEEPER: &str = "keeper";

/// The file in a box's folder that is there when the box shall outlive its hosts; it may come later than the box.
pub const LASTING: &str = "lasting";

/// The folders of a state folder.
pub const BOXES: &str = "boxes";
/// Links from claims to boxes.
pub const CLAIMS: &str = "claims";
/// What is on its way out.
pub const TRASH: &str = "trash";
/// How boxes ended that did not end by themselves.
pub const OBITUARIES: &str = "obituaries";
/// Locked by whoever removes a claim.
pub const CLAIMS_LOCK: &str = "claims.lock";

/// A box to make and keep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The program that asked for it.
    pub host: u32,
    /// What PID 1 is told.
    pub setup: Setup,
    /// PID 1's environment.
    pub env: Vec<(String, String)>,
    /// What it is made of.
    pub root: Root,
    /// Where what it writes is kept.
    pub storage: Storage,
    /// Whether only what is mounted besides may be written.
    pub read_only: bool,
    /// Mounted besides.
    pub folders: Vec<Folder>,
    /// Open files of PID 1.
    pub open_files: Option<u64>,
    /// Bytes of `/dev/shm`.
    pub shared_memory: u64,
    /// Files that are locked, shared with others, for as long as it lives.
    pub leases: Vec<String>,
    /// Which it joins.
    pub cgroups: Vec<Cgroup>,
}

impl Plan {
    /// As a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        postcard::to_allocvec(self).unwrap_or_default()
    }

    /// The other way around.
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

/// Where what a box writes is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Storage {
    /// In its folder.
    Disk,
    /// In memory, at most so many bytes: where the disk cannot be the upper layer of an overlay.
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
    /// On this machine; made by the keeper, and removed.
    pub folder: String,
    /// Below `/sys/fs/cgroup` in the box; empty for the second version's only one.
    pub at: String,
    /// Files and what is written to them.
    pub settings: Vec<(String, String)>,
}

/// How a box ended that did not end by itself, as its keeper saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Obituary {
    /// As shells say it: 128 and the signal.
    pub exit_code: i32,
    /// Whether the kernel killed for memory in it.
    pub oom: bool,
}

impl Obituary {
    /// As a file.
    pub fn to_bytes(self) -> Vec<u8> {
        postcard::to_allocvec(&self).unwrap_or_default()
    }

    /// The other way around.
    pub fn from_bytes(bytes: &[u8]) -> Result<Obituary, MessageError> {
        decode(bytes)
    }
}

/// Why there is no box: what the keeper says before it gives up. Silence is success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Where it came to an end.
    pub step: Step,
    /// The kernel's word; zero where it has none.
    pub errno: i32,
    /// For people.
    pub message: String,
}

impl Refusal {
    /// As it is said.
    pub fn to_bytes(&self) -> Vec<u8> {
        postcard::to_allocvec(self).unwrap_or_default()
    }

    /// The other way around; what comes after the first one does not count.
    pub fn from_bytes(bytes: &[u8]) -> Option<Refusal> {
        postcard::take_from_bytes(bytes).ok().map(|(refusal, _)| refusal)
    }
}

/// A part of making a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// Reading the plan, finding who asked.
    Begin,
    /// New namespaces.
    Namespaces,
    /// Who is who in them.
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
    /// Giving up what a sandbox must not have.
    Confinement,
    /// PID 1.
    Start,
}
