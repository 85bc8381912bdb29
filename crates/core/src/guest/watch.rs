//! File changes in a sandbox, as they happen.

use std::sync::Arc;
use std::time::Duration;

use cofferdam_protocol::{FileChange, Reply, Request, decode};

use tokio::sync::watch;

use super::channel::{Channel, unexpected};
use super::connection::Guest;
use super::link::{Event, LinkEnd};
use crate::Result;

/// How long other calls wait for a pending watch. A file system that hangs must not block them all.
const WATCH_TIMEOUT: Duration = Duration::from_secs(2);

impl Guest {
    /// Watches a file or a folder; `recursive` includes all subfolders. Calls made after this one, even before it resolves,
    /// wait for the watch to be in place: their changes are reported.
    pub fn watch_files(
        self: &Arc<Self>,
        path: &str,
        recursive: bool,
    ) -> impl Future<Output = Result<FileWatch>> + Send + use<> {
        let (guest, pending) = (Arc::clone(self), self.pending_watches.begin());
        let path = path.to_owned();
        async move {
            match recursive {
                true => guest.admit_tree(&path).await?,
                false => guest.admit(&path).await?,
            }
            let request = Request::WatchFiles { path, recursive };
            let channel = guest.begin_watch(&request).await?;
            drop(pending);
            Ok(FileWatch { guest, request, channel: Some(channel) })
        }
    }

    async fn begin_watch(&self, request: &Request) -> Result<Channel> {
        self.with_link_now(|link| async move {
            // One reply when the watch is in place, one at the end.
            let mut channel = match link.request(request, 2)? {
                Ok(channel) => channel,
                Err(error) => return Ok(Err(error)),
            };
            Ok(match channel.reply().await? {
                Ok(Reply::Done) => Ok(channel),
                Ok(_) => Err(unexpected()),
                Err(error) => Err(error),
            })
        })
        .await
    }
}

/// A file watch. Unread changes wait in the sandbox, within one window and the kernel's queue; beyond that they are
/// dropped and reported as [`FileChange::Overflow`]. Dropping it ends the watch.
pub struct FileWatch {
    guest: Arc<Guest>,
    request: Request,
    channel: Option<Channel>,
}

impl FileWatch {
    /// The next changes, at least one; none when the watched path is gone. When the link breaks, the watch resumes on a new
    /// one, and an overflow marks the gap. No changes follow an error.
    pub async fn next_many(&mut self) -> Result<Vec<FileChange>> {
        let Some(channel) = &mut self.channel else { return Ok(Vec::new()) };
        let outcome = match channel.next().await {
            Ok(Event::Data(bytes)) => match decode::<Vec<FileChange>>(&bytes) {
                Ok(changes) if !changes.is_empty() => return Ok(changes),
                Ok(_) => Err(unexpected()),
                Err(error) => Err(LinkEnd::Protocol(error.to_string()).into()),
            },
            Ok(Event::Reply(Reply::Done)) => Ok(Vec::new()),
            Ok(Event::Reply(Reply::Fault(fault))) => Err(fault.into()),
            Ok(_) => Err(unexpected()),
            Err(LinkEnd::Broken(_)) => match self.guest.begin_watch(&self.request).await {
                Ok(channel) => {
                    self.channel = Some(channel);
                    return Ok(vec![FileChange::Overflow]);
                }
                Err(error) => Err(error),
            },
            Err(end) => Err(self.guest.explain(end).await),
        };
        self.channel = None;
        outcome
    }
}

/// Watches that were requested and are not in place yet.
#[derive(Default)]
pub(super) struct PendingWatches(watch::Sender<usize>);

impl PendingWatches {
    fn begin(&self) -> PendingWatch {
        self.0.send_modify(|count| *count += 1);
        PendingWatch(self.0.clone())
    }

    pub(super) async fn wait(&self) {
        if *self.0.borrow() > 0 {
            let mut count = self.0.subscribe();
            let _ = tokio::time::timeout(WATCH_TIMEOUT, count.wait_for(|count| *count == 0)).await;
        }
    }
}

struct PendingWatch(watch::Sender<usize>);

impl Drop for PendingWatch {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
