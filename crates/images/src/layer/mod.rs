//! Layers: reads archives, and makes unpacked folders. Their content is not trusted.

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
