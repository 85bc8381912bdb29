//! Replaces text in a file, which keeps its mode and its owner.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write as _};
use std::os::unix::fs::MetadataExt;

use cofferdam_protocol::{Fault, FaultCode, Replace, Reply, Write};
use memchr::{memchr_iter, memmem};

use super::content::open_regular;
use super::draft::Draft;
use super::place::{Place, blocking};
use crate::process::users::Owner;
use crate::requests::{Failure, fault};
use crate::workspace::Workspace;

/// The longest file that can be edited.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Line numbers reported at most when the number of occurrences is wrong.
const LINES: usize = 10;

pub(crate) async fn replace(place: Place, replace: Replace, workspace: &Workspace) -> Result<Reply, Failure> {
    if replace.search.is_empty() {
        return Err(fault(FaultCode::InvalidArgument, "the text to search for is empty").into());
    }
    let path = place.path.clone();
    let edit = blocking(move || Edit::new(place, replace)).await?;
    if !edit.is_wanted() {
        return Ok(edit.refusal());
    }
    let size = edit.size();
    workspace.admit(&path, size).await?;
    let reply = blocking(move || edit.write()).await?;
    workspace.add(size);
    Ok(reply)
}

struct Edit {
    place: Place,
    replace: Replace,
    content: Vec<u8>,
    count: u64,
}

impl Edit {
    fn new(mut place: Place, replace: Replace) -> Result<Edit, Fault> {
        let file = open_regular(&place)?;
        let metadata = file.metadata().map_err(|error| place.fault("read", &error))?;
        let content = content(&file, metadata.len()).map_err(|error| place.fault("read", &error))?;
        let Some(content) = content else {
            let message =
                format!("\"{}\" has more than the {MAX_BYTES} bytes that can be edited", place.path.display());
            return Err(fault(FaultCode::LimitExceeded, message));
        };
        place.owner = Owner { uid: metadata.uid(), gid: metadata.gid() };
        let count = memmem::find_iter(&content, &replace.search).count() as u64;
        Ok(Edit { place, replace, content, count })
    }

    fn is_wanted(&self) -> bool {
        match self.replace.expected {
            Some(expected) => self.count == expected && self.count > 0,
            None => self.count == 1 || (self.replace.all && self.count > 0),
        }
    }

    fn refusal(&self) -> Reply {
        let (mut lines, mut line, mut seen) = (Vec::new(), 1, 0);
        for at in memmem::find_iter(&self.content, &self.replace.search).take(LINES) {
            line += memchr_iter(b'\n', &self.content[seen..at]).count() as u64;
            seen = at;
            lines.push(line);
        }
        Reply::Occurs { count: self.count, lines }
    }

    fn size(&self) -> u64 {
        let (old, new) = (self.replace.search.len() as u64, self.replace.replacement.len() as u64);
        (self.content.len() as u64 - self.count * old).saturating_add(self.count.saturating_mul(new))
    }

    fn write(self) -> Result<Reply, Fault> {
        let Replace { search, replacement, .. } = &self.replace;
        let options = Write { path: String::new(), mode: None, overwrite: true, user: None, append: false };
        let mut draft = Draft::begin(self.place.clone(), options)?;
        let mut output = BufWriter::new(draft.file());
        let mut seen = 0;
        let mut all = || {
            for at in memmem::find_iter(&self.content, search) {
                output.write_all(&self.content[seen..at])?;
                output.write_all(replacement.as_bytes())?;
                seen = at + search.len();
            }
            output.write_all(&self.content[seen..])?;
            output.flush()
        };
        all().map_err(|error| self.place.fault("write", &error))?;
        drop(output);
        let done = draft.commit()?;
        Ok(Reply::Replaced { path: done.target.to_string_lossy().into_owned(), count: self.count })
    }
}

/// `None` when it is too long.
fn content(file: &File, size: u64) -> io::Result<Option<Vec<u8>>> {
    let mut content = Vec::with_capacity(size.min(MAX_BYTES) as usize);
    file.take(MAX_BYTES + 1).read_to_end(&mut content)?;
    Ok((content.len() as u64 <= MAX_BYTES).then_some(content))
}
