//! Uploads: from the host into a sandbox.

use std::time::Instant;

use bytes::Bytes;
use cofferdam_protocol::{FileType, Fingerprint, Reply, Request};
use cofferdam_tree::{Packer, Report, Rules, Survey, Trouble};

use super::{BLOCK, ProgressReporter, TransferReport, TransferRequest, blocking, check_host_path, is_same};
use crate::guest::channel::{Channel, unexpected};
use crate::guest::connection::Guest;
use crate::guest::link::LinkEnd;
use crate::{Error, Result};

/// Entries compared per request.
const COMPARED: usize = 1000;

impl Guest {
    /// Uploads a file or a whole folder to `path` itself, not into it. An existing folder is merged: files that exist only
    /// there stay.
    pub async fn upload(&self, request: &TransferRequest) -> Result<TransferReport> {
        let began = Instant::now();
        self.admit_tree(&request.path).await?;
        check_host_path(&request.host_path)?;
        let rules = request.rules()?;
        let path = request.host_path.clone();
        let metadata =
            blocking(move || path.metadata().map_err(|error| Trouble::Io { doing: "read", path: path.clone(), error }))
                .await?;
        let request = &request.sent_into_folder(!metadata.is_dir());
        let report = if !request.sync {
            self.upload_all(request, rules).await?
        } else if metadata.is_dir() {
            self.upload_stale(request, rules).await?
        } else if self.stat(&request.path).await?.is_some_and(|there| is_same(&there, &metadata)) {
            Report::default()
        } else {
            self.upload_all(request, rules).await?
        };
        Ok(TransferReport::new(report, began))
    }

    async fn upload_all(&self, request: &TransferRequest, rules: Rules) -> Result<Report> {
        let path = request.host_path.clone();
        let ceilings = self.ceilings();
        let packer = blocking(move || Packer::open(&path, rules, ceilings)).await?;
        let mut upload = Upload::begin(self, request).await?;
        let packer = upload.send(packer).await?;
        upload.finish(packer).await
    }

    /// Walks the host's tree, asks which entries differ, and uploads those, in batches.
    async fn upload_stale(&self, request: &TransferRequest, rules: Rules) -> Result<Report> {
        let is_there = self.stat(&request.path).await?.is_some_and(|entry| entry.file_type != FileType::File);
        if !is_there {
            return self.upload_all(request, rules).await;
        }
        let (root, ceilings) = (request.host_path.clone(), self.ceilings());
        let (mut survey, mut packer) = blocking(move || {
            let survey =
                Survey::new(&root, rules).map_err(|error| Trouble::Io { doing: "read", path: root.clone(), error })?;
            Ok((survey, Packer::selecting(&root, ceilings)?))
        })
        .await?;
        let mut upload = Upload::begin(self, request).await?;
        loop {
            let (next, batch) = blocking(move || {
                let batch: Vec<Fingerprint> = survey.by_ref().take(COMPARED).collect();
                Ok((survey, batch))
            })
            .await?;
            survey = next;
            if batch.is_empty() {
                break;
            }
            let stale = self.stale(&request.path, &batch).await?;
            packer.select(stale.into_iter().map(|index| batch[index].path.clone()));
            packer = upload.send(packer).await?;
        }
        packer.close();
        let packer = upload.send(packer).await?;
        upload.finish(packer).await
    }

    async fn stale(&self, path: &str, batch: &[Fingerprint]) -> Result<Vec<usize>> {
        let compare = Request::Compare { path: path.to_owned(), entries: batch.to_vec() };
        let stale = self
            .call(&compare, |reply| match reply {
                Reply::Stale(stale) => Some(stale),
                _ => None,
            })
            .await?;
        let stale: Vec<usize> = stale.into_iter().map(|index| index as usize).collect();
        if stale.len() > batch.len() || stale.iter().any(|index| *index >= batch.len()) {
            return Err(unexpected());
        }
        Ok(stale)
    }
}

/// A running upload. Dropped early, it leaves no partial file.
struct Upload<'a> {
    guest: &'a Guest,
    channel: Channel,
    progress: ProgressReporter,
}

impl<'a> Upload<'a> {
    async fn begin(guest: &'a Guest, request: &TransferRequest) -> Result<Upload<'a>> {
        let unpack = Request::Unpack { path: request.path.clone() };
        let channel = guest.with_link(|link| std::future::ready(link.request(&unpack, 1))).await?;
        Ok(Upload { guest, channel, progress: ProgressReporter::new(request, None) })
    }

    /// Sends everything the packer has now. Packs the next block while one is sent.
    async fn send(&mut self, packer: Packer) -> Result<Packer> {
        let mut next = tokio::spawn(fill(packer));
        loop {
            let (packer, block, more) = next.await.map_err(Error::panicked)??;
            self.progress.report(packer.report(), packer.current());
            if !more {
                self.send_block(block).await?;
                return Ok(packer);
            }
            next = tokio::spawn(fill(packer));
            self.send_block(block).await?;
        }
    }

    async fn send_block(&mut self, block: Vec<u8>) -> Result<()> {
        let sender = self.channel.sender();
        let outcome = tokio::select! {
            biased;
            // It replies before the end only to refuse.
            reply = self.channel.reply() => reply.map(|reply| Err(reply.err().unwrap_or_else(unexpected))),
            sent = sender.send(Bytes::from(block)) => sent.map(Ok),
        };
        self.explained(outcome).await
    }

    async fn finish(mut self, packer: Packer) -> Result<Report> {
        self.channel.sender().end();
        let outcome = self.channel.reply().await;
        match self.explained(outcome).await? {
            Reply::Done => {}
            _ => return Err(unexpected()),
        }
        self.progress.report_now(packer.report(), packer.current());
        Ok(packer.into_report())
    }

    async fn explained<T>(&self, outcome: Result<Result<T>, LinkEnd>) -> Result<T> {
        match outcome {
            Ok(outcome) => outcome,
            Err(end) => Err(self.guest.explain(end).await),
        }
    }
}

async fn fill(mut packer: Packer) -> Result<(Packer, Vec<u8>, bool)> {
    blocking(move || {
        let mut block = Vec::with_capacity(BLOCK + 16 * 1024);
        let more = packer.fill(&mut block, BLOCK)?;
        Ok((packer, block, more))
    })
    .await
}
