//! Layers: packed ones read, unpacked ones kept. What they contain was made by strangers.

mod budget;
mod content;
mod expand;
mod name;
mod record;
mod root;
mod tar_header;
mod tarball;
mod unpack;
mod whiteout;

pub use budget::Limits;
pub(crate) use budget::{Budget, Metered};
pub(crate) use expand::expand;
pub(crate) use record::{FILES, LayerRecord, implied};
pub use record::{LeftOwner, left_owners};
pub(crate) use tarball::{Kind, Tarball, unreadable};
pub(crate) use unpack::unpack;
