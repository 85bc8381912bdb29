//! What the tests of this crate stand on: layers written byte by byte, OCI layouts around them, and overlays to look through.
#![allow(dead_code, reason = "each test file uses its part")]

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};

use sha2::{Digest, Sha256};
use tar::{EntryType, Header};
use tempfile::TempDir;

/// A layer on its way.
pub(crate) struct Layer(Vec<u8>);

impl Layer {
    pub(crate) fn new() -> Layer {
        Layer(Vec::new())
    }

    pub(crate) fn file(self, name: &str, content: &str) -> Layer {
        self.entry(EntryType::Regular, name.as_bytes(), b"", 0o644, content.as_bytes())
    }

    pub(crate) fn file_mode(self, name: &str, mode: u32, content: &str) -> Layer {
        self.entry(EntryType::Regular, name.as_bytes(), b"", mode, content.as_bytes())
    }

    pub(crate) fn folder(self, name: &str, mode: u32) -> Layer {
        self.entry(EntryType::Directory, name.as_bytes(), b"", mode, b"")
    }

    pub(crate) fn link(self, name: &str, target: &str) -> Layer {
        self.entry(EntryType::Symlink, name.as_bytes(), target.as_bytes(), 0o777, b"")
    }

    pub(crate) fn hard_link(self, name: &str, target: &str) -> Layer {
        self.entry(EntryType::Link, name.as_bytes(), target.as_bytes(), 0o644, b"")
    }

    /// Names go in as they are, whatever any tool would think of them.
    pub(crate) fn entry(self, kind: EntryType, name: &[u8], link: &[u8], mode: u32, content: &[u8]) -> Layer {
        self.owned(kind, name, link, mode, content, (0, 0))
    }

    pub(crate) fn owned(
        mut self,
        kind: EntryType,
        name: &[u8],
        link: &[u8],
        mode: u32,
        content: &[u8],
        owner: (u64, u64),
    ) -> Layer {
        let mut header = Header::new_ustar();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_uid(owner.0);
        header.set_gid(owner.1);
        header.set_mtime(1_600_000_000);
        header.set_size(content.len() as u64);
        let bytes = header.as_mut_bytes();
        bytes[..name.len()].copy_from_slice(name);
        bytes[157..157 + link.len()].copy_from_slice(link);
        header.set_cksum();
        self.0.extend_from_slice(header.as_bytes());
        self.content(content)
    }

    /// A record that says something about the next entry.
    pub(crate) fn pax(self, records: &[(&str, &[u8])]) -> Layer {
        let mut content = Vec::new();
        for (key, value) in records {
            let rest = key.len() + value.len() + 3;
            let length = (rest..).find(|length| length.to_string().len() + rest == *length).unwrap();
            write!(content, "{length} {key}=").unwrap();
            content.extend_from_slice(value);
            content.push(b'\n');
        }
        self.entry(EntryType::XHeader, b"pax", b"", 0o644, &content)
    }

    /// Bytes as they are.
    pub(crate) fn raw(mut self, bytes: &[u8]) -> Layer {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn content(mut self, content: &[u8]) -> Layer {
        self.0.extend_from_slice(content);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.0.extend_from_slice(&[0; 1024]);
        self.0
    }
}

pub(crate) fn digest(content: &[u8]) -> String {
    let hex: String = Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

pub(crate) fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

pub(crate) fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// An image as a registry or a layout has it: documents and blobs by digest.
pub(crate) struct Made {
    pub(crate) blobs: BTreeMap<String, Vec<u8>>,
    pub(crate) manifest: Vec<u8>,
    pub(crate) config: Vec<u8>,
}

/// `packed` is what is stored, `plain` what it unpacks to.
pub(crate) fn image(layers: &[(Vec<u8>, Vec<u8>)]) -> Made {
    let diff_ids: Vec<String> = layers.iter().map(|(_, plain)| digest(plain)).collect();
    let config = serde_json::to_vec(&serde_json::json!({
        "architecture": architecture(), "os": "linux",
        "config": { "Env": ["A=1"], "User": "app", "WorkingDir": "/srv", "Cmd": ["sh"] },
        "rootfs": { "type": "layers", "diff_ids": diff_ids },
    }))
    .unwrap();
    let descriptors: Vec<serde_json::Value> = layers
        .iter()
        .map(|(packed, _)| {
            serde_json::json!({
                "mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": digest(packed), "size": packed.len(),
            })
        })
        .collect();
    let manifest = serde_json::to_vec(&serde_json::json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {
            "mediaType": "application/vnd.oci.image.config.v1+json", "digest": digest(&config), "size": config.len(),
        },
        "layers": descriptors,
    }))
    .unwrap();
    let mut blobs: BTreeMap<String, Vec<u8>> =
        layers.iter().map(|(packed, _)| (digest(packed), packed.clone())).collect();
    blobs.insert(digest(&config), config.clone());
    blobs.insert(digest(&manifest), manifest.clone());
    Made { blobs, manifest, config }
}

