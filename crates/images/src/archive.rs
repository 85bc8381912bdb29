//! Images in files: what `docker save` writes, and OCI layouts, as a folder or as a tar that may be compressed.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use serde::Deserialize;

use crate::digest::Digest;
use crate::error::{ImageError, Result};
use crate::layer::{Budget, Kind, Metered, Tarball, expand, unreadable};
use crate::manifest::{Configuration, Descriptor, Manifest, for_this_machine};

/// No manifest or configuration is longer.
const LONGEST_DOCUMENT: u64 = 8 * 1024 * 1024;

/// Links of `docker save` from a layer to the same layer elsewhere.
const MOST_LINKS: usize = 8;

/// One image in an archive.
pub(crate) struct Archived {
    pub(crate) id: Digest,
    /// Of its manifest, where it has one.
    pub(crate) digest: Option<Digest>,
    pub(crate) configuration: Configuration,
    pub(crate) raw_configuration: Vec<u8>,
    /// Where its layers are in the archive, lowest first.
    pub(crate) layers: Vec<String>,
    /// The names it was saved under.
    pub(crate) names: Vec<String>,
}

/// A folder of files, by their names.
pub(crate) enum Archive {
    Folder(PathBuf),
    Tar { file: Arc<File>, members: HashMap<String, Member> },
}

pub(crate) enum Member {
    Content { offset: u64, size: u64 },
    Link(String),
}

impl Archive {
    /// `scratch` is where a compressed archive is unpacked to; it is removed with the archive.
    pub(crate) fn open(path: &Path, scratch: &Path, budget: Budget) -> Result<Archive> {
        let failed = || ImageError::storage::<io::Error>("read", path);
        if path.metadata().map_err(failed())?.is_dir() {
            return Ok(Archive::Folder(path.to_owned()));
        }
        let file = File::open(path).map_err(failed())?;
        let mut start = [0; 4];
        let count = file.read_at(&mut start, 0).map_err(failed())?;
        let is_packed = expandable(&start[..count]);
        let file = if is_packed { unpacked(file, scratch, budget)? } else { file };
        let members = index(&file)?;
        Ok(Archive::Tar { file: Arc::new(file), members })
    }

    /// All images in it.
    pub(crate) fn images(&self) -> Result<Vec<Archived>> {
        if let Some(content) = self.document("manifest.json")? {
            return self.saved(&content);
        }
        if let Some(content) = self.document("index.json")? {
            return self.layout(&content);
        }
        Err(ImageError::unsupported(
            "there is neither a manifest.json nor an index.json in it: it is not what docker save writes, nor an OCI layout. \
             (docker export writes a file system without an image; use docker save)",
        ))
    }

    fn saved(&self, content: &[u8]) -> Result<Vec<Archived>> {
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Saved {
            config: String,
            #[serde(default)]
            repo_tags: Option<Vec<String>>,
            #[serde(default)]
            layers: Option<Vec<String>>,
        }
        let saved: Vec<Saved> = serde_json::from_slice(content)
            .map_err(|error| ImageError::unsupported(format!("its manifest.json cannot be read: {error}")))?;
        let one = |saved: Saved| {
            let raw = self.needed(&saved.config)?;
            self.archived(raw, saved.layers.unwrap_or_default(), None, saved.repo_tags.unwrap_or_default())
        };
        saved.into_iter().map(one).collect()
    }

    fn layout(&self, content: &[u8]) -> Result<Vec<Archived>> {
        let Manifest::Index(index) = Manifest::parse(content)? else {
            return Err(ImageError::unsupported("its index.json is not an index"));
        };
        // One name may have an image for each architecture, on this level or on the next one.
        let mut images: Vec<Archived> = Vec::new();
        let mut others = None;
        for descriptor in &index {
            match self.layout_image(descriptor) {
                Ok(image) => images.push(image),
                Err(error) if error.kind == crate::ImageErrorKind::WrongPlatform => others = Some(error),
                Err(error) => return Err(error),
            }
        }
        match others {
            Some(error) if images.is_empty() => Err(error),
            _ => Ok(images),
        }
    }

    fn layout_image(&self, descriptor: &Descriptor) -> Result<Archived> {
        const NAMES: [&str; 2] = ["io.containerd.image.name", "org.opencontainers.image.ref.name"];
        let name = NAMES.iter().find_map(|name| descriptor.annotations.get(*name));
        let (mut manifest, mut digest) = (self.blob(&descriptor.digest)?, descriptor.digest.clone());
        if let Manifest::Index(inner) = Manifest::parse(&manifest)? {
            let chosen = for_this_machine(&inner)?;
            (manifest, digest) = (self.blob(&chosen.digest)?, chosen.digest.clone());
        }
        let Manifest::Image(image) = Manifest::parse(&manifest)? else {
            return Err(ImageError::unsupported("its index lists an index of indexes, which is not supported"));
        };
        let raw = self.blob(&image.config.digest)?;
        let layers = image.layers.iter().map(|layer| blob_path(&layer.digest)).collect();
        self.archived(raw, layers, Some(digest), name.cloned().into_iter().collect())
    }

    fn archived(
        &self,
        raw_configuration: Vec<u8>,
        layers: Vec<String>,
        digest: Option<Digest>,
        names: Vec<String>,
    ) -> Result<Archived> {
        let configuration = Configuration::parse(&raw_configuration)?;
        let id = Digest::of(&raw_configuration);
        Ok(Archived { id, digest, configuration, raw_configuration, layers, names })
    }

