//! From a sandbox to the host.

use std::io::ErrorKind;
use std::time::Instant;

use bytes::Bytes;
use cofferdam_protocol::{FileType, Fingerprint, Reply, Request, TreeError, decode};
use cofferdam_tree::{Report, Trouble, UnpackOptions, Unpacker};

use super::{Teller, TransferReport, TransferRequest, blocking, check_host_path, is_same};
use crate::Result;
use crate::guest::channel::{Channel, unexpected};
use crate::guest::connection::Guest;
use crate::guest::link::{Event, LinkEnd};

/// A file of the sandbox must not lend its owner's rights to whoever runs it on the host.
const MODE_MASK: u32 = 0o1777;

/// Blocks that are unpacked in one go, where they are there.
const GATHERED: usize = 16;

impl Guest {
    /// Carries a file, or a folder with all below it, out of the sandbox: to the path itself, not into it. A folder that is
    /// there already gets what is new, and keeps what is only there.
    pub async fn download(&self, request: &TransferRequest) -> Result<TransferReport> {
        let began = Instant::now();
        self.admit_tree(&request.path).await?;
        check_host_path(&request.host_path)?;
        request.rules()?;
        let names_folder = request.host_path.as_os_str().as_encoded_bytes().ends_with(b"/");
        let is_file =
            names_folder && self.stat(&request.path).await?.is_some_and(|there| there.file_type == FileType::File);
        let request = &request.fetched_into_folder(is_file);
        let mut teller = Teller::new(request, None);
        let report = match request.host_path.metadata().ok().filter(|_| request.sync) {
            Some(here) if here.is_dir() => self.download_stale(request, &mut teller).await?,
            Some(here) if self.stat(&request.path).await?.is_some_and(|there| is_same(&there, &here)) => {
                Report::default()
            }
            _ => self.unpack(request, None, &mut teller).await?,
        };
        Ok(TransferReport::new(report, began))
    }

    /// Looks through the sandbox's tree, and fetches what is not on the host just so, a batch at a time.
    async fn download_stale(&self, request: &TransferRequest, teller: &mut Teller) -> Result<Report> {
        let survey = Request::Survey { path: request.path.clone(), filter: request.filter() };
        let mut channel = self.with_link(|link| std::future::ready(link.request(&survey, 1))).await?;
        let mut whole = Report::default();
        while let Some(batch) = self.next_batch(&mut channel).await? {
            let root = request.host_path.clone();
            let stale = blocking(move || {
                let stale = cofferdam_tree::stale(&root, &batch).map_err(|error| match error.kind() {
                    // A path that leads elsewhere is none that a guest may say.
                    ErrorKind::InvalidInput => Trouble::Stream(TreeError::BadName),
                    _ => Trouble::Io { doing: "compare", path: root.clone(), error },
                })?;
                Ok(stale.into_iter().map(|index| batch[index as usize].path.clone()).collect::<Vec<_>>())
            })
            .await?;
            if !stale.is_empty() {
                whole.add(self.unpack(request, Some(stale), teller).await?);
                teller.before = whole.clone();
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
        teller: &mut Teller,
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
            // The guest goes on sending meanwhile, for as long as its window lasts.
            unpacker = blocking(move || {
                blocks.iter().try_for_each(|block| unpacker.take(block))?;
                Ok(unpacker)
            })
            .await?;
            teller.tell(unpacker.report(), &unpacker.current());
            if is_over {
                teller.tell_now(unpacker.report(), &unpacker.current());
                return blocking(move || unpacker.finish()).await;
            }
        }
    }

    /// What has come, and whether that was all.
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
            if blocks.len() >= GATHERED || !channel.has_more() {
                return Ok((blocks, false));
            }
        }
    }
}
