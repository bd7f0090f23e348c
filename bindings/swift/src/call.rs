//! Calls: futures of the core on its own runtime, which the future that Swift awaits only listens to.

use std::future::Future;
use std::sync::Arc;

use iggy_ffi::Failure;
use iggy_ffi::call::{CancellationToken, start};
use tokio::sync::oneshot;

use crate::failure::NativeError;

/// What gives a call up. Swift makes one for each call and cancels it when the task is.
#[derive(uniffi::Object)]
pub struct NativeCall(CancellationToken);

#[uniffi::export]
impl NativeCall {
    #[uniffi::constructor]
    pub fn new() -> Arc<Self> {
        Arc::new(Self(CancellationToken::new()))
    }

    /// The call ends soon. A write may have been applied.
    pub fn cancel(&self) {
        self.0.cancel();
    }
}

/// Runs `future` to its end or its cancellation. A panic in it is a failure, and so is the end of the runtime under it.
pub async fn run<T, E, F>(call: &NativeCall, future: F) -> Result<T, NativeError>
where
    T: Send + 'static,
    E: Into<Failure> + Send + 'static,
    F: Future<Output = Result<T, E>> + Send + 'static,
{
    let (sender, ended) = oneshot::channel();
    start(future, call.0.clone(), move |result| {
        // Whoever waited is gone; what was read goes back.
        let _ = sender.send(result);
    })?;
    let ended = ended.await.unwrap_or_else(|_| Err(Failure::cancelled()));
    Ok(ended?)
}

/// A call that panics inside the core, for the test that it ends with a failure.
#[uniffi::export]
pub async fn native_panics(call: Arc<NativeCall>) -> Result<(), NativeError> {
    run(&call, async { Ok::<(), Failure>(()).map(|()| panic!("on purpose")) }).await
}