pub(crate) fn plain(layers: Vec<Vec<u8>>) -> Vec<(Vec<u8>, Vec<u8>)> {
    layers.into_iter().map(|layer| (layer.clone(), layer)).collect()
}

/// An OCI layout on the disk.
pub(crate) fn layout(folder: &Path, made: &Made, name: &str) {
    std::fs::create_dir_all(folder.join("blobs/sha256")).unwrap();
    for (digest, content) in &made.blobs {
        std::fs::write(folder.join("blobs/sha256").join(&digest[7..]), content).unwrap();
    }
    let index = serde_json::json!({ "schemaVersion": 2, "manifests": [{
        "mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": digest(&made.manifest),
        "size": made.manifest.len(), "annotations": { "org.opencontainers.image.ref.name": name },
    }] });
    std::fs::write(folder.join("index.json"), index.to_string()).unwrap();
    std::fs::write(folder.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).unwrap();
}

/// A folder of a test's own, with room for a store, a layout and an outside.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Place {
        Place(TempDir::new().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Files of this folder, by name, with their content.
    pub(crate) fn everything_but(&self, left_out: &[&str]) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        let mut pending = vec![self.0.path().to_owned()];
        while let Some(folder) = pending.pop() {
            for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
                let path = entry.path();
                if left_out.iter().any(|name| path == self.path(name)) {
                    continue;
                }
                match entry.file_type().unwrap().is_dir() {
                    true => pending.push(path),
                    false => drop(found.insert(path.clone(), std::fs::read(path).unwrap())),
                }
            }
        }
        found
    }
}

/// One thing in a tree, as anybody can see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) kind: char,
    pub(crate) mode: u32,
    pub(crate) owner: (u32, u32),
    pub(crate) mtime: i64,
    /// Content's digest, or where a link points.
    pub(crate) what: String,
}

/// All that is in a folder, by path.
pub(crate) fn look(root: &Path) -> BTreeMap<PathBuf, Seen> {
    let mut found = BTreeMap::new();
    let mut pending = vec![root.to_owned()];
    while let Some(path) = pending.pop() {
        let there = path.symlink_metadata().unwrap();
        let kind = there.file_type();
        let (kind, what) = if kind.is_dir() {
            pending.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            ('d', String::new())
        } else if kind.is_symlink() {
            ('l', String::from_utf8_lossy(std::fs::read_link(&path).unwrap().as_os_str().as_bytes()).into_owned())
        } else if kind.is_file() {
            // Some are closed to everybody but root.
            ('f', std::fs::read(&path).map_or_else(|error| error.to_string(), |content| digest(&content)))
        } else {
            ('o', format!("{:o} {}", there.mode(), there.rdev()))
        };
        let seen = Seen {
            kind,
            mode: there.permissions().mode() & 0o7777,
            owner: (there.uid(), there.gid()),
            mtime: there.mtime(),
            what,
        };
        found.insert(path.strip_prefix(root).unwrap().to_owned(), seen);
    }
    found
}

/// Runs a script with an overlay of the layers at `$MERGED`, in a mount namespace of its own; as root in a user namespace where
/// `user` says so.
pub(crate) fn in_overlay(layers: &[PathBuf], place: &Place, user: User, script: &str) -> String {
    // An overlay that cannot be written to has at least two layers.
    let (nothing, merged) = (place.path("nothing"), place.path("merged"));
    for folder in [&nothing, &merged] {
        std::fs::create_dir_all(folder).unwrap();
    }
    let lowers: Vec<&str> = layers.iter().rev().chain([&nothing]).map(|layer| layer.to_str().unwrap()).collect();
    let options = match user {
        User::Root => "",
        User::Ordinary => "userxattr,",
    };
    let mut command = match user {
        User::Root => Command::new("unshare"),
        User::Ordinary => {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "unshare", "--user", "--map-root-user"]);
            command
        }
    };
    let mount = format!("mount -t overlay overlay -o {options}lowerdir=\"$LOWERS\" \"$MERGED\" && {script}");
    command.args(["--mount", "sh", "-euc", &mount]).env("LOWERS", lowers.join(":")).env("MERGED", &merged);
    let output = output(command);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Held by whoever forks, until the child has become its program: before that it has a copy of every descriptor of this
/// process, and so holds the locks of other tests' leases.
pub(crate) static FORKING: Mutex<()> = Mutex::new(());

/// What a program printed.
pub(crate) fn output(mut command: Command) -> Output {
    let child = {
        let _alone = FORKING.lock().unwrap_or_else(PoisonError::into_inner);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    child.wait_with_output().unwrap()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum User {
    Root,
    Ordinary,
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Says that something was not tried here, past the test runner, which keeps what passing tests print to itself.
pub(crate) fn skipped(what: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: {what}, because {why}");
}

/// Says that something is missing here that the tests are meant to have; in CI that is a failure.
pub(crate) fn missing(what: &str, why: &str) {
    let is_ci = std::env::var("CI").is_ok_and(|ci| !matches!(ci.as_str(), "" | "0" | "false"));
    assert!(!is_ci, "{what}: {why}");
    skipped(what, why);
}
