//! Sends file changes to a host until it closes the channel.
//!
//! At most one frame of changes and two reads of events are held. While the host does not read, nothing is read from
//! the kernel, whose own queue is bounded: what it drops becomes an overflow.

mod backlog;
mod batch;
mod folders;
mod inotify;
mod nodes;
mod watcher;

use std::time::Duration;

use cofferdam_protocol::{Fault, FaultCode, Kind, Reply};

use self::inotify::Queue;
use self::watcher::{Step, Watcher};
use super::place::{Place, blocking};
use crate::channel::Channel;
use crate::requests::{Failure, fault};

/// How long the second half of a rename may take. The kernel sends both together, but a read may come between.
const MATE: Duration = Duration::from_millis(5);

pub(crate) async fn watch(place: Place, recursive: bool, channel: &Channel) -> Result<Reply, Failure> {
    let mut watcher = blocking(move || Watcher::begin(&place, recursive)).await?;
    let queue = Queue::new(watcher.watches()).map_err(unreadable)?;
    channel.reply(&Reply::Done).await?;
    loop {
        let (next, step) = if watcher.is_brief() { watcher.work()? } else { blocking(move || watcher.work()).await? };
        watcher = next;
        if step == Step::Half {
            await_mate(&mut watcher, &queue).await?;
            continue;
        }
        if let Some(batch) = watcher.take_batch()? {
            channel.send(Kind::Data, batch).await?;
        }
        match step {
            Step::Over => return Ok(Reply::Done),
            Step::Drained => read_more(&mut watcher, &queue).await?,
            Step::Full | Step::Half => {}
        }
    }
}

async fn read_more(watcher: &mut Watcher, queue: &Queue) -> Result<(), Fault> {
    let mut events = queue.try_read().map_err(unreadable)?;
    if events.is_empty() {
        if !watcher.has_caught_up() {
            return Ok(());
        }
        events = queue.read().await.map_err(unreadable)?;
    } else {
        // Yields to others when it never ends.
        tokio::task::yield_now().await;
    }
    watcher.take_in(events);
    Ok(())
}

async fn await_mate(watcher: &mut Watcher, queue: &Queue) -> Result<(), Fault> {
    let waiting = watcher.backlog().len();
    let mut events = queue.try_read().map_err(unreadable)?;
    if events.is_empty() {
        tokio::time::sleep(MATE).await;
        events = queue.try_read().map_err(unreadable)?;
        watcher.backlog().settle(waiting);
    }
    watcher.take_in(events);
    Ok(())
}

fn unreadable(error: std::io::Error) -> Fault {
    fault(FaultCode::Internal, format!("cannot read what happens to files: {error}"))
}
