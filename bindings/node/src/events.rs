//! What happens to a client, a reader or a consumer.

use std::sync::Arc;

use iggy_ffi::Owned;
use iggy_ffi::events::Subscription;
use iggy_ffi::handout::Handout;
use napi::Env;
use napi::bindgen_prelude::Object;
use napi_derive::napi;

use crate::cancel::CancelToken;
use crate::failure::OrThrow;
use crate::promise::run_read;
use crate::value::{Js, shown};

/// A subscription to events.
#[napi]
pub struct Events(Owned<Arc<Handout<Subscription>>>);

impl Events {
    pub(crate) fn of(subscription: Subscription) -> Self {
        Self(Owned::new(Arc::new(Handout::new(subscription))))
    }
}

#[napi]
impl Events {
    /// The next event; `null` when nothing can happen any more, or it was closed.
    ///
    /// # Errors
    /// The process forked.
    #[napi]
    pub fn next<'env>(&self, env: &'env Env, cancel: &CancelToken) -> napi::Result<Object<'env>> {
        let events = Arc::clone(self.0.get().or_throw()?);
        let next = async move { events.read(()).await };
        run_read(env, cancel, next, |event| {
            event.map_or(Js::Null, |event| shown("event", event))
        })
    }

    /// Ends the wait for the next event, and all later ones.
    ///
    /// # Errors
    /// The process forked.
    #[napi]
    pub fn close(&self) -> napi::Result<()> {
        self.0.get().or_throw()?.close();
        Ok(())
    }
}
