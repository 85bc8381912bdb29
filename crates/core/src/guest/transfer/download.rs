//! Downloads: from a sandbox to the host.

use std::io::ErrorKind;
use std::time::Instant;

use bytes::Bytes;
use cofferdam_protocol::{FileType, Fingerprint, Reply, Request, TreeError, decode};
use cofferdam_tree::{Report, Trouble, UnpackOptions, Unpacker};

use super::{ProgressReporter, TransferReport, TransferRequest, blocking, check_host_path, is_same};
use crate::Result;
use crate::guest::channel::{Channel, unexpected};
use crate::guest::connection::Guest;
use crate::guest::link::{Event, LinkEnd};

/// Drops setuid and setgid: a file of the sandbox must not grant rights on the host.
const MODE_MASK: u32 = 0o1777;

/// The most blocks to unpack in one go.
const MAX_BLOCKS: usize = 16;

impl Guest {
    /// Downloads a file or a whole folder to `host_path` itself, not into it. An existing folder is merged: files that exist
    /// only there stay.
    pub async fn download(&self, request: &TransferRequest) -> Result<TransferReport> {
        let began = Instant::now();
        self.admit_tree(&request.path).await?;
        check_host_path(&request.host_path)?;
        request.rules()?;
        let names_folder = request.host_path.as_os_str().as_encoded_bytes().ends_with(b"/");
        let is_file =
            names_folder && self.stat(&request.path).await?.is_some_and(|there| there.file_type == FileType::File);
        let request = &request.fetched_into_folder(is_file);
        let mut progress = ProgressReporter::new(request, None);
        let report = match request.host_path.metadata().ok().filter(|_| request.sync) {
            Some(here) if here.is_dir() => self.download_stale(request, &mut progress).await?,
            Some(here) if self.stat(&request.path).await?.is_some_and(|there| is_same(&there, &here)) => {
                Report::default()
            }
            _ => self.unpack(request, None, &mut progress).await?,
        };
        Ok(TransferReport::new(report, began))
    }

    /// Compares the sandbox's tree with the host's, and downloads what differs, in batches.
    async fn download_stale(&self, request: &TransferRequest, progress: &mut ProgressReporter) -> Result<Report> {
        let survey = Request::Survey { path: request.path.clone(), filter: request.filter() };
        let mut channel = self.with_link(|link| std::future::ready(link.request(&survey, 1))).await?;
        let mut whole = Report::default();
        while let Some(batch) = self.next_batch(&mut channel).await? {
            let root = request.host_path.clone();
            let stale = blocking(move || {
                let stale = cofferdam_tree::stale(&root, &batch).map_err(|error| match error.kind() {
                    // A guest must not send a path that leads out of the tree.
                    ErrorKind::InvalidInput => Trouble::Stream(TreeError::BadName),
                    _ => Trouble::Io { doing: "compare", path: root.clone(), error },
                })?;
                Ok(stale.into_iter().map(|index| batch[index as usize].path.clone()).collect::<Vec<_>>())
            })
            .await?;
            if !stale.is_empty() {
                whole.add(self.unpack(request, Some(stale), progress).await?);
                progress.before = whole.clone();
            }
        }
        Ok(whole)
    }

    async fn next_batch(&self, channel: &mut Channel) -> Result<Option<Vec<Fingerprint>>> {
        match channel.next().await {
            Ok(Event::Data(data)) => match decode(&data) {
                Ok(batch) => Ok(Some(batch)),
                Err(error) => Err(LinkEnd::Protocol(error.to_string()).into()),
            },
            Ok(Event::Reply(Reply::Done)) => Ok(None),
            Ok(Event::Reply(Reply::Fault(fault))) => Err(fault.into()),
            Ok(_) => Err(unexpected()),
            Err(end) => Err(self.explain(end).await),
        }
    }

    async fn unpack(
        &self,
        request: &TransferRequest,
        only: Option<Vec<Vec<u8>>>,
        progress: &mut ProgressReporter,
    ) -> Result<Report> {
        let pack = Request::Pack { path: request.path.clone(), filter: request.filter(), only };
        let mut channel = self.with_link(|link| std::future::ready(link.request(&pack, 1))).await?;
        let options = UnpackOptions {
            owner: None,
            mode_mask: MODE_MASK,
            ceilings: self.ceilings(),
            make_parent: |folder, _| std::fs::create_dir_all(folder),
        };
        let mut unpacker = Unpacker::new(&request.host_path, options);
        loop {
            let (blocks, is_over) = self.gather(&mut channel).await?;
            // Meanwhile, the guest sends on within its window.
            unpacker = blocking(move || {
                blocks.iter().try_for_each(|block| unpacker.take(block))?;
                Ok(unpacker)
            })
            .await?;
            progress.report(unpacker.report(), &unpacker.current());
            if is_over {
                progress.report_now(unpacker.report(), &unpacker.current());
                return blocking(move || unpacker.finish()).await;
            }
        }
    }

    /// The blocks received, and whether they were the last.
    async fn gather(&self, channel: &mut Channel) -> Result<(Vec<Bytes>, bool)> {
        let mut blocks = Vec::new();
        loop {
            match channel.next().await {
                Ok(Event::Data(bytes)) => blocks.push(bytes),
                Ok(Event::Reply(Reply::Done)) => return Ok((blocks, true)),
                Ok(Event::Reply(Reply::Fault(fault))) => return Err(fault.into()),
                Ok(_) => return Err(unexpected()),
                Err(end) => return Err(self.explain(end).await),
            }
            if blocks.len() >= MAX_BLOCKS || !channel.has_more() {
                return Ok((blocks, false));
            }
        }
    }
}
