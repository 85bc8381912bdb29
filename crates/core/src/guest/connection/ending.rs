//! Asking a guest to end.

use std::time::Duration;

use cofferdam_protocol::Request;
use tokio_util::sync::CancellationToken;

use super::Guest;
use crate::Error;
use crate::guest::channel::Channel;
use crate::lock::write;

/// How long a guest may take to confirm that it ends. Enough for a busy machine; only a guest that hangs takes this long.
const END_TIMEOUT: Duration = Duration::from_secs(2);

impl Guest {
    /// As [`Guest::close`], but asks the guest to end first: it then notifies every linked host. False when it does not
    /// answer; the backend must then remove it.
    pub(crate) async fn end(&self, error: Error) -> bool {
        let pending = self.ask_to_end();
        *write(&self.over) = Some(error.clone());
        let confirmed = match pending {
            Some(pending) => tokio::time::timeout(END_TIMEOUT, pending.wait()).await.is_ok(),
            None => false,
        };
        self.close(error);
        confirmed
    }

    /// Asks the guest to end, without waiting. The end of the link is the answer. `None` without a live link.
    pub(crate) fn ask_to_end(&self) -> Option<PendingEnd> {
        let link = self.current().filter(|link| link.is_alive())?;
        let channel = link.request(&Request::End, 1).ok()?.ok()?;
        Some(PendingEnd { ended: link.ended(), _channel: channel })
    }
}

/// A guest that was asked to end.
pub(crate) struct PendingEnd {
    ended: CancellationToken,
    // Dropping it would cancel the request.
    _channel: Channel,
}

impl PendingEnd {
    pub(crate) fn is_over(&self) -> bool {
        self.ended.is_cancelled()
    }

    pub(crate) async fn wait(&self) {
        self.ended.cancelled().await;
    }
}
