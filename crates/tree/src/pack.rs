//! From a folder or a file to a stream.

use std::path::{Path, PathBuf};

use cofferdam_protocol::{Meta, Record, short_reason};
use rustix::fs::fstat;

use crate::Trouble;
use crate::folder::{Folder, Trail, file_type, meta};
use crate::reading::{Reading, open_file};
use crate::report::{Ceilings, Report};
use crate::rules::Rules;
use crate::select::Selection;
use crate::walk::{Kind, Step, Walk};

/// A tree that is being packed.
pub struct Packer {
    root: PathBuf,
    source: Source,
    /// The file whose content is being packed.
    reading: Option<Reading>,
    /// The root's metadata, until it is packed.
    root_meta: Option<Meta>,
    ceilings: Ceilings,
    report: Report,
    current: Vec<u8>,
}

enum Source {
    Tree(Box<Walk>),
    Selection {
        selection: Box<Selection>,
        is_closed: bool,
    },
    /// One file, or nothing any more.
    Over,
}

impl Packer {
    /// A folder with all below it, or one file. A link at `path` itself is followed.
    pub fn open(path: &Path, rules: Rules, ceilings: Ceilings) -> Result<Packer, Trouble> {
        let mut packer = Packer::new(path, ceilings);
        let metadata = path.metadata().map_err(Trouble::io("read", path))?;
        if metadata.is_dir() {
            let folder = packer.open_root()?;
            let walk = Walk::new(folder, rules).map_err(Trouble::io("read", path))?;
            packer.source = Source::Tree(Box::new(walk));
        } else {
            let reading = open_file(path).and_then(|file| Reading::new(file, Vec::new()));
            packer.reading = Some(reading.map_err(Trouble::io("read", path))?);
        }
        Ok(packer)
    }

    /// Only what will be selected below a folder.
    pub fn selecting(path: &Path, ceilings: Ceilings) -> Result<Packer, Trouble> {
        let mut packer = Packer::new(path, ceilings);
        let selection = Box::new(Selection::new(packer.open_root()?));
        packer.source = Source::Selection { selection, is_closed: false };
        Ok(packer)
    }

    fn new(path: &Path, ceilings: Ceilings) -> Packer {
        Packer {
            root: path.to_owned(),
            source: Source::Over,
            reading: None,
            root_meta: None,
            ceilings,
            report: Report::default(),
            current: Vec::new(),
        }
    }

    fn open_root(&mut self) -> Result<Folder, Trouble> {
        let folder = Folder::open(&self.root).map_err(Trouble::io("read", &self.root))?;
        self.root_meta = Some(meta(&fstat(&folder).map_err(Trouble::at("read", &self.root))?));
        Ok(folder)
    }

    /// Adds entries, by their paths below the root. A folder is told with its metadata, not with what is in it.
    pub fn select(&mut self, paths: impl IntoIterator<Item = Vec<u8>>) {
        if let Source::Selection { selection, .. } = &mut self.source {
            selection.select(paths);
        }
    }

    /// Nothing more will be selected.
    pub fn close(&mut self) {
        if let Source::Selection { is_closed, .. } = &mut self.source {
            *is_closed = true;
        }
    }

    /// What was packed so far.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The current path below the root.
    pub fn current(&self) -> &[u8] {
        &self.current
    }

    /// Takes what was packed.
    pub fn into_report(self) -> Report {
        self.report
    }

    /// Appends to `out` until it has `size` bytes or more. False at the end, or at the end of what was selected so far.
    pub fn fill(&mut self, out: &mut Vec<u8>, size: usize) -> Result<bool, Trouble> {
        if let Some(meta) = self.root_meta.take() {
            Record::Enter { name: Vec::new(), meta }.encode(out);
        }
        while out.len() < size {
            if let Some(reading) = &mut self.reading {
                if reading.is_new() {
                    let path = self.root.join(crate::folder::os(&self.current));
                    self.ceilings.admit_file(&path, reading.size())?;
                    self.ceilings.admit_count(&path, self.report.files + self.report.links + 1)?;
                }
                if reading.fill(out, size, &mut self.report, &self.current) {
                    self.reading = None;
                }
            } else if !self.advance(out)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// One step on; false when there is none for now.
    fn advance(&mut self, out: &mut Vec<u8>) -> Result<bool, Trouble> {
        let step = match &mut self.source {
            Source::Tree(walk) => walk.next(),
            Source::Selection { selection, is_closed } => match selection.next() {
                None if *is_closed => selection.leave(),
                None => return Ok(false),
                step => step,
            },
            Source::Over => return Ok(false),
        };
        let Some(step) = step else {
            self.source = Source::Over;
            Record::Leave.encode(out);
            return Ok(true);
        };
        let (folder, trail) = match &self.source {
            Source::Tree(walk) => (walk.folder(), walk.trail()),
            Source::Selection { selection, .. } => (Some(selection.folder()), selection.trail()),
            Source::Over => return Ok(false),
        };
        let Some(folder) = folder else { return Ok(false) };
        self.current = match &step {
            Step::Entry(name, _) | Step::Skipped(name, _) => trail.with(name),
            Step::Enter(_) | Step::Leave => trail.with(b""),
        };
        let skipped = match step {
            Step::Enter(name) => {
                let meta = fstat(folder).map(|stat| meta(&stat)).unwrap_or_default();
                Record::Enter { name, meta }.encode(out);
                self.report.dirs += 1;
                None
            }
            Step::Leave => {
                Record::Leave.encode(out);
                None
            }
            Step::Entry(name, Kind::File) => {
                match folder.read(&name).map_err(Into::into).and_then(|file| Reading::new(file, name.clone())) {
                    Ok(reading) => {
                        self.reading = Some(reading);
                        None
                    }
                    Err(error) => Some((name, error.to_string())),
                }
            }
            Step::Entry(name, Kind::Link) => match told_link(folder, &name) {
                Ok(link) => {
                    let path = trail_below(&self.root, trail, &name);
                    self.ceilings.admit_count(&path, self.report.files + self.report.links + 1)?;
                    link.encode(out);
                    self.report.links += 1;
                    None
                }
                Err(error) => Some((name, error.to_string())),
            },
            Step::Entry(name, Kind::Other) => Some((name, "a device, a socket or a FIFO".to_owned())),
            Step::Skipped(name, reason) => Some((name, reason)),
        };
        if let Some((name, reason)) = skipped {
            let reason = short_reason(reason);
            self.report.skip(self.current.clone(), reason.clone());
            Record::Skipped { name, reason }.encode(out);
        }
        Ok(true)
    }
}

fn trail_below(root: &Path, trail: &Trail, name: &[u8]) -> PathBuf {
    root.join(crate::folder::os(&trail.with(name)))
}

fn told_link(folder: &Folder, name: &[u8]) -> std::io::Result<Record> {
    let stat = folder.stat(name)?;
    if file_type(&stat) != rustix::fs::FileType::Symlink {
        return Err(std::io::Error::other("it was replaced while it was read"));
    }
    Ok(Record::Link { name: name.to_vec(), target: folder.target(name)?, meta: meta(&stat) })
}
