//! What happens to files in a sandbox, as it happens.

use std::sync::Arc;
use std::time::Duration;

use cofferdam_protocol::{FileChange, Reply, Request, decode};

use tokio::sync::watch;

use super::channel::{Channel, unexpected};
use super::connection::Guest;
use super::link::{Event, LinkEnd};
use crate::Result;

/// How long other calls wait for a watch to be in place. A file system that hangs must not hang them all.
const PATIENCE: Duration = Duration::from_secs(2);

impl Guest {
    /// Watches a folder, with all below it if `recursive`, or one file. Calls that are made from now on, and not only from
    /// when this is done, wait for it to be in place: so that what they change is told.
    pub fn watch_files(
        self: &Arc<Self>,
        path: &str,
        recursive: bool,
    ) -> impl Future<Output = Result<FileWatch>> + Send + use<> {
        let (guest, beginning) = (Arc::clone(self), self.beginnings.begin());
        let path = path.to_owned();
        async move {
            match recursive {
                true => guest.admit_tree(&path).await?,
                false => guest.admit(&path).await?,
            }
            let request = Request::WatchFiles { path, recursive };
            let channel = guest.begin_watch(&request).await?;
            drop(beginning);
            Ok(FileWatch { guest, request, channel: Some(channel) })
        }
    }

    async fn begin_watch(&self, request: &Request) -> Result<Channel> {
        self.with_link_now(|link| async move {
            // One answer when everything is watched, one at the end.
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

/// A watch over files. What is not read waits in the sandbox, up to what fits a window and the kernel's own queue; what
/// is dropped beyond that is told as [`FileChange::Overflow`]. Dropping it ends the watch.
pub struct FileWatch {
    guest: Arc<Guest>,
    request: Request,
    channel: Option<Channel>,
}

impl FileWatch {
    /// The next changes, at least one; none when what was watched is gone. When the link breaks, the watch is made again
    /// on a new one, and an overflow stands for what was missed meanwhile. After an error, there are no more.
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

/// The watches that were asked for and are not in place yet.
#[derive(Default)]
pub(super) struct Beginnings(watch::Sender<usize>);

impl Beginnings {
    fn begin(&self) -> Beginning {
        self.0.send_modify(|count| *count += 1);
        Beginning(self.0.clone())
    }

    pub(super) async fn settled(&self) {
        if *self.0.borrow() > 0 {
            let mut count = self.0.subscribe();
            let _ = tokio::time::timeout(PATIENCE, count.wait_for(|count| *count == 0)).await;
        }
    }
}

struct Beginning(watch::Sender<usize>);

impl Drop for Beginning {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
