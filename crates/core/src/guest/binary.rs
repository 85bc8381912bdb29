//! The guest binaries that this build carries.

use sha2::{Digest, Sha256};

use crate::{Error, ErrorCode, Result};

/// An architecture that sandboxes run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Arch {
    /// `x86_64`, `amd64`
    X64,
    /// `aarch64`, `arm64`
    Arm64,
}

impl Arch {
    /// As an engine names it.
    pub fn parse(name: &str) -> Option<Arch> {
        match name {
            "x86_64" | "amd64" => Some(Arch::X64),
            "aarch64" | "arm64" => Some(Arch::Arm64),
            _ => None,
        }
    }
}

/// The guest for an architecture, and a short hash that names it.
pub fn guest_binary(arch: Arch) -> Result<(&'static [u8], String)> {
    let bytes: &[u8] = match arch {
        Arch::X64 => include_bytes!(concat!(env!("OUT_DIR"), "/guest-x64")),
        Arch::Arm64 => include_bytes!(concat!(env!("OUT_DIR"), "/guest-arm64")),
    };
    if bytes.is_empty() {
        let message = format!(
            "this build of cofferdam carries no guest for {arch:?} engines; build it on such a machine, or set \
             COFFERDAM_GUEST_{} while building",
            format!("{arch:?}").to_uppercase()
        );
        return Err(Error::new(ErrorCode::Unsupported, message));
    }
    let digest = Sha256::digest(bytes);
    Ok((bytes, digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()))
}
