//! Wall-clock time for records, waiting for a condition, and optional time limits.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Milliseconds since the epoch.
pub(crate) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// Looks every `pause` until the condition holds; false when it does not within `limit`. Blocks.
pub(crate) fn wait_until(limit: Duration, pause: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    while !holds() {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(pause);
    }
    true
}

/// Resolves after `limit`; never without one.
pub(crate) async fn sleep_or_forever(limit: Option<Duration>) {
    match limit {
        Some(limit) => tokio::time::sleep(limit).await,
        None => std::future::pending().await,
    }
}
