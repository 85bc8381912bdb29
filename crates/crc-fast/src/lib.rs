//! Stands in for the crate of the same name, by `[patch.crates-io]`.
//!
//! `object_store` takes it with its defaults, which export all of it as C functions: 0.7 MB of tables in every addon
//! that nobody reads. What `object_store` does call, where S3 is told to check uploads by CRC-64/NVME, is here, over the
//! `crc` crate. It must never grow beyond that.

/// The checksums that can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrcAlgorithm {
    /// CRC-64/NVME
    Crc64Nvme,
}

static NVME: crc::Crc<u64> = crc::Crc::<u64>::new(&crc::CRC_64_NVME);

/// A checksum over pieces.
///
/// ```
/// let mut digest = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc64Nvme);
/// digest.update(b"12345");
/// digest.update(b"6789");
/// assert_eq!(digest.finalize(), 0xae8b_1486_0a79_9888);
/// ```
pub struct Digest(crc::Digest<'static, u64>);

impl Digest {
    /// Over nothing yet.
    pub fn new(CrcAlgorithm::Crc64Nvme: CrcAlgorithm) -> Digest {
        Digest(NVME.digest())
    }

    /// Takes the next piece in.
    pub fn update(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    /// The checksum of all pieces.
    pub fn finalize(self) -> u64 {
        self.0.finalize()
    }
}
