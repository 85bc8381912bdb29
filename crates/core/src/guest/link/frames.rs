//! Reads frames from a byte stream, and writes them.

use std::io::IoSlice;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use cofferdam_protocol::{Decoder, Frame, io_slices};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use super::LinkEnd;
use super::demux::Shared;

/// Buffer space for the next read: more than one frame.
const READ_SIZE: usize = 128 * 1024;

/// How long the reader may take to read the guest's last notice after a write failed.
const FINAL_READ: Duration = Duration::from_millis(500);

/// The most frames per write.
const WRITE_FRAMES: usize = 16;

pub(super) type Reader = Pin<Box<dyn AsyncRead + Send>>;
pub(super) type Writer = Pin<Box<dyn AsyncWrite + Send>>;

pub(super) async fn read_more(reader: &mut Reader, buffer: &mut BytesMut) -> std::io::Result<usize> {
    buffer.reserve(READ_SIZE);
    reader.read_buf(buffer).await
}

pub(super) async fn read_frames(
    mut reader: Reader,
    mut decoder: Decoder,
    mut buffer: BytesMut,
    shared: &Shared,
) -> LinkEnd {
    loop {
        loop {
            match decoder.next(&mut buffer) {
                Ok(Some(frame)) => {
                    if let Err(end) = shared.take(frame) {
                        return end;
                    }
                }
                Ok(None) => break,
                Err(error) => return LinkEnd::Protocol(error.to_string()),
            }
        }
        match read_more(&mut reader, &mut buffer).await {
            Ok(0) => return LinkEnd::Broken("the stream ended".to_owned()),
            Ok(_) => {}
            Err(error) => return LinkEnd::Broken(error.to_string()),
        }
    }
}

pub(super) async fn write_frames(mut frames: mpsc::UnboundedReceiver<Frame>, mut writer: Writer, shared: Arc<Shared>) {
    let mut batch = Vec::with_capacity(WRITE_FRAMES);
    while frames.recv_many(&mut batch, WRITE_FRAMES).await > 0 {
        let written = match writer.is_write_vectored() {
            true => write_slices(&batch, &mut writer).await,
            false => write_gathered(&batch, &mut writer).await,
        };
        if let Err(error) = written {
            // A guest that ends sends a last notice before it closes the stream: let the reader get it.
            let _ = tokio::time::timeout(FINAL_READ, shared.ended.cancelled()).await;
            shared.finish(LinkEnd::Broken(error.to_string()));
            return;
        }
        batch.clear();
    }
}

/// Writes without copying, if the stream supports vectored writes.
async fn write_slices(frames: &[Frame], writer: &mut Writer) -> std::io::Result<()> {
    let headers: Vec<_> = frames.iter().map(Frame::header).collect();
    let mut slices = io_slices(frames, &headers);
    let mut rest = &mut slices[..];
    while !rest.is_empty() {
        let written = writer.write_vectored(rest).await?;
        if written == 0 {
            return Err(std::io::ErrorKind::WriteZero.into());
        }
        IoSlice::advance_slices(&mut rest, written);
    }
    writer.flush().await
}

async fn write_gathered(frames: &[Frame], writer: &mut Writer) -> std::io::Result<()> {
    let mut buffer = BytesMut::new();
    for frame in frames {
        frame.encode(&mut buffer);
    }
    writer.write_all(&buffer).await?;
    writer.flush().await
}
