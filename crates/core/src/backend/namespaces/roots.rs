//! What an image name stands for on this machine: its own programs, or a folder that holds a root file system.

use std::collections::BTreeMap;
use std::path::Path;

use cofferdam_protocol::keeper;

use crate::{Error, ErrorCode, Result, resolve_image};

/// The machine's own programs.
pub(super) const HOST: &str = "host";

/// Search path for programs, here and in the box.
const PATH: [&str; 6] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// The root file system of a box, and what its image says about itself.
#[derive(Debug, Clone)]
pub(super) struct Root {
    pub(super) layers: keeper::Root,
    /// The caller's variables override these.
    pub(super) env: BTreeMap<String, String>,
    /// The command user.
    pub(super) user: Option<String>,
}

/// The programs that a shortcut promises, any one of which suffices.
fn promised(name: &str) -> Option<&'static [&'static str]> {
    match name {
        "linux" | "bash" | "shell" => Some(&["bash", "sh"]),
        "python" => Some(&["python", "python3"]),
        "node" => Some(&["node"]),
        _ => None,
    }
}

fn find(program: &str) -> Option<String> {
    let files = PATH.iter().map(|folder| format!("{folder}/{program}"));
    // A link into a folder that boxes cannot see does not count.
    let is_seen = |file: &String| {
        Path::new(file)
            .canonicalize()
            .is_ok_and(|real| ["/usr", "/bin", "/sbin", "/lib", "/lib64"].iter().any(|seen| real.starts_with(seen)))
    };
    files.into_iter().find(is_seen)
}

/// Whether a name is a shortcut.
pub(super) fn is_shortcut(name: &str) -> bool {
    promised(name).is_some()
}

/// As [`super::images::ImageRoots::resolve_name`], for what is not in the store.
pub(super) fn resolve_name(name: &str) -> Result<String> {
    if let Some(programs) = promised(name) {
        if programs.iter().any(|program| find(program).is_some()) {
            return Ok(HOST.to_owned());
        }
        let message = format!(
            "\"{name}\" is the machine's own {} here, and this machine has none in {}. Install it, or name an image \
             (\"{}\") or a folder that holds a root",
            programs[0],
            PATH.join(", "),
            resolve_image(name)?
        );
        return Err(Error::new(ErrorCode::ImageNotFound, message).with("image", name));
    }
    if name.starts_with('/') {
        return Ok(name.to_owned());
    }
    resolve_image(name)
}

/// The root of a resolved image; `None` for an image that only the store has.
pub(super) fn resolve(image: &str) -> Result<Option<Root>> {
    if image == HOST {
        let missing = |(name, other): (&str, &str)| {
            find(name).is_none().then(|| find(other).map(|target| (name.to_owned(), target))).flatten()
        };
        let links = [("python", "python3"), ("pip", "pip3")].into_iter().filter_map(missing).collect();
        let env = BTreeMap::from([("LANG".to_owned(), "C.UTF-8".to_owned())]);
        return Ok(Some(Root { layers: keeper::Root::Host { links }, env, user: None }));
    }
    let path = Path::new(image);
    if !path.is_absolute() || is_archive(path) {
        return Ok(None);
    }
    let real = path.canonicalize().ok().filter(|real| real.is_dir() && real != Path::new("/"));
    let real = real.ok_or_else(|| {
        let message = format!("there is neither a folder nor an archive {image:?} on this machine to take as an image");
        Error::new(ErrorCode::ImageNotFound, message).with("image", image)
    })?;
    let layers = vec![real.to_string_lossy().into_owned()];
    Ok(Some(Root { layers: keeper::Root::Layers(layers), env: BTreeMap::new(), user: None }))
}

/// A file of `docker save`, or an OCI layout as a file or as a folder.
fn is_archive(path: &Path) -> bool {
    path.is_file() || path.join("oci-layout").is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortcuts_are_as_on_this_machine_and_folders_are_themselves() {
        assert_eq!(resolve_name("linux").unwrap(), HOST);
        assert_eq!(resolve_name("host").unwrap(), HOST);
        assert_eq!(resolve_name("/srv/root").unwrap(), "/srv/root");
        assert_eq!(resolve_name("alpine:3.19").unwrap(), "alpine:3.19");
        assert!(resolve_name("No Such").is_err());
    }

    #[test]
    fn what_is_not_there_is_refused() {
        assert!(resolve("alpine:3.19").unwrap().is_none());
        for image in ["/no/such/folder", "/"] {
            assert_eq!(resolve(image).unwrap_err().code(), Some(ErrorCode::ImageNotFound), "{image}");
        }
    }
}
