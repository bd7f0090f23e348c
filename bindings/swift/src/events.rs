//! What happens to a client, a reader or a consumer.

use std::sync::Arc;

use iggy_ffi::Owned;
use iggy_ffi::events::Subscription;
use iggy_ffi::handout::Handout;

use crate::call::{NativeCall, run};
use crate::failure::NativeError;

/// A subscription to events.
#[derive(uniffi::Object)]
pub struct NativeEvents(Owned<Arc<Handout<Subscription>>>);

impl NativeEvents {
    pub fn of(subscription: Subscription) -> Arc<Self> {
        Arc::new(Self(Owned::new(Arc::new(Handout::new(subscription)))))
    }
}

#[uniffi::export]
impl NativeEvents {
    /// The next event as JSON; none when nothing can happen any more, or the subscription was closed.
    pub async fn next(&self, call: Arc<NativeCall>) -> Result<Option<String>, NativeError> {
        let events = self.0.get().cloned()?;
        let next = run(&call, async move { events.read(()).await }).await?;
        Ok(next.accept().flatten().map(|event| event.to_string()))
    }

    /// Ends the wait for the next event, and all later ones.
    pub fn close(&self) -> Result<(), NativeError> {
        self.0.get()?.close();
        Ok(())
    }
}
