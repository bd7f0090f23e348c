//! What happens to a client, a reader or a consumer.

use std::sync::Arc;

use ext_php_rs::prelude::*;
use ext_php_rs::types::Zval;
use iggy_ffi::Owned;
use iggy_ffi::events::Subscription;
use iggy_ffi::handout::Handout;

use crate::call::{duration, run_read};
use crate::failure::OrThrow;
use crate::value::from_json;

/// A subscription to events.
#[php_class]
#[php(name = "Iggy\\Events")]
pub struct Events(Owned<Arc<Handout<Subscription>>>);

impl Events {
    pub fn of(subscription: Subscription) -> Self {
        Self(Owned::new(Arc::new(Handout::new(subscription))))
    }
}

#[php_impl]
impl Events {
    pub fn next(&self, timeout: Option<i64>) -> PhpResult<Zval> {
        let events = Arc::clone(self.0.get().or_throw()?);
        let limit = duration("timeout", timeout)?;
        run_read(limit, async move { events.read(()).await }, |event| {
            event.map_or_else(|| Ok(Zval::null()), |event| from_json(&event))
        })
    }

    pub fn close(&self) -> PhpResult<()> {
        self.0.get().or_throw()?.close();
        Ok(())
    }
}
