//! The guest binaries that this build carries.

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
    /// As an engine names it.
    pub fn parse(name: &str) -> Option<Arch> {
        match name {
            "x86_64" | "amd64" => Some(Arch::X64),
            "aarch64" | "arm64" => Some(Arch::Arm64),
            _ => None,
        }
    }
}

/// The guest for one architecture, as this build carries it.
#[derive(Debug, Clone, Copy)]
pub struct GuestBinary {
    /// Short, and names the content.
    pub hash: &'static str,
    packed: &'static [u8],
}

impl GuestBinary {
    /// The program itself. It is carried packed, at less than half of its size, and needed once per engine or machine.
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

/// What `build.rs` made of a guest.
macro_rules! embedded {
    ($file:literal) => {
        GuestBinary {
            hash: include_str!(concat!(env!("OUT_DIR"), "/", $file, ".hash")),
            packed: include_bytes!(concat!(env!("OUT_DIR"), "/", $file)),
        }
    };
}

/// The guest for an architecture, where this build has it.
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
