//! The guest binaries embedded in this build.

use std::io::Read;

use ruzstd::decoding::StreamingDecoder;

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
    /// Parses an engine's name for it.
    pub fn parse(name: &str) -> Option<Arch> {
        match name {
            "x86_64" | "amd64" => Some(Arch::X64),
            "aarch64" | "arm64" => Some(Arch::Arm64),
            _ => None,
        }
    }
}

/// The embedded guest for one architecture.
#[derive(Debug, Clone, Copy)]
pub struct GuestBinary {
    /// A short content hash.
    pub hash: &'static str,
    packed: &'static [u8],
}

impl GuestBinary {
    /// Unpacks the program. It is embedded compressed, and needed once per engine or machine.
    pub fn unpack(&self) -> Result<Vec<u8>> {
        let broken = |error: &dyn std::fmt::Display| {
            Error::new(ErrorCode::Internal, format!("the guest cannot be unpacked: {error}"))
        };
        let mut bytes = Vec::new();
        let mut decoder = StreamingDecoder::new(self.packed).map_err(|error| broken(&error))?;
        decoder.read_to_end(&mut bytes).map_err(|error| broken(&error))?;
        Ok(bytes)
    }
}

/// A guest as packed by `build.rs`.
macro_rules! embedded {
    ($file:literal) => {
        GuestBinary {
            hash: include_str!(concat!(env!("OUT_DIR"), "/", $file, ".hash")),
            packed: include_bytes!(concat!(env!("OUT_DIR"), "/", $file)),
        }
    };
}

/// The guest for an architecture, if this build has it.
pub fn guest_binary(arch: Arch) -> Result<GuestBinary> {
    let guest = match arch {
        Arch::X64 => embedded!("guest-x64"),
        Arch::Arm64 => embedded!("guest-arm64"),
    };
    if guest.packed.is_empty() {
        let message = format!(
            "this build of cofferdam carries no guest for {arch:?} engines; build it on such a machine, or set \
             COFFERDAM_GUEST_{} while building",
            format!("{arch:?}").to_uppercase()
        );
        return Err(Error::new(ErrorCode::Unsupported, message));
    }
    Ok(guest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guest_of_this_machine_is_a_program_when_unpacked() {
        let Some(arch) = Arch::parse(std::env::consts::ARCH) else { return };
        let guest = guest_binary(arch).unwrap();
        assert!(guest.unpack().unwrap().starts_with(b"\x7fELF"));
        assert_eq!(guest.hash.len(), 16);
    }
}
