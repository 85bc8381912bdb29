//! Reads tar streams as layers have them: ustar, GNU and pax, with long names, big numbers, extended attributes and holes.
//!
//! Every byte may be hostile: what is held in memory is bounded before it is read. (The `tar` crate reads extension
//! records of any length into memory, and ends an attribute's value at its first line feed.)

use std::io::{self, BufReader, Read, Seek};

use super::tar_header::{BLOCK, Header};
use crate::error::{ImageError, Result};

/// Names and attributes of one entry together: no path that Linux takes is longer than 4 KiB, no attribute than 64.
const LONGEST_EXTENSION: u64 = 1024 * 1024;

/// Pieces of a sparse file.
const MOST_PIECES: usize = 65_536;

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    HardLink,
    SymbolicLink,
    Folder,
    Fifo,
    Device,
}

/// One entry, without its content.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) kind: Kind,
    pub(crate) path: Vec<u8>,
    pub(crate) link: Vec<u8>,
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) mtime: (i64, u32),
    /// Name and value, as written.
    pub(crate) attributes: Vec<(Vec<u8>, Vec<u8>)>,
    /// With its holes.
    pub(crate) size: u64,
    /// Where the content goes, when it has holes: offset and length.
    pub(crate) pieces: Option<Vec<(u64, u64)>>,
}

/// A tar stream, entry by entry.
pub(crate) struct Tarball<R> {
    input: R,
    /// Of the current entry's content.
    remaining: u64,
    padding: u64,
    offset: u64,
}

/// What the records before an entry say about it.
#[derive(Default)]
struct Extensions {
    path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    size: Option<u64>,
    uid: Option<u64>,
    gid: Option<u64>,
    mtime: Option<(i64, u32)>,
    attributes: Vec<(Vec<u8>, Vec<u8>)>,
}

impl<R: Read> Tarball<R> {
    pub(crate) fn new(input: R) -> Tarball<R> {
        Tarball { input, remaining: 0, padding: 0, offset: 0 }
    }

    /// How many bytes of the stream were read.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// The next entry; what is left of the last one is passed over.
    pub(crate) fn next(&mut self) -> Result<Option<Entry>> {
        let mut extensions = Extensions::default();
        loop {
            self.skip_content()?;
            let mut block = [0; BLOCK];
            if !self.read_block(&mut block)? || block.iter().all(|byte| *byte == 0) {
                return Ok(None);
            }
            let header = Header::parse(&block)?;
            match header.kind {
                b'L' => extensions.path = Some(until_nul(self.extension(header.size)?)),
                b'K' => extensions.link = Some(until_nul(self.extension(header.size)?)),
                b'x' | b'X' => extensions.read(&self.extension(header.size)?)?,
                // Defaults for all further entries: nothing that a layer could use.
                b'g' => drop(self.extension(header.size)?),
                _ => return self.entry(header, extensions).map(Some),
            }
        }
    }

    fn entry(&mut self, header: Header, extensions: Extensions) -> Result<Entry> {
        let path = extensions.path.unwrap_or(header.path);
        let link = extensions.link.unwrap_or(header.link);
        let kind = match header.kind {
            // In old archives, a trailing slash marks a folder.
            0 if path.ends_with(b"/") => Kind::Folder,
            0 | b'0' | b'7' | b'S' => Kind::File,
            b'1' => Kind::HardLink,
            b'2' => Kind::SymbolicLink,
            b'3' | b'4' => Kind::Device,
            b'5' => Kind::Folder,
            b'6' => Kind::Fifo,
            other => {
                let message = format!("{} is an entry of the unknown kind {:?}", told(&path), char::from(other));
                return Err(ImageError::invalid_layer(message));
            }
        };
        let stored = extensions.size.unwrap_or(header.size);
        // Nothing else has content, whatever its size says: as in Go, and so in the tools that write layers.
        let stored = if kind == Kind::File { stored } else { 0 };
        let (size, pieces) = match header.sparse {
            Some(sparse) => {
                let mut pieces = sparse.pieces;
                let mut more = sparse.continues;
                while more {
                    let mut block = [0; BLOCK];
                    if !self.read_block(&mut block)? || pieces.len() > MOST_PIECES {
                        return Err(ImageError::invalid_layer(format!(
                            "the list of holes of {} is broken",
                            told(&path)
                        )));
                    }
                    more = Header::more_pieces(&block, &mut pieces)?;
                }
                check_pieces(&pieces, stored, sparse.size, &path)?;
                (sparse.size, Some(pieces))
            }
            None => (stored, None),
        };
        self.begin_content(stored);
        let id = |id: u64| u32::try_from(id).unwrap_or(u32::MAX - 1);
        Ok(Entry {
            kind,
            path,
            link,
            mode: header.mode,
            uid: id(extensions.uid.unwrap_or(header.uid)),
            gid: id(extensions.gid.unwrap_or(header.gid)),
            mtime: extensions.mtime.unwrap_or((header.mtime, 0)),
            attributes: extensions.attributes,
            size,
            pieces,
        })
    }

    fn begin_content(&mut self, size: u64) {
        self.remaining = size;
        self.padding = (BLOCK as u64 - size % BLOCK as u64) % BLOCK as u64;
    }

    fn skip_content(&mut self) -> Result<()> {
        let rest = self.remaining.checked_add(self.padding).ok_or_else(cut_off)?;
        (self.remaining, self.padding) = (0, 0);
        let skipped = io::copy(&mut (&mut self.input).take(rest), &mut io::sink()).map_err(unreadable)?;
        self.offset += skipped;
        if skipped == rest { Ok(()) } else { Err(cut_off()) }
    }