    fn blob(&self, digest: &Digest) -> Result<Vec<u8>> {
        let content = self.needed(&blob_path(digest))?;
        digest.check(&Digest::of(&content), "a document in the archive")?;
        Ok(content)
    }

    fn needed(&self, name: &str) -> Result<Vec<u8>> {
        let missing = || ImageError::invalid_layer(format!("{name:?} is missing in it: it was not saved completely"));
        self.document(name)?.ok_or_else(missing)
    }

    fn document(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let Some((reader, size)) = self.read(name)? else { return Ok(None) };
        if size > LONGEST_DOCUMENT {
            return Err(ImageError::invalid_layer(format!(
                "{name:?} in it is {size} bytes long, too long for a document"
            )));
        }
        let mut content = Vec::new();
        reader.take(LONGEST_DOCUMENT).read_to_end(&mut content).map_err(unreadable)?;
        Ok(Some(content))
    }

    /// A file in it, with its size.
    pub(crate) fn read(&self, name: &str) -> Result<Option<(Box<dyn Read + Send>, u64)>> {
        match self {
            Archive::Folder(folder) => {
                let inside = OFlags::RDONLY | OFlags::CLOEXEC;
                let root = openat(CWD, folder, OFlags::PATH | inside, Mode::empty());
                let within = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
                let file = match root.and_then(|root| openat2(root, name, inside, Mode::empty(), within)) {
                    Err(rustix::io::Errno::NOENT) => return Ok(None),
                    file => File::from(file.map_err(ImageError::storage("read", &folder.join(name)))?),
                };
                let size = file.metadata().map_err(ImageError::storage("read", &folder.join(name)))?.len();
                Ok(Some((Box::new(file), size)))
            }
            Archive::Tar { file, members } => {
                let mut name = clean(name);
                for _ in 0..MOST_LINKS {
                    match members.get(&name) {
                        None => return Ok(None),
                        Some(Member::Link(target)) => name = target.clone(),
                        Some(Member::Content { offset, size }) => {
                            let section = Section { file: file.clone(), offset: *offset, end: offset + size };
                            return Ok(Some((Box::new(section), *size)));
                        }
                    }
                }
                Err(ImageError::invalid_layer(format!("{name:?} in it is a loop of links")))
            }
        }
    }
}

fn blob_path(digest: &Digest) -> String {
    format!("blobs/sha256/{}", digest.hex())
}

fn expandable(start: &[u8]) -> bool {
    start.starts_with(&[0x1f, 0x8b]) || start.starts_with(&[0x28, 0xb5, 0x2f, 0xfd])
}

/// Packed files cannot be read from the middle.
fn unpacked(file: File, scratch: &Path, budget: Budget) -> Result<File> {
    let failed = || ImageError::storage::<io::Error>("unpack the archive to", scratch);
    let mut target =
        File::options().create(true).truncate(true).read(true).write(true).open(scratch).map_err(failed())?;
    // It exists for as long as it is open.
    std::fs::remove_file(scratch).map_err(failed())?;
    let mut content = Metered { inner: expand(BufReader::new(file)).map_err(unreadable)?, budget };
    let mut buffer = vec![0; 256 * 1024];
    loop {
        match content.read(&mut buffer).map_err(unreadable)? {
            0 => break,
            count => io::Write::write_all(&mut target, &buffer[..count]).map_err(failed())?,
        }
    }
    target.seek(SeekFrom::Start(0)).map_err(failed())?;
    Ok(target)
}

/// Where each member's content is.
fn index(file: &File) -> Result<HashMap<String, Member>> {
    const MOST_MEMBERS: usize = 100_000;
    let mut members = HashMap::new();
    let size = file.metadata().map_err(unreadable)?.len();
    let mut tarball = Tarball::new(BufReader::new(file));
    while let Some(entry) = tarball.next()? {
        let name = clean(&String::from_utf8_lossy(&entry.path));
        let member = match entry.kind {
            Kind::File if entry.pieces.is_none() => {
                let offset = tarball.offset();
                if offset.checked_add(entry.size).is_none_or(|end| end > size) {
                    return Err(ImageError::invalid_layer(format!(
                        "{name:?} in it is cut off: it was not saved completely"
                    )));
                }
                Member::Content { offset, size: entry.size }
            }
            Kind::SymbolicLink => Member::Link(beside(&name, &String::from_utf8_lossy(&entry.link))),
            Kind::HardLink => Member::Link(clean(&String::from_utf8_lossy(&entry.link))),
            // Skip a sparse file; it is no blob.
            _ => continue,
        };
        members.insert(name, member);
        tarball.seek_past_content()?;
        if members.len() > MOST_MEMBERS {
            return Err(ImageError::unsupported(
                "it has more files than any saved image: docker save did not write it",
            ));
        }
    }
    Ok(members)
}

/// Members are names in a table, never paths on the disk.
fn clean(name: &str) -> String {
    let parts: Vec<&str> = name.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    parts.join("/")
}

fn beside(name: &str, target: &str) -> String {
    let clean = clean(name);
    let mut parts: Vec<&str> = clean.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// A part of a file.
struct Section {
    file: Arc<File>,
    offset: u64,
    end: u64,
}

impl Read for Section {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.end - self.offset).unwrap_or(usize::MAX).min(buffer.len());
        let count = self.file.read_at(&mut buffer[..most], self.offset)?;
        self.offset += count as u64;
        Ok(count)
    }
}
