//! The 512 bytes before every entry of a tar stream.

use crate::error::{ImageError, Result};

pub(super) const BLOCK: usize = 512;

/// A header's fields, checked.
pub(super) struct Header {
    pub(super) kind: u8,
    pub(super) path: Vec<u8>,
    pub(super) link: Vec<u8>,
    pub(super) mode: u32,
    pub(super) uid: u64,
    pub(super) gid: u64,
    pub(super) size: u64,
    pub(super) mtime: i64,
    pub(super) sparse: Option<Sparse>,
}

/// GNU's way to store files with holes.
pub(super) struct Sparse {
    /// With the holes.
    pub(super) size: u64,
    pub(super) pieces: Vec<(u64, u64)>,
    /// In blocks that follow.
    pub(super) continues: bool,
}

impl Header {
    pub(super) fn parse(block: &[u8; BLOCK]) -> Result<Header> {
        let plain = |sum: u64, (index, byte): (usize, &u8)| {
            sum + u64::from(if (148..156).contains(&index) { b' ' } else { *byte })
        };
        if number(&block[148..156])? != block.iter().enumerate().fold(0, plain) {
            return Err(ImageError::invalid_layer(
                "it is not a tar archive, or a damaged one: a header's checksum is wrong",
            ));
        }
        let kind = block[156];
        let is_posix = &block[257..263] == b"ustar\0";
        let mut path = text(&block[345..500]).to_vec();
        match is_posix && !path.is_empty() {
            true => path.push(b'/'),
            false => path.clear(),
        }
        path.extend_from_slice(text(&block[..100]));
        let sparse = match kind {
            b'S' => {
                let mut pieces = Vec::new();
                read_pieces(&block[386..482], &mut pieces)?;
                Some(Sparse { size: number(&block[483..495])?, pieces, continues: block[482] != 0 })
            }
            _ => None,
        };
        Ok(Header {
            kind,
            path,
            link: text(&block[157..257]).to_vec(),
            mode: (number(&block[100..108])? & 0o7777) as u32,
            uid: number(&block[108..116])?,
            gid: number(&block[116..124])?,
            size: number(&block[124..136])?,
            mtime: signed(&block[136..148])?,
            sparse,
        })
    }

    /// From a block after a sparse header; whether there is another.
    pub(super) fn more_pieces(block: &[u8; BLOCK], pieces: &mut Vec<(u64, u64)>) -> Result<bool> {
        read_pieces(&block[..504], pieces)?;
        Ok(block[504] != 0)
    }
}

fn read_pieces(fields: &[u8], pieces: &mut Vec<(u64, u64)>) -> Result<()> {
    for field in fields.chunks_exact(24).take_while(|field| field[0] != 0) {
        pieces.push((number(&field[..12])?, number(&field[12..])?));
    }
    Ok(())
}

fn text(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or(field)
}

fn number(field: &[u8]) -> Result<u64> {
    u64::try_from(signed(field)?).map_err(|_| broken())
}

/// Octal digits, or two's complement where the first bit is set.
fn signed(field: &[u8]) -> Result<i64> {
    if field[0] & 0x80 != 0 {
        let is_negative = field[0] & 0x40 != 0;
        let first = if is_negative { field[0] } else { field[0] & 0x7f };
        let start = if is_negative { -1 } else { 0 };
        let wide = field[1..].iter().try_fold(i128::from(start) << 8 | i128::from(first), |value, byte| {
            value.checked_mul(256).map(|value| value | i128::from(*byte))
        });
        return wide.and_then(|value| i64::try_from(value).ok()).ok_or_else(broken);
    }
    let digits = std::str::from_utf8(text(field)).map_err(|_| broken())?.trim();
    if digits.is_empty() {
        return Ok(0);
    }
    i64::from_str_radix(digits, 8).map_err(|_| broken())
}

fn broken() -> ImageError {
    ImageError::invalid_layer("it is not a tar archive, or a damaged one: a number in a header is invalid")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_octal_or_binary_and_nothing_else() {
        assert_eq!(signed(b"0000644\0").unwrap(), 0o644);
        assert_eq!(signed(b"   644 \0").unwrap(), 0o644);
        assert_eq!(signed(b"\0\0\0\0").unwrap(), 0);
        assert_eq!(number(b"\x80\0\0\0\0\0\0\x02\0\0\0\0").unwrap(), 1 << 33);
        assert_eq!(signed(b"\xff\xff\xff\xff\xff\xff\xff\xff").unwrap(), -1);
        assert!(number(b"\xff\xff\xff\xff\xff\xff\xff\xff").is_err());
        assert!(number(b"\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff").is_err());
        assert!(signed(b"0000689\0").is_err());
        assert!(signed(b"-1\0").is_ok_and(|value| value == -1));
    }
}
