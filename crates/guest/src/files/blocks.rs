//! File data from a host, in blocks large enough for a trip to a helper thread.

use bytes::Bytes;

use crate::channel::{Channel, Inbound};
use crate::fd::READ_SIZE;
use crate::outbox::Gone;

/// What one trip to a helper thread reads or writes.
pub(super) const BLOCK: usize = 8 * READ_SIZE;

/// Pieces in one block at most, however short.
const PIECES: usize = 256;

/// Received data.
pub(super) struct Block {
    pub(super) pieces: Vec<Bytes>,
    pub(super) bytes: u64,
    /// Nothing comes after it.
    pub(super) is_last: bool,
}

/// Waits for a block's worth, or for the end.
pub(super) async fn next_block(channel: &Channel) -> Result<Block, Gone> {
    let mut block = Block { pieces: Vec::new(), bytes: 0, is_last: false };
    while block.bytes < BLOCK as u64 && block.pieces.len() < PIECES {
        match channel.recv().await? {
            Inbound::Data(piece) => {
                block.bytes += piece.len() as u64;
                block.pieces.push(piece);
            }
            Inbound::End => {
                block.is_last = true;
                break;
            }
        }
    }
    Ok(block)
}