    fn extension(&mut self, size: u64) -> Result<Vec<u8>> {
        if size > LONGEST_EXTENSION {
            return Err(ImageError::invalid_layer(format!(
                "a name or the attributes of an entry take {size} bytes, and {LONGEST_EXTENSION} is the most"
            )));
        }
        self.begin_content(size);
        let mut content = Vec::new();
        self.read_to_end(&mut content).map_err(unreadable)?;
        if content.len() as u64 == size { Ok(content) } else { Err(cut_off()) }
    }

    /// False at the end of the stream.
    fn read_block(&mut self, block: &mut [u8; BLOCK]) -> Result<bool> {
        let mut filled = 0;
        while filled < BLOCK {
            match self.input.read(&mut block[filled..]) {
                Ok(0) if filled == 0 => return Ok(false),
                Ok(0) => return Err(cut_off()),
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(unreadable(error)),
            }
        }
        self.offset += BLOCK as u64;
        Ok(true)
    }
}

impl<R: Read + Seek> Tarball<BufReader<R>> {
    /// Passes over the current entry's content without reading it.
    pub(crate) fn seek_past_content(&mut self) -> Result<()> {
        let rest = self.remaining.checked_add(self.padding).ok_or_else(cut_off)?;
        (self.remaining, self.padding) = (0, 0);
        self.input.seek_relative(i64::try_from(rest).map_err(|_| cut_off())?).map_err(unreadable)?;
        self.offset += rest;
        Ok(())
    }
}

/// The current entry's content, without its holes.
impl<R: Read> Read for Tarball<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.remaining).unwrap_or(usize::MAX).min(buffer.len());
        let count = self.input.read(&mut buffer[..most])?;
        self.remaining -= count as u64;
        self.offset += count as u64;
        Ok(count)
    }
}

impl Extensions {
    /// `<length> <key>=<value>\n`, again and again; a value may hold anything.
    fn read(&mut self, mut content: &[u8]) -> Result<()> {
        let broken = || ImageError::invalid_layer("the extended header of an entry is broken");
        while !content.is_empty() {
            let space = content.iter().position(|byte| *byte == b' ').ok_or_else(broken)?;
            let length: usize =
                std::str::from_utf8(&content[..space]).ok().and_then(|text| text.parse().ok()).ok_or_else(broken)?;
            if length <= space + 1 || length > content.len() || content[length - 1] != b'\n' {
                return Err(broken());
            }
            let record = &content[space + 1..length - 1];
            content = &content[length..];
            let equals = record.iter().position(|byte| *byte == b'=').ok_or_else(broken)?;
            self.set(&record[..equals], &record[equals + 1..])?;
        }
        Ok(())
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let number = || std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
        match key {
            // An empty value removes one of an earlier header.
            b"path" => self.path = Some(value.to_vec()).filter(|path| !path.is_empty()),
            b"linkpath" => self.link = Some(value.to_vec()).filter(|path| !path.is_empty()),
            b"size" => {
                let broken = || ImageError::invalid_layer("the size of an entry is not a number");
                self.size = Some(number().ok_or_else(broken)?);
            }
            b"uid" => self.uid = number(),
            b"gid" => self.gid = number(),
            b"mtime" => self.mtime = time(value),
            _ if key.starts_with(b"GNU.sparse.") => {
                return Err(ImageError::unsupported(
                    "a file in a layer is packed with holes in a way that only GNU tar knows (pax sparse). Build the image \
                     with docker, buildah or another tool for images",
                ));
            }
            _ => {
                if let Some(name) = key.strip_prefix(b"SCHILY.xattr.") {
                    self.attributes.push((name.to_vec(), value.to_vec()));
                }
            }
        }
        Ok(())
    }
}

/// Seconds with a fraction, before or after 1970.
fn time(value: &[u8]) -> Option<(i64, u32)> {
    let text = std::str::from_utf8(value).ok()?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let seconds: i64 = whole.parse().ok()?;
    let digits: String = fraction.chars().chain(std::iter::repeat('0')).take(9).collect();
    let nanos: u32 = digits.parse().ok()?;
    match text.starts_with('-') && nanos > 0 {
        true => Some((seconds.checked_sub(1)?, 1_000_000_000 - nanos)),
        false => Some((seconds, nanos)),
    }
}

/// In order, inside the file, and together as long as what is stored.
fn check_pieces(pieces: &[(u64, u64)], stored: u64, size: u64, path: &[u8]) -> Result<()> {
    let mut end = 0;
    let mut sum = 0;
    for (offset, length) in pieces {
        let next = offset.checked_add(*length).filter(|next| *offset >= end && *next <= size);
        let Some(next) = next else {
            return Err(ImageError::invalid_layer(format!("the list of holes of {} is broken", told(path))));
        };
        end = next;
        sum += length;
    }
    match sum == stored {
        true => Ok(()),
        false => Err(ImageError::invalid_layer(format!("the list of holes of {} does not add up", told(path)))),
    }
}

fn until_nul(mut name: Vec<u8>) -> Vec<u8> {
    if let Some(end) = name.iter().position(|byte| *byte == 0) {
        name.truncate(end);
    }
    name
}

/// A name from a layer, safe to show.
pub(crate) fn told(path: &[u8]) -> String {
    let short = &path[..path.len().min(200)];
    format!("{:?}", String::from_utf8_lossy(short))
}

fn cut_off() -> ImageError {
    ImageError::invalid_layer("it ends in the middle of an entry")
}

pub(crate) fn unreadable(error: io::Error) -> ImageError {
    // Our own errors come back wrapped in `io::Error`.
    match error.downcast::<ImageError>() {
        Ok(own) => own,
        Err(error) => ImageError::invalid_layer(format!("it cannot be read: {error}")),
    }
}
