//! What happens to a client, a reader or a consumer.

use std::ffi::c_void;
use std::sync::Arc;

use iggy_ffi::Owned;
use iggy_ffi::events::Subscription;
use iggy_ffi::handout::Handout;

use crate::boundary::{given, guarded};
use crate::call::{Content, IggyCall, IggyDone, IggyReply, begin};

/// A subscription to events. One that falls 64 events behind loses the oldest.
pub struct IggyEvents(Owned<Arc<Handout<Subscription>>>);

impl IggyEvents {
    pub(crate) fn of(subscription: Subscription) -> Box<Self> {
        Box::new(Self(Owned::new(Arc::new(Handout::new(subscription)))))
    }
}

/// The next event as a value; the reply has no value when nothing can happen any more, or the subscription was closed.
/// What was not accepted is read again.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_events_next(
    events: Option<&IggyEvents>,
    done: IggyDone,
    user: *mut c_void,
) -> Option<Box<IggyCall>> {
    begin(done, user, || {
        let events = Arc::clone(given("the subscription", events)?.0.get()?);
        Ok(async move {
            let next = events.read(()).await?;
            Ok(IggyReply::offered(next, |event| {
                event.map_or(Content::Nothing, Content::Value)
            }))
        })
    })
}

/// Ends the wait for the next event, and all later ones.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_events_close(events: Option<&IggyEvents>) {
    let _ = guarded(|| {
        given("the subscription", events)?.0.get()?.close();
        Ok(())
    });
}

/// Frees a subscription.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_events_free(events: Option<Box<IggyEvents>>) {
    let _ = guarded(|| {
        drop(events);
        Ok(())
    });
}
