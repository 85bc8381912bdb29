//! Names of images: which registry, which repository, which tag or digest.

use std::fmt;
use std::net::IpAddr;

use crate::digest::Digest;
use crate::error::{ImageError, ImageErrorKind, Result};

/// The registry of names without one, as everywhere.
const DEFAULT_REGISTRY: &str = "docker.io";

/// The host that serves it.
const DEFAULT_REGISTRY_HOST: &str = "registry-1.docker.io";

/// How an image is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// `sha256:…`: one that is in the store, by the digest of its configuration.
    Id(Digest),
    /// Anything else.
    Name(Reference),
}

/// The whole name of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reference {
    pub(crate) registry: String,
    pub(crate) repository: String,
    tag: Option<String>,
    pub(crate) digest: Option<Digest>,
}

impl Wanted {
    pub(crate) fn parse(text: &str) -> Result<Wanted> {
        match text.parse() {
            Ok(id) => Ok(Wanted::Id(id)),
            Err(_) => Reference::parse(text).map(Wanted::Name),
        }
    }
}

impl Reference {
    pub(crate) fn parse(text: &str) -> Result<Reference> {
        let refuse = |why: &str| {
            let message = format!(
                "{text:?} is not the name of an image: {why}. Names look like \"alpine:3.19\", \
                 \"registry.example:5000/team/name:tag\" or \"name@sha256:…\""
            );
            ImageError::new(ImageErrorKind::InvalidReference, message)
        };
        if text.len() > 512 {
            return Err(refuse("it is longer than 512 bytes"));
        }
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest.parse().map_err(|why: String| refuse(&why))?)),
            None => (text, None),
        };
        let (first, others) = rest.split_once('/').unwrap_or(("", rest));
        let names_registry = first.contains(['.', ':']) || first == "localhost";
        let (registry, path) = if names_registry { (first, others) } else { (DEFAULT_REGISTRY, rest) };
        let (path, tag) = match path.split_once(':') {
            Some((path, tag)) => (path, Some(tag)),
            None => (path, None),
        };
        if !tag.is_none_or(is_tag) {
            return Err(refuse("a tag has 1 to 128 letters, digits, dots, dashes and underscores"));
        }
        if !path.split('/').all(is_name) {
            return Err(refuse(
                "its parts are lower case letters and digits, with dots, dashes and underscores between",
            ));
        }
        if names_registry && !is_host(registry) {
            return Err(refuse("the registry is not a host with an optional port"));
        }
        let registry = if registry == "index.docker.io" { DEFAULT_REGISTRY } else { registry };
        let is_official = registry == DEFAULT_REGISTRY && !path.contains('/');
        let repository = if is_official { format!("library/{path}") } else { path.to_owned() };
        Ok(Reference { registry: registry.to_owned(), repository, tag: tag.map(str::to_owned), digest })
    }

    /// The tag or digest of the manifest.
    pub(crate) fn manifest(&self) -> String {
        match &self.digest {
            Some(digest) => digest.to_string(),
            None => self.tag.clone().unwrap_or_else(|| "latest".to_owned()),
        }
    }

    /// `scheme://host[:port]`. Plain HTTP never leaves this machine.
    pub(crate) fn origin(&self) -> String {
        let host = if self.registry == DEFAULT_REGISTRY { DEFAULT_REGISTRY_HOST } else { &self.registry };
        let scheme = if is_loopback(host) { "http" } else { "https" };
        format!("{scheme}://{host}")
    }

    /// The names that docker's configuration may use for the registry.
    pub(crate) fn credential_keys(&self) -> Vec<&str> {
        match self.registry == DEFAULT_REGISTRY {
            true => vec!["https://index.docker.io/v1/", "index.docker.io", DEFAULT_REGISTRY, DEFAULT_REGISTRY_HOST],
            false => vec![&self.registry],
        }
    }
}

