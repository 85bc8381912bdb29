//! Files of the sandbox, on behalf of the host: with root's rights; the command user owns new files.
//!
//! All of it may block, so all of it runs on the helper threads, whole operations at a time. No path can lead out of
//! the sandbox: nothing else is visible.

mod blocks;
mod content;
mod draft;
mod lines;
mod listing;
mod many;
mod place;
mod replace;
mod search;
mod transfer;
mod tree;
mod watch;

pub(crate) use content::{read, write};
pub(crate) use lines::read_lines;
pub(crate) use listing::{list, stat};
pub(crate) use many::write_many;
pub(crate) use place::Place;
pub(crate) use replace::replace;
pub(crate) use search::{glob, grep};
pub(crate) use transfer::{compare, pack, resolve, survey, unpack};
pub(crate) use tree::{copy, make_dirs, mkdir, own, own_path, remove, rename};
pub(crate) use watch::watch;
