//! Functions of the application that the core calls: partitioners, and who hears of background sends that failed.
//!
//! They run on threads of the client, in place. One that takes long holds up what the same thread would do, nothing else.

use std::ffi::{CStr, c_char, c_void};
use std::sync::Arc;

use iggy::producer::ErrorCallback;
use iggy::{ErrorCode, Identifier, IggyError, IggyMessage, Partitioner};

use crate::boundary::{IggyText, User};
use crate::failure::IggyFailure;
use crate::message::IggyMessageList;

/// Room for why a partitioner failed, its end mark included.
pub const IGGY_REASON_SIZE: usize = 512;

/// Chooses the partition of every send. `choose` writes the partition and returns true, or writes why not into `reason`,
/// which has room for `IGGY_REASON_SIZE` bytes with an end mark, and returns false. It is called from several threads at
/// once. `drop` is called once, when nothing calls `choose` any more.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct IggyPartitioner {
    choose: Option<
        unsafe extern "C" fn(
            user: *mut c_void,
            stream: IggyText,
            topic: IggyText,
            messages: *const IggyMessageList,
            partition_id: *mut u32,
            reason: *mut c_char,
        ) -> bool,
    >,
    drop: Option<unsafe extern "C" fn(user: *mut c_void)>,
    user: *mut c_void,
}

/// Hears of each background send that failed, and frees the failure. `drop` is called once, when nothing calls `hear`
/// any more.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct IggyErrorListener {
    hear: Option<unsafe extern "C" fn(user: *mut c_void, failure: *mut IggyFailure)>,
    drop: Option<unsafe extern "C" fn(user: *mut c_void)>,
    user: *mut c_void,
}

/// What belongs to the application until nothing calls it any more.
struct Held {
    user: User,
    drop: Option<unsafe extern "C" fn(user: *mut c_void)>,
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(drop) = self.drop {
            // SAFETY: given for this `user`, to be called once, and this is the end of the only owner.
            unsafe { drop(self.user.0) };
        }
    }
}

type Choose = unsafe extern "C" fn(
    user: *mut c_void,
    stream: IggyText,
    topic: IggyText,
    messages: *const IggyMessageList,
    partition_id: *mut u32,
    reason: *mut c_char,
) -> bool;

struct Chosen {
    choose: Choose,
    held: Held,
}

impl std::fmt::Debug for Chosen {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Partitioner")
    }
}

impl Partitioner for Chosen {
    fn calculate_partition_id(
        &self,
        stream: &Identifier,
        topic: &Identifier,
        messages: &[IggyMessage],
    ) -> Result<u32, IggyError> {
        let (stream, topic) = (stream.to_string(), topic.to_string());
        let list = IggyMessageList::of(messages);
        let (mut partition, mut reason) = (0, [0; IGGY_REASON_SIZE]);
        // SAFETY: given for this `user` and to be called from any thread; everything else is alive for the call, and
        // `reason` is as long as the header says.
        let chosen = unsafe {
            (self.choose)(
                self.held.user.0,
                IggyText::of(&stream),
                IggyText::of(&topic),
                &raw const list,
                &raw mut partition,
                reason.as_mut_ptr().cast(),
            )
        };
        if chosen {
            return Ok(partition);
        }
        reason[IGGY_REASON_SIZE - 1] = 0;
        let reason = CStr::from_bytes_until_nul(&reason).unwrap_or_default();
        let message = format!("the partitioner failed: {}", reason.to_string_lossy());
        Err(IggyError::new(ErrorCode::InvalidConfiguration, message))
    }
}

/// A partitioner of the application. Without a function to call there is none, and what was to be dropped is.
pub fn partitioner(given: Option<&IggyPartitioner>) -> Option<Arc<dyn Partitioner>> {
    let given = given?;
    let held = Held {
        user: User(given.user),
        drop: given.drop,
    };
    let choose = given.choose?;
    Some(Arc::new(Chosen { choose, held }))
}

/// A listener of the application.
pub fn listener(given: Option<&IggyErrorListener>) -> Option<ErrorCallback> {
    let given = given?;
    let held = Held {
        user: User(given.user),
        drop: given.drop,
    };
    let hear = given.hear?;
    Some(Arc::new(move |error: IggyError| {
        let failure = Box::into_raw(Box::new(IggyFailure::of(error.into())));
        let held = &held;
        // SAFETY: given for this `user` and to be called from any thread; the failure is its own now.
        unsafe { hear(held.user.0, failure) };
    }))
}
