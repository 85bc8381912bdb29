//! Image names: shortcuts and validation.

use crate::{Error, Result};

/// The image of `open()` without one.
pub const DEFAULT_IMAGE: &str = "linux";

/// The image that a shortcut stands for; any other name is itself.
///
/// ```
/// assert_eq!(cofferdam_core::resolve_image("python").unwrap(), "python:3.11-slim");
/// assert_eq!(cofferdam_core::resolve_image("golang:1.22").unwrap(), "golang:1.22");
/// assert!(cofferdam_core::resolve_image("No Such Thing").is_err());
/// ```
pub fn resolve_image(name: &str) -> Result<String> {
    let image = match name {
        "linux" | "bash" | "shell" => "ubuntu:22.04",
        "python" => "python:3.11-slim",
        "node" => "node:20-slim",
        other => other,
    };
    if is_well_formed(image) {
        return Ok(image.to_owned());
    }
    Err(Error::invalid(format!(
        "{image:?} is not an image name; use a shortcut (linux, python, node) or a reference such as \"alpine:3.19\", \
         in lower case and without spaces"
    ))
    .with("image", image))
}

/// `[registry[:port]/]name[/name…][:tag][@digest]`, or an image id.
fn is_well_formed(image: &str) -> bool {
    if image.is_empty() || image.len() > 512 {
        return false;
    }
    let (rest, digest) = image.split_once('@').map_or((image, None), |(rest, digest)| (rest, Some(digest)));
    let digest_ok = digest.is_none_or(|digest| {
        digest.split_once(':').is_some_and(|(kind, hex)| {
            !kind.is_empty() && hex.len() >= 32 && hex.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
    });
    let last_slash = rest.rfind('/').map_or(0, |index| index + 1);
    let (path, tag) = match rest[last_slash..].find(':') {
        Some(colon) => (&rest[..last_slash + colon], Some(&rest[last_slash + colon + 1..])),
        None => (rest, None),
    };
    let tag_ok = tag.is_none_or(|tag| {
        (1..=128).contains(&tag.len())
            && tag.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
            && !tag.starts_with(['.', '-'])
    });
    let parts: Vec<&str> = path.split('/').collect();
    let has_registry = parts.len() > 1 && (parts[0].contains(['.', ':']) || parts[0] == "localhost");
    let names_ok = parts.iter().enumerate().all(|(index, part)| {
        let registry = index == 0 && has_registry;
        let allowed = |byte: u8| {
            byte.is_ascii_lowercase()
                || byte.is_ascii_digit()
                || b"._-".contains(&byte)
                || (registry && (byte == b':' || byte.is_ascii_uppercase()))
        };
        !part.is_empty() && part.bytes().all(allowed) && part.as_bytes()[0].is_ascii_alphanumeric()
    });
    digest_ok && tag_ok && names_ok
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortcuts_stand_for_images() {
        for (name, image) in [("linux", "ubuntu:22.04"), ("bash", "ubuntu:22.04"), ("shell", "ubuntu:22.04")] {
            assert_eq!(resolve_image(name).unwrap(), image);
        }
        assert_eq!(resolve_image("node").unwrap(), "node:20-slim");
    }

    #[test]
    fn well_formed_names_pass_and_others_do_not() {
        let digest = format!("alpine@sha256:{}", "a".repeat(64));
        for name in ["alpine", "alpine:3.19", "localhost:5000/a/b:1", "ghcr.io/Org/x".to_lowercase().as_str(), &digest]
        {
            assert!(resolve_image(name).is_ok(), "{name}");
        }
        for name in ["", "Alpine", "a b", "a:b:c", "../x", "a//b", "a:", "-a", "a@sha256:zz", "a\0b", "ä"] {
            assert!(resolve_image(name).is_err(), "{name}");
        }
    }
}
