//! Calls: what is started, how it ends, and what it brings.

use std::ffi::c_void;
use std::future::Future;

use bytes::Bytes;
use iggy_ffi::call::{CancellationToken, start};
use iggy_ffi::handout::{Delivery, Source};
use iggy_ffi::{Failure, runtime};
use serde_json::Value;

use crate::boundary::{IggyBytes, User, guarded};
use crate::failure::IggyFailure;
use crate::message::IggyBatch;
use crate::reader::IggyReader;
use crate::value::IggyValue;

/// How a call ends: with a failure or a reply, the other being NULL. The callback owns what it gets.
pub type IggyDone = Option<unsafe extern "C" fn(user: *mut c_void, failure: *mut IggyFailure, reply: *mut IggyReply)>;

/// What a call brought.
pub struct IggyReply(Content);

pub enum Content {
    Nothing,
    Value(Value),
    Bytes(Bytes),
    Batch(IggyBatch),
    Reader(IggyReader),
    /// Something that was read. It is read again when it is dropped.
    Offered(Box<dyn FnOnce() -> Content + Send>),
}

impl IggyReply {
    /// Something that was read, offered until it is accepted.
    pub fn offered<S: Source>(delivery: Delivery<S>, shown: fn(S::Item) -> Content) -> Content {
        Content::Offered(Box::new(move || delivery.accept().map_or(Content::Nothing, shown)))
    }
}

/// A call under way.
pub struct IggyCall(CancellationToken);

/// Tells the caller exactly once how a call ended, also when the runtime ends under it.
struct Completion {
    done: unsafe extern "C" fn(*mut c_void, *mut IggyFailure, *mut IggyReply),
    user: User,
    told: bool,
}

impl Completion {
    fn tell(mut self, ended: Result<Content, Failure>) {
        self.say(ended);
    }

    fn say(&mut self, ended: Result<Content, Failure>) {
        self.told = true;
        let (failure, reply) = match ended {
            Ok(content) => (std::ptr::null_mut(), Box::into_raw(Box::new(IggyReply(content)))),
            Err(failure) => (Box::into_raw(Box::new(IggyFailure::of(failure))), std::ptr::null_mut()),
        };
        // SAFETY: the caller gave this function for this `user`, to be called once; both pointers are its own now.
        unsafe { (self.done)(self.user.0, failure, reply) };
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        if !self.told {
            self.say(Err(Failure::cancelled()));
        }
    }
}

/// Starts what `prepare` makes of the arguments; the callback hears of everything that goes wrong.
pub fn begin<F>(
    done: IggyDone,
    user: *mut c_void,
    prepare: impl FnOnce() -> Result<F, Failure>,
) -> Option<Box<IggyCall>>
where
    F: Future<Output = Result<Content, Failure>> + Send + 'static,
{
    let (token, user) = (CancellationToken::new(), User(user));
    let completion = Completion {
        done: done?,
        user,
        told: false,
    };
    let prepared = guarded(|| {
        // Asked for first: without it nobody could be told on another thread.
        runtime::handle()?;
        prepare()
    });
    let started = match prepared {
        Ok(future) => start(future, token.clone(), move |ended| completion.tell(ended)),
        Err(failure) if runtime::handle().is_ok() => {
            let failed = std::future::ready(Err::<Content, _>(failure));
            start(failed, token.clone(), move |ended| completion.tell(ended))
        }
        Err(failure) => {
            completion.tell(Err(failure));
            Ok(())
        }
    };
    // Whoever was not told was told by now: the completion went with the call that could not be started.
    let _ = started;
    Some(Box::new(IggyCall(token)))
}

/// Gives a call up. Its callback is called soon, and once; a write may have been applied.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_call_cancel(call: Option<&IggyCall>) {
    if let Some(call) = call {
        let _ = guarded(|| {
            call.0.cancel();
            Ok(())
        });
    }
}

/// Frees the handle of a call, which goes on.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_call_free(call: Option<Box<IggyCall>>) {
    drop(call);
}

/// Frees a reply. What was read and not accepted is read again.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_reply_free(reply: Option<Box<IggyReply>>) {
    let _ = guarded(|| {
        drop(reply);
        Ok(())
    });
}

/// Takes what was read; until then no other read of the same object begins. Does nothing for replies of other calls.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_reply_accept(reply: Option<&mut IggyReply>) {
    let Some(reply) = reply else { return };
    let _ = guarded(|| {
        reply.0 = match std::mem::replace(&mut reply.0, Content::Nothing) {
            Content::Offered(accept) => accept(),
            other => other,
        };
        Ok(())
    });
}

/// The value of a reply, borrowed from it; NULL when it has none, as at the end of events.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_reply_value(reply: Option<&IggyReply>) -> Option<&IggyValue> {
    match &reply?.0 {
        Content::Value(value) => Some(IggyValue::of(value)),
        _ => None,
    }
}

/// The bytes of a reply, borrowed from it.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_reply_bytes(reply: Option<&IggyReply>) -> IggyBytes {
    match reply.map(|reply| &reply.0) {
        Some(Content::Bytes(bytes)) => IggyBytes::of(bytes),
        _ => IggyBytes::NONE,
    }
}

/// The messages of a reply, to be freed; NULL when there are none, as once a consumer was shut down.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_reply_take_batch(reply: Option<&mut IggyReply>) -> Option<Box<IggyBatch>> {
    let reply = reply?;
    match std::mem::replace(&mut reply.0, Content::Nothing) {
        Content::Batch(batch) => Some(Box::new(batch)),
        other => {
            reply.0 = other;
            None
        }
    }
}

/// The reader of a reply, to be freed.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_reply_take_reader(reply: Option<&mut IggyReply>) -> Option<Box<IggyReader>> {
    let reply = reply?;
    match std::mem::replace(&mut reply.0, Content::Nothing) {
        Content::Reader(reader) => Some(Box::new(reader)),
        other => {
            reply.0 = other;
            None
        }
    }
}

/// Whether this thread is one of the client's, on which nothing may block.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_on_client_thread() -> bool {
    tokio::runtime::Handle::try_current().is_ok()
}

/// Ends all calls of the process without waiting for them, their callbacks included: for programs that end while calls
/// are under way and free what callbacks use. A later call starts anew.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_stop() {
    let _ = guarded(|| {
        runtime::stop();
        Ok(())
    });
}

/// A call that panics inside the core, for the test that it ends with a failure.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_panics(done: IggyDone, user: *mut c_void) -> Option<Box<IggyCall>> {
    begin(done, user, || {
        Ok(async { Ok::<(), Failure>(()).map(|()| panic!("on purpose")) })
    })
}
