//! Files in a sandbox.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use cofferdam_protocol::{FileEntry, Reply, Request, Write};

use super::channel::{Channel, unexpected};
use super::connection::Guest;
use super::link::{Attempt, Event, Link, LinkEnd};
use crate::file_policy::FilePolicy;
use crate::{Error, ErrorCode, Result};

/// The longest path Linux takes, with its closing NUL.
pub(super) const MAX_PATH: usize = 4096;

/// Room that is made at once for a file of which the guest says how long it is.
const MAX_RESERVE: u64 = 256 * 1024 * 1024;

/// A file to write.
#[derive(Debug, Clone, Default)]
pub struct WriteRequest {
    /// Absolute, or under the workdir.
    pub path: String,
    /// Permission bits.
    pub mode: Option<u32>,
    /// Refuse to replace a file.
    pub keep_existing: bool,
    /// Whom it belongs to.
    pub user: Option<String>,
    /// Add to the end of the file that is there.
    pub append: bool,
}

impl WriteRequest {
    fn to_request(&self) -> Result<Request> {
        check_path(&self.path)?;
        if self.append && self.keep_existing {
            let message =
                "append: true adds to a file that is there, and overwrite: false refuses one; leave one of them out";
            return Err(Error::invalid(message));
        }
        Ok(Request::Write(Write {
            path: self.path.clone(),
            mode: self.mode,
            overwrite: !self.keep_existing,
            user: self.user.clone(),
            append: self.append,
        }))
    }
}

/// A folder to list.
#[derive(Debug, Clone)]
pub struct ListRequest {
    /// Absolute, or under the workdir.
    pub path: String,
    /// With everything below it.
    pub recursive: bool,
    /// More is an error.
    pub max_entries: u64,
}

/// What was read of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileContent {
    /// From the offset on.
    pub bytes: Vec<u8>,
    /// The file goes on after them.
    pub truncated: bool,
    /// The whole file's size.
    pub size: u64,
}

/// A path that a guest may be asked about.
pub(crate) fn check_path(path: &str) -> Result<()> {
    let problem = if path.is_empty() {
        "it is empty"
    } else if path.contains('\0') {
        "it holds a NUL byte"
    } else if path.len() >= MAX_PATH {
        "it is longer than Linux allows"
    } else {
        return Ok(());
    };
    let shown: String = path.chars().take(80).collect();
    Err(Error::invalid(format!("{shown:?} is not a path: {problem}")).with("path", shown))
}

impl Guest {
    /// Whether a path may be used: it is one, and the policy does not block it.
    pub(super) async fn admit(&self, path: &str) -> Result<()> {
        self.admit_with(path, FilePolicy::admit).await
    }

    /// The same for a path with all below it.
    pub(super) async fn admit_tree(&self, path: &str) -> Result<()> {
        self.admit_with(path, FilePolicy::admit_tree).await
    }

    /// Whether so many files may be written at once.
    pub(super) fn admit_files(&self, count: usize) -> Result<()> {
        self.files.admit_count(count)
    }

    async fn admit_with(&self, path: &str, admit: impl Fn(&FilePolicy, &Path) -> Result<()>) -> Result<()> {
        check_path(path)?;
        if self.files.blocks_nothing() {
            return Ok(());
        }
        let workdir = self.hello().map(|hello| hello.setup.workdir).unwrap_or_default();
        admit(&self.files, &Path::new(&workdir).join(path))?;
        // A link in the sandbox may lead to it by another name. Only the guest sees that.
        let resolved = self
            .call_now(&Request::Resolve { path: path.to_owned() }, |reply| match reply {
                Reply::Resolved { path } => Some(path),
                _ => None,
            })
            .await?;
        admit(&self.files, Path::new(&*String::from_utf8_lossy(&resolved)))
    }

    /// Writes a whole file; gives its absolute path and its size.
    pub async fn write_file(&self, write: &WriteRequest, content: Bytes) -> Result<(String, u64)> {
        let request = write.to_request()?;
        self.admit(&write.path).await?;
        self.files.admit_size(&write.path, content.len() as u64)?;
        let (request, content) = (&request, &[content]);
        let attempt = |link| async move { send_all(link, request, content).await };
        let reply = if write.append { self.with_link_once(attempt).await } else { self.with_link(attempt).await };
        reply.and_then(written)
    }

    /// Begins a file whose content comes piece by piece.
    pub async fn file_writer(self: &Arc<Self>, write: &WriteRequest) -> Result<FileWriter> {
        let request = write.to_request()?;
        self.admit(&write.path).await?;
        let channel = self.with_link(|link| std::future::ready(link.request(&request, 1))).await?;
        Ok(FileWriter { guest: Arc::clone(self), channel, path: write.path.clone(), size: 0 })
    }

    /// Reads at most `limit` bytes from `offset` on.
    pub async fn read_file(&self, path: &str, offset: u64, limit: u64) -> Result<FileContent> {
        self.admit(path).await?;
        self.read_content(&Request::ReadFile { path: path.to_owned(), offset, limit }, offset, limit).await
    }

