//! How a call is given up.

use iggy_ffi::call::CancellationToken;
use napi_derive::napi;

/// Gives up the calls it was passed to. The package makes one per call and wires it to an `AbortSignal`.
#[napi]
pub struct CancelToken(pub(crate) CancellationToken);

#[napi]
impl CancelToken {
    /// One that is not cancelled.
    #[napi(constructor)]
    #[allow(clippy::new_without_default, reason = "made by JavaScript")]
    pub fn new() -> Self {
        Self(CancellationToken::new())
    }

    /// Ends the calls; a promise that is not settled yet will be rejected.
    #[napi]
    pub fn cancel(&self) {
        self.0.cancel();
    }
}
