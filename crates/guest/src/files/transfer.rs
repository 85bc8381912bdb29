//! Whole trees, in and out: the guest's end of uploads and downloads.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bytes::Bytes;
use cofferdam_protocol::{Fault, FaultCode, Filter, Fingerprint, Kind, Reply};
use cofferdam_tree::{Ceilings, Owner, Packer, Rules, Survey, Trouble, UnpackOptions, Unpacker};

use super::blocks::{BLOCK, Block, next_block};
use super::listing::batch;
use super::place::{Place, blocking};
use super::tree::make_dirs;
use crate::channel::Channel;
use crate::fd::READ_SIZE;
use crate::process::users;
use crate::requests::{Failure, fault};
use crate::workspace::Workspace;

pub(super) fn rules(filter: &Filter) -> Result<Rules, Fault> {
    Rules::new(&filter.exclude, filter.gitignore).map_err(|message| fault(FaultCode::InvalidArgument, message))
}

pub(crate) async fn pack(
    place: Place,
    filter: Filter,
    only: Option<Vec<Vec<u8>>>,
    channel: &Channel,
) -> Result<Reply, Failure> {
    let rules = rules(&filter)?;
    let mut packer = blocking(move || match only {
        None => Packer::open(&place.path, rules, Ceilings::default()).map_err(Trouble::into_fault),
        Some(paths) => {
            let mut packer = Packer::selecting(&place.path, Ceilings::default()).map_err(Trouble::into_fault)?;
            packer.select(paths);
            packer.close();
            Ok(packer)
        }
    })
    .await?;
    loop {
        let (next, block, more) = blocking(move || {
            let mut block = Vec::with_capacity(BLOCK);
            let more = packer.fill(&mut block, BLOCK).map_err(Trouble::into_fault)?;
            Ok((packer, block, more))
        })
        .await?;
        packer = next;
        let mut block = Bytes::from(block);
        while !block.is_empty() {
            channel.send(Kind::Data, block.split_to(READ_SIZE.min(block.len()))).await?;
        }
        if !more {
            return Ok(Reply::Done);
        }
    }
}

pub(crate) async fn unpack(place: Place, workspace: &Workspace, channel: &Channel) -> Result<Reply, Failure> {
    let options = UnpackOptions {
        owner: Some(Owner { uid: place.owner.uid, gid: place.owner.gid }),
        mode_mask: 0o7777,
        ceilings: Ceilings::default(),
        make_parent: |folder, owner| {
            let owner = owner.map(|Owner { uid, gid }| users::Owner { uid, gid }).unwrap_or(users::ROOT);
            make_dirs(folder, None, owner)
        },
    };
    let mut unpacker = Unpacker::new(&place.path, options);
    let mut size = 0;
    loop {
        let Block { pieces, bytes, is_last } = next_block(channel).await?;
        size += bytes;
        workspace.admit(&place.path, size).await?;
        let work = move || {
            for piece in &pieces {
                unpacker.take(piece).map_err(Trouble::into_fault)?;
            }
            match is_last {
                true => unpacker.finish().map_err(Trouble::into_fault).map(|_| None),
                false => Ok(Some(unpacker)),
            }
        };
        match blocking(work).await? {
            Some(next) => unpacker = next,
            None => {
                workspace.add(size);
                return Ok(Reply::Done);
            }
        }
    }
}

pub(crate) async fn survey(place: Place, filter: Filter, channel: &Channel) -> Result<Reply, Failure> {
    let rules = rules(&filter)?;
    let mut survey =
        blocking(move || Survey::new(&place.path, rules).map_err(|error| place.fault("look through", &error))).await?;
    loop {
        let (next, encoded) = blocking(move || {
            let weight = |entry: &Fingerprint| 40 + entry.path.len() + entry.target.as_ref().map_or(0, Vec::len);
            let encoded = batch(&mut survey, weight)?;
            Ok((survey, encoded))
        })
        .await?;
        survey = next;
        let Some(encoded) = encoded else { return Ok(Reply::Done) };
        channel.send(Kind::Data, encoded).await?;
    }
}

pub(crate) fn compare(place: &Place, entries: &[Fingerprint]) -> Result<Reply, Fault> {
    let stale = cofferdam_tree::stale(&place.path, entries).map_err(|error| place.fault("look through", &error))?;
    Ok(Reply::Stale(stale))
}

/// The kernel resolves the part that exists; the rest is only cleaned of dots.
pub(crate) fn resolve(place: &Place) -> Reply {
    let mut known = place.path.as_path();
    let mut rest = Vec::new();
    let mut resolved = loop {
        match (known.canonicalize(), known.parent(), known.file_name()) {
            (Ok(real), ..) => break real,
            (Err(_), Some(parent), name) => {
                rest.extend(name.map(|name| name.to_owned()));
                known = parent;
            }
            (Err(_), None, _) => break Path::new("/").to_owned(),
        }
    };
    rest.into_iter().rev().for_each(|name| resolved.push(name));
    Reply::Resolved { path: resolved.as_os_str().as_bytes().to_vec() }
}