impl fmt::Display for Reference {
    /// The same for every spelling.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.registry, self.repository)?;
        match (&self.tag, &self.digest) {
            (_, Some(digest)) => write!(formatter, "@{digest}"),
            (tag, None) => write!(formatter, ":{}", tag.as_deref().unwrap_or("latest")),
        }
    }
}

/// Whether `host[:port]` is this machine.
pub(crate) fn is_loopback(authority: &str) -> bool {
    let host = match authority.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or(v6),
        None => authority.split(':').next().unwrap_or(authority),
    };
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn is_tag(tag: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=128).contains(&tag.len()) && tag.bytes().all(allowed) && !tag.starts_with(['.', '-'])
}

fn is_name(part: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
    let ends_well = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    part.bytes().all(allowed) && ends_well(part.as_bytes().first()) && ends_well(part.as_bytes().last())
}

fn is_host(authority: &str) -> bool {
    let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((v6, "")) => (v6, None),
        Some((v6, port)) => (v6, Some(port.strip_prefix(':').unwrap_or(""))),
        None => authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port))),
    };
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-".contains(&byte);
    let is_named = match authority.starts_with('[') {
        true => host.parse::<std::net::Ipv6Addr>().is_ok(),
        false => !host.is_empty() && host.bytes().all(allowed) && !host.starts_with(['.', '-']),
    };
    is_named && port.is_none_or(|port| port.parse::<u16>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_name_is_one_name() {
        for (spelling, whole) in [
            ("alpine", "docker.io/library/alpine:latest"),
            ("docker.io/alpine:3.19", "docker.io/library/alpine:3.19"),
            ("index.docker.io/library/alpine:3.19", "docker.io/library/alpine:3.19"),
            ("team/tool", "docker.io/team/tool:latest"),
            ("localhost/x:1", "localhost/x:1"),
            ("127.0.0.1:5000/a/b/c:v1.0", "127.0.0.1:5000/a/b/c:v1.0"),
            ("[::1]:5000/a", "[::1]:5000/a:latest"),
        ] {
            assert_eq!(Reference::parse(spelling).unwrap().to_string(), whole, "{spelling}");
        }
        let digest = format!("sha256:{}", "a".repeat(64));
        let pinned = Reference::parse(&format!("alpine:3.19@{digest}")).unwrap();
        assert_eq!(pinned.to_string(), format!("docker.io/library/alpine@{digest}"));
        assert_eq!(pinned.manifest(), digest);
        assert_eq!(Wanted::parse(&digest).unwrap(), Wanted::Id(digest.parse().unwrap()));
    }

    #[test]
    fn what_is_no_name_is_refused_with_the_reason() {
        for name in [
            "",
            "Alpine",
            "a b",
            "a:b:c",
            "../x",
            "a//b",
            "a:",
            "-a",
            "a-",
            "a@sha256:zz",
            "a\0b",
            "ä",
            "x.y:99999/a",
            "http://x.y/a",
            "x.y/",
            "[::1/a",
            "[zz]:1/a",
            "a/../b",
            ".x.y/a",
            "a@md5:00",
        ] {
            let error = Wanted::parse(name).unwrap_err();
            assert_eq!(error.kind, ImageErrorKind::InvalidReference, "{name}");
            assert!(error.message.contains("is not the name of an image"), "{error}");
        }
    }

    #[test]
    fn plain_http_is_for_this_machine_alone() {
        for (name, origin) in [
            ("localhost:5000/a", "http://localhost:5000"),
            ("127.8.9.1/a", "http://127.8.9.1"),
            ("[::1]:5000/a", "http://[::1]:5000"),
            ("localhost.example/a", "https://localhost.example"),
            ("127.0.0.1.example:80/a", "https://127.0.0.1.example:80"),
            ("10.0.0.1:5000/a", "https://10.0.0.1:5000"),
            ("alpine", "https://registry-1.docker.io"),
        ] {
            assert_eq!(Reference::parse(name).unwrap().origin(), origin, "{name}");
        }
    }
}
