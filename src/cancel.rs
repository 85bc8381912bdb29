//! A call's way to be given up. TypeScript listens to the `AbortSignal` and calls [`Cancel::cancel`].

use cofferdam_core::CancellationToken;
use napi_derive::napi;

#[napi]
#[derive(Default)]
pub struct Cancel {
    token: CancellationToken,
}

#[napi]
impl Cancel {
    #[napi(constructor)]
    pub fn new() -> Cancel {
        Cancel::default()
    }

    #[napi]
    pub fn cancel(&self) {
        self.token.cancel();
    }
}

/// The token to wait on; one that is never cancelled when there is none.
pub(crate) fn token(cancel: Option<&Cancel>) -> CancellationToken {
    cancel.map(|cancel| cancel.token.clone()).unwrap_or_default()
}

/// Runs a call unless it is given up first.
pub(crate) async fn unless<T>(
    token: CancellationToken,
    call: impl Future<Output = cofferdam_core::Result<T>>,
) -> cofferdam_core::Result<T> {
    tokio::select! {
        outcome = call => outcome,
        () = token.cancelled() => Err(cofferdam_core::Error::Aborted),
    }
}
