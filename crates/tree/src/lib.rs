//! Folders as streams, the same on both ends of a link: what one end packs, the other unpacks.
//!
//! Everything here goes from open folder to open folder, by single names, and follows no symbolic link: whatever is swapped
//! during a walk, nothing outside the given folder is read or written. Memory is bounded by a folder's depth and a buffer. All
//! calls block.

mod compare;
mod draft;
mod drafts;
mod folder;
mod pack;
mod reading;
mod report;
mod rules;
mod select;
mod trouble;
mod unpack;
mod walk;

pub use compare::{Survey, stale};
pub use draft::Owner;
pub use drafts::{Fate, draft_fate, draft_name};
pub use folder::Folder;
pub use pack::Packer;
pub use report::{Ceilings, Report, Skipped};
pub use rules::Rules;
pub use trouble::{Trouble, io_fault};
pub use unpack::{UnpackOptions, Unpacker};
pub use walk::{Kind, Step, Walk};
