//! Downloads a layer to a file: hashed as it comes, resumed after a broken connection, and stored only when its digest is right.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::CONTENT_RANGE;
use tokio::sync::mpsc;

use super::{PAUSE, Registry, TRIES};
use crate::digest::Hasher;
use crate::error::{ImageError, ImageErrorKind, Result};
use crate::manifest::Descriptor;
use crate::progress::LayerReporter;

/// Pieces that wait for the disk: at most some megabytes.
const PIECES: usize = 64;

impl Registry {
    /// Downloads the blob to `path`, where an earlier try may have left a part of it.
    pub(crate) async fn download(&self, blob: &Descriptor, path: &Path, reporter: &LayerReporter) -> Result<()> {
        let mut tries = 0;
        loop {
            let before = size_of(path);
            let error = match self.attempt(blob, path, before, reporter).await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            let is_passing = matches!(error.kind, ImageErrorKind::Unreachable | ImageErrorKind::Timeout);
            // A part left by another process may be wrong; then start again.
            let is_stale = error.kind == ImageErrorKind::DigestMismatch && before > 0;
            tries = if is_passing && size_of(path) > before { 1 } else { tries + 1 };
            if !(is_passing || is_stale) || tries >= TRIES {
                return Err(error);
            }
            reporter.report("Retrying");
            tokio::time::sleep(PAUSE * 2_u32.pow(tries - 1)).await;
        }
    }

    async fn attempt(&self, blob: &Descriptor, path: &Path, have: u64, reporter: &LayerReporter) -> Result<()> {
        let location = format!("blobs/{}", blob.digest);
        let have = if have < blob.size { have } else { 0 };
        let response = self.get(&location, (have > 0).then_some(have)).await?;
        let starts_there = response.headers().get(CONTENT_RANGE).and_then(|range| range.to_str().ok());
        let continues = response.status() == StatusCode::PARTIAL_CONTENT
            && starts_there.is_some_and(|range| range.starts_with(&format!("bytes {have}-")));
        let have = if continues { have } else { 0 };
        let (pieces, incoming) = mpsc::channel(PIECES);
        let target = path.to_owned();
        let writing = tokio::task::spawn_blocking(move || write(incoming, &target, have));

        let mut counter = reporter.counter("Downloading", blob.size);
        let mut received = have;
        let mut body = response.into_body();
        let url = self.url(&location);
        let outcome = loop {
            match self.wire.piece(&mut body, &url).await {
                Ok(Some(piece)) => {
                    received += piece.len() as u64;
                    // The writer's own result says why.
                    if received > blob.size || pieces.send(piece).await.is_err() {
                        break Ok(());
                    }
                    counter.reach(received);
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        drop(pieces);
        let hasher = writing.await.map_err(|error| {
            ImageError::new(ImageErrorKind::Storage, format!("writing {} failed: {error}", path.display()))
        })??;
        outcome?;
        let from = format!("the layer {} from {}", blob.digest.short(), self.reference.registry);
        if received < blob.size {
            let message = format!("{from} ended after {received} of {} bytes. Try again", blob.size);
            return Err(ImageError::new(ImageErrorKind::Unreachable, message));
        }
        let checked = match received > blob.size {
            true => {
                let message = format!("{from} is longer than the {} bytes that its manifest says", blob.size);
                Err(ImageError::new(ImageErrorKind::DigestMismatch, message))
            }
            false => blob.digest.check(&hasher.finish(), &from),
        };
        if checked.is_err() {
            let _ = std::fs::remove_file(path);
        }
        checked
    }
}

/// Appends to what is there already.
fn write(mut pieces: mpsc::Receiver<Bytes>, path: &Path, have: u64) -> Result<Hasher> {
    let failed = || ImageError::storage::<std::io::Error>("write", path);
    let mut hasher = Hasher::default();
    let mut file =
        OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path).map_err(failed())?;
    file.set_len(have).map_err(failed())?;
    let mut buffer = vec![0; 128 * 1024];
    loop {
        match File::read(&mut file, &mut buffer).map_err(failed())? {
            0 => break,
            count => hasher.update(&buffer[..count]),
        }
    }
    while let Some(piece) = pieces.blocking_recv() {
        hasher.update(&piece);
        file.write_all(&piece).map_err(failed())?;
    }
    Ok(hasher)
}

fn size_of(path: &Path) -> u64 {
    path.metadata().map_or(0, |there| there.len())
}
