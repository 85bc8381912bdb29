//! Files in a sandbox.

mod access;
mod read;
mod write;

pub(crate) use access::check_path;
pub use read::{FileContent, FileReader};
pub use write::{FileWriter, WriteRequest};

pub(super) use access::MAX_PATH;
pub(super) use write::send_all;

use cofferdam_protocol::{FileEntry, Reply, Request};

use super::Guest;
use super::channel::unexpected;
use super::link::{Event, LinkEnd};
use crate::{Error, ErrorCode, Result};

/// A folder to list.
#[derive(Debug, Clone)]
pub struct ListRequest {
    /// Absolute, or under the workdir.
    pub path: String,
    /// Include all subfolders.
    pub recursive: bool,
    /// More entries are an error.
    pub max_entries: u64,
}

impl Guest {
    /// Lists a folder.
    pub async fn list(&self, list: &ListRequest) -> Result<Vec<FileEntry>> {
        self.admit(&list.path).await?;
        // One more than allowed, to detect that there are more.
        let request = Request::List {
            path: list.path.clone(),
            recursive: list.recursive,
            max_entries: list.max_entries.saturating_add(1),
        };
        let request = &request;
        self.with_link(|link| async move {
            let mut channel = match link.request(request, 1)? {
                Ok(channel) => channel,
                Err(error) => return Ok(Err(error)),
            };
            let mut entries: Vec<FileEntry> = Vec::new();
            loop {
                match channel.next().await? {
                    Event::Data(data) => {
                        let batch: Vec<FileEntry> =
                            cofferdam_protocol::decode(&data).map_err(|error| LinkEnd::Protocol(error.to_string()))?;
                        entries.extend(batch);
                        if entries.len() as u64 > list.max_entries {
                            return Ok(Err(too_many(list)));
                        }
                    }
                    Event::Reply(Reply::Done) => return Ok(Ok(entries)),
                    Event::Reply(Reply::Fault(fault)) => return Ok(Err(fault.into())),
                    _ => return Ok(Err(unexpected())),
                }
            }
        })
        .await
    }

    /// The entry at a path; does not follow a link.
    pub async fn stat(&self, path: &str) -> Result<Option<FileEntry>> {
        self.admit(path).await?;
        self.call(&Request::Stat { path: path.to_owned() }, |reply| match reply {
            Reply::Stat(entry) => Some(entry),
            _ => None,
        })
        .await
    }

    /// Creates a folder and its parents.
    pub async fn mkdir(&self, path: &str, mode: Option<u32>) -> Result<()> {
        self.admit(path).await?;
        self.perform(&Request::Mkdir { path: path.to_owned(), mode }).await
    }

    /// Moves a file or a folder.
    pub async fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.admit_tree(from).await?;
        self.admit_tree(to).await?;
        self.perform(&Request::Move { from: from.to_owned(), to: to.to_owned() }).await
    }

    /// Copies a file or a whole folder.
    pub async fn copy(&self, from: &str, to: &str) -> Result<()> {
        self.admit_tree(from).await?;
        self.admit_tree(to).await?;
        self.perform(&Request::Copy { from: from.to_owned(), to: to.to_owned() }).await
    }

    /// Removes a file or a folder; false when nothing was there.
    pub async fn remove(&self, path: &str, recursive: bool) -> Result<bool> {
        match recursive {
            true => self.admit_tree(path).await?,
            false => self.admit(path).await?,
        }
        self.call(&Request::Remove { path: path.to_owned(), recursive }, |reply| match reply {
            Reply::Removed(removed) => Some(removed),
            _ => None,
        })
        .await
    }
}

fn too_many(list: &ListRequest) -> Error {
    let message =
        format!("\"{}\" has more than {} entries; raise maxEntries, or list a part of it", list.path, list.max_entries);
    Error::new(ErrorCode::LimitExceeded, message).with("maxEntries", list.max_entries)
}
