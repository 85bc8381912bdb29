//! Decompresses a layer: gzip, zstd or none, by its first bytes.

use std::io::{self, BufRead, Read};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Frames without content; their first byte varies.
const ZSTD_SKIPPED: [u8; 3] = [0x2a, 0x4d, 0x18];

/// The stream inside.
pub(crate) fn expand<'a, R: BufRead + Send + 'a>(mut packed: R) -> io::Result<Box<dyn Read + Send + 'a>> {
    let start = packed.fill_buf()?;
    let is_zstd = start.starts_with(&ZSTD) || (start.len() >= 4 && start[1..4] == ZSTD_SKIPPED);
    Ok(match start {
        start if start.starts_with(&GZIP) => Box::new(MultiGzDecoder::new(packed)),
        _ if is_zstd => Box::new(Zstd { packed, decoder: FrameDecoder::new(), is_between: true }),
        _ => Box::new(packed),
    })
}

/// All frames of a stream, one after the other. The decoder bounds its own window.
struct Zstd<R> {
    packed: R,
    decoder: FrameDecoder,
    /// Frames.
    is_between: bool,
}

impl<R: BufRead> Zstd<R> {
    /// False at the end of the stream.
    fn begin_frame(&mut self) -> io::Result<bool> {
        loop {
            if self.packed.fill_buf()?.is_empty() {
                return Ok(false);
            }
            match self.decoder.reset(&mut self.packed) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    let length = u64::from(length);
                    if io::copy(&mut (&mut self.packed).take(length), &mut io::sink())? < length {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if self.is_between {
                if !self.begin_frame()? {
                    return Ok(0);
                }
                self.is_between = false;
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let strategy = BlockDecodingStrategy::UptoBlocks(1);
                self.decoder.decode_blocks(&mut self.packed, strategy).map_err(io::Error::other)?;
            }
            let count = self.decoder.read(buffer)?;
            if count > 0 {
                return Ok(count);
            }
            self.is_between = true;
        }
    }
}
