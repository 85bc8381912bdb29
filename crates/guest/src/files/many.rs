//! Several files in one request: first their sizes, then their content, one after the other.
//!
//! Each appears whole or not at all, in the order given; the first that cannot be written ends it.

use std::vec::IntoIter;

use bytes::Bytes;
use cofferdam_protocol::{Content, Fault, FaultCode, Reply, Setup, Write};

use super::blocks::{Block, next_block};
use super::draft::Draft;
use super::place::{Place, blocking};
use crate::channel::Channel;
use crate::requests::{Failure, fault};
use crate::workspace::Workspace;

pub(crate) async fn write_many(
    setup: &Setup,
    contents: Vec<Content>,
    workspace: &Workspace,
    channel: &Channel,
) -> Result<Reply, Failure> {
    let here = Place::new(setup, ".")?;
    let mut files = Vec::with_capacity(contents.len());
    for Content { path, size } in contents {
        files.push((here.at(&path)?, size));
    }
    let inside = || files.iter().filter(|(place, _)| place.path.starts_with(&here.path));
    let size = inside().fold(0u64, |sum, (_, size)| sum.saturating_add(*size));
    if let Some((first, _)) = inside().next() {
        workspace.admit(&first.path, size).await?;
    }
    let mut many = Many { files: files.into_iter(), under_way: None };
    loop {
        let Block { pieces, is_last, .. } = next_block(channel).await?;
        many = blocking(move || {
            pieces.into_iter().try_for_each(|piece| many.take(piece))?;
            if is_last {
                many.finish()?;
            }
            Ok(many)
        })
        .await?;
        if is_last {
            workspace.add(size);
            return Ok(Reply::Done);
        }
    }
}

struct Many {
    files: IntoIter<(Place, u64)>,
    /// With the number of bytes still to come.
    under_way: Option<(Draft, u64)>,
}

impl Many {
    fn take(&mut self, mut piece: Bytes) -> Result<(), Fault> {
        while !piece.is_empty() {
            let (mut draft, rest) = match self.under_way.take() {
                Some(under_way) => under_way,
                None => self.begin()?.ok_or_else(|| misfit("more"))?,
            };
            let part = piece.split_to(piece.len().min(usize::try_from(rest).unwrap_or(usize::MAX)));
            let rest = rest - part.len() as u64;
            draft.append(&[part])?;
            self.put_back(draft, rest)?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Fault> {
        // Empty files come without a piece.
        while self.under_way.is_none() {
            let Some((draft, rest)) = self.begin()? else { return Ok(()) };
            self.put_back(draft, rest)?;
        }
        Err(misfit("less"))
    }

    fn begin(&mut self) -> Result<Option<(Draft, u64)>, Fault> {
        let Some((place, size)) = self.files.next() else { return Ok(None) };
        let write = Write { path: String::new(), mode: None, overwrite: true, user: None, append: false };
        Ok(Some((Draft::begin(place, write)?, size)))
    }

    fn put_back(&mut self, draft: Draft, rest: u64) -> Result<(), Fault> {
        if rest == 0 {
            draft.commit()?;
        } else {
            self.under_way = Some((draft, rest));
        }
        Ok(())
    }
}

fn misfit(what: &str) -> Fault {
    fault(FaultCode::InvalidArgument, format!("the request has {what} content than the files' sizes add up to"))
}