    pub(super) async fn read_content(&self, request: &Request, offset: u64, limit: u64) -> Result<FileContent> {
        self.with_link(|link| async move {
            let mut channel = match link.request(request, 2)? {
                Ok(channel) => channel,
                Err(error) => return Ok(Err(error)),
            };
            let mut bytes = Vec::new();
            loop {
                match channel.next().await? {
                    // Only a hint, and from the guest: room is made for it, but not more than a call may well need.
                    Event::Reply(Reply::Opened { size }) => {
                        bytes.reserve_exact(size.saturating_sub(offset).min(limit).min(MAX_RESERVE) as usize);
                    }
                    Event::Data(data) if bytes.len() as u64 + data.len() as u64 <= limit => {
                        bytes.extend_from_slice(&data);
                    }
                    Event::Reply(Reply::Content { size, truncated }) => {
                        return Ok(Ok(FileContent { bytes, truncated, size }));
                    }
                    Event::Reply(Reply::Fault(fault)) => return Ok(Err(fault.into())),
                    _ => return Ok(Err(unexpected())),
                }
            }
        })
        .await
    }

    /// Begins to read a file piece by piece.
    pub async fn file_reader(self: &Arc<Self>, path: &str, offset: u64, limit: u64) -> Result<FileReader> {
        self.admit(path).await?;
        let request = Request::ReadFile { path: path.to_owned(), offset, limit };
        let channel = self.with_link(|link| std::future::ready(link.request(&request, 2))).await?;
        Ok(FileReader { guest: Arc::clone(self), channel: Some(channel) })
    }

    /// Everything in a folder.
    pub async fn list(&self, list: &ListRequest) -> Result<Vec<FileEntry>> {
        self.admit(&list.path).await?;
        // One more than may be: so that it shows when there are more.
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

    /// What is at a path; a link is not followed.
    pub async fn stat(&self, path: &str) -> Result<Option<FileEntry>> {
        self.admit(path).await?;
        self.call(&Request::Stat { path: path.to_owned() }, |reply| match reply {
            Reply::Stat(entry) => Some(entry),
            _ => None,
        })
        .await
    }

    /// Makes a folder and its parents.
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

    /// Removes; false when nothing was there.
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

    /// All processes that were started from outside and are still known.
    pub async fn processes(&self) -> Result<Vec<cofferdam_protocol::ProcessInfo>> {
        self.call(&Request::Processes, |reply| match reply {
            Reply::Processes(list) => Some(list),
            _ => None,
        })
        .await
    }
}

/// Makes a request with all its data, and gives the answer.
pub(super) async fn send_all(link: Arc<Link>, request: &Request, contents: &[Bytes]) -> Attempt<Reply> {
    let mut channel = match link.request(request, 1)? {
        Ok(channel) => channel,
        Err(error) => return Ok(Err(error)),
    };
    let sender = channel.sender();
    let sending = async {
        for content in contents {
            sender.send(content.clone()).await?;
        }
        sender.end();
        std::future::pending::<Result<(), LinkEnd>>().await
    };
    tokio::select! {
        // An early answer is a refusal: what was not sent yet need not be.
        reply = channel.reply() => reply,
        Err(end) = sending => Err(end),
    }
}

fn written(reply: Reply) -> Result<(String, u64)> {
    match reply {
        Reply::Written { path, size } => Ok((path, size)),
        _ => Err(unexpected()),
    }
}

fn too_many(list: &ListRequest) -> Error {
    let message =
        format!("\"{}\" has more than {} entries; raise maxEntries, or list a part of it", list.path, list.max_entries);
    Error::new(ErrorCode::LimitExceeded, message).with("maxEntries", list.max_entries)
}

/// A file that is being written. It appears when finished; dropped before that, it never was.
pub struct FileWriter {
    guest: Arc<Guest>,
    channel: Channel,
    path: String,
    size: u64,
}

impl FileWriter {
    /// Adds to the content, as fast as the sandbox takes it.
    pub async fn write(&mut self, bytes: Bytes) -> Result<()> {
        self.size += bytes.len() as u64;
        self.guest.files.admit_size(&self.path, self.size)?;
        let sender = self.channel.sender();
        let outcome = tokio::select! {
            biased;
            // It answers before the end only to refuse.
            reply = self.channel.reply() => reply.map(|reply| Err(reply.err().unwrap_or_else(unexpected))),
            sent = sender.send(bytes) => sent.map(Ok),
        };
        match outcome {
            Ok(outcome) => outcome,
            Err(end) => Err(self.guest.explain(end).await),
        }
    }

    /// Makes the file appear; gives its absolute path and its size.
    pub async fn finish(mut self) -> Result<(String, u64)> {
        self.channel.sender().end();
        match self.channel.reply().await {
            Ok(reply) => reply.and_then(written),
            Err(end) => Err(self.guest.explain(end).await),
        }
    }
}

/// A file that is being read.
pub struct FileReader {
    guest: Arc<Guest>,
    channel: Option<Channel>,
}

impl FileReader {
    /// The next piece; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>> {
        let Some(channel) = &mut self.channel else { return Ok(None) };
        let mut event = channel.next().await;
        if let Ok(Event::Reply(Reply::Opened { .. })) = event {
            event = channel.next().await;
        }
        match event {
            Ok(Event::Data(bytes)) => Ok(Some(bytes)),
            Ok(Event::Reply(Reply::Content { .. })) => {
                self.channel = None;
                Ok(None)
            }
            Ok(Event::Reply(Reply::Fault(fault))) => Err(fault.into()),
            Ok(_) => Err(unexpected()),
            Err(end) => Err(self.guest.explain(end).await),
        }
    }
}
