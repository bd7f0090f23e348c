//! The consumer: of its own, or a member of a group.

use std::ffi::c_void;
use std::sync::Arc;

use iggy::IggyConsumerState;
use iggy_ffi::reading::{Ask, Read, SharedConsumer};
use iggy_ffi::{Failure, Owned, call};

use crate::boundary::{Place, given, guarded};
use crate::call::{Content, IggyCall, IggyDone, IggyReply, begin};
use crate::events::IggyEvents;
use crate::failure::IggyFailure;
use crate::message::IggyBatch;
use crate::position::{IggyCheckpoint, IggyStart};

fn shown(read: Read) -> Content {
    match read {
        Read::Message(message) => Content::Batch(IggyBatch::Received(message)),
        Read::Batch(batch) => Content::Batch(IggyBatch::Polled(batch)),
        Read::End => Content::Nothing,
    }
}

/// Reads message by message: named partitions, or those a group assigns to this member. Calls that read wait for each
/// other; commits and seeks wait for nobody.
pub struct IggyConsumer(Owned<Arc<SharedConsumer>>);

impl IggyConsumer {
    pub(crate) fn of(consumer: iggy::IggyConsumer) -> Box<Self> {
        Box::new(Self(Owned::new(Arc::new(SharedConsumer::new(consumer)))))
    }
}

fn shared(consumer: Option<&IggyConsumer>) -> Result<Arc<SharedConsumer>, Failure> {
    given("the consumer", consumer)?.0.get().cloned()
}

/// Joins the group, or looks the partitions up. Must succeed before anything else.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_consumer_init(
    consumer: Option<&IggyConsumer>,
    done: IggyDone,
    user: *mut c_void,
) -> Option<Box<IggyCall>> {
    begin(done, user, || {
        let shared = shared(consumer)?;
        Ok(async move {
            shared.init().await?;
            Ok(Content::Nothing)
        })
    })
}

fn read(consumer: Option<&IggyConsumer>, ask: Ask, done: IggyDone, user: *mut c_void) -> Option<Box<IggyCall>> {
    begin(done, user, || {
        let shared = shared(consumer)?;
        Ok(async move { Ok(IggyReply::offered(shared.read(ask).await?, shown)) })
    })
}

/// The next message as a batch of one. The reply has a batch once it is accepted; none once the consumer was shut down, or
/// every named partition stopped. What was not accepted is read again.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_consumer_next(
    consumer: Option<&IggyConsumer>,
    done: IggyDone,
    user: *mut c_void,
) -> Option<Box<IggyCall>> {
    read(consumer, Ask::Message, done, user)
}

/// The next messages of one partition at once, as `iggy_consumer_next`.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_consumer_next_batch(
    consumer: Option<&IggyConsumer>,
    done: IggyDone,
    user: *mut c_void,
) -> Option<Box<IggyCall>> {
    read(consumer, Ask::Batch, done, user)
}

/// Stores a position. One at or below the last stored, or of an earlier assignment, stores nothing.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_consumer_commit(
    consumer: Option<&IggyConsumer>,
    checkpoint: Option<&IggyCheckpoint>,
    done: IggyDone,
    user: *mut c_void,
) -> Option<Box<IggyCall>> {
    begin(done, user, || {
        let (shared, checkpoint) = (shared(consumer)?, given("the position", checkpoint)?.0);
        Ok(async move {
            shared.state()?.commit(checkpoint).await?;
            Ok(Content::Nothing)
        })
    })
}

/// Notes that the application is done up to a position, for automatic commits after marks.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_consumer_mark(
    consumer: Option<&IggyConsumer>,
    checkpoint: Option<&IggyCheckpoint>,
    failure: *mut *mut IggyFailure,
) -> bool {
    let marked = call::enter(|| {
        let (shared, checkpoint) = (shared(consumer)?, given("the position", checkpoint)?.0);
        shared.state()?.mark(checkpoint).map_err(Failure::from)
    });
    Place::at(failure).settle(marked).is_some()
}

/// Stores an offset, whatever was read.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_consumer_store_offset(
    consumer: Option<&IggyConsumer>,
    partition_id: u32,
    offset: u64,
    done: IggyDone,
    user: *mut c_void,
) -> Option<Box<IggyCall>> {
    begin(done, user, || {
        let shared = shared(consumer)?;
        Ok(async move {
            shared.state()?.store_offset(partition_id, offset).await?;
            Ok(Content::Nothing)
        })
    })
}

/// Forgets the stored offset of a partition.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_consumer_delete_offset(
    consumer: Option<&IggyConsumer>,
    partition_id: u32,
    done: IggyDone,
    user: *mut c_void,
) -> Option<Box<IggyCall>> {
    begin(done, user, || {
        let shared = shared(consumer)?;
        Ok(async move {
            shared.state()?.delete_offset(partition_id).await?;
            Ok(Content::Nothing)
        })
    })
}

/// Goes on somewhere else in a partition; what was read ahead is dropped. Wakes a stopped partition.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_consumer_seek(
    consumer: Option<&IggyConsumer>,
    partition_id: u32,
    to: IggyStart,
    failure: *mut *mut IggyFailure,
) -> bool {
    let sought = call::enter(|| {
        let (shared, to) = (shared(consumer)?, to.read()?);
        shared.seek(partition_id, to)
    });
    Place::at(failure).settle(sought).is_some()
}

/// Whether a position belongs to the ordering in which its partition is handed out now: neither a seek nor a new
/// assignment came since.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_consumer_is_current(
    consumer: Option<&IggyConsumer>,
    checkpoint: Option<&IggyCheckpoint>,
) -> bool {
    let current = guarded(|| {
        let checkpoint = given("the position", checkpoint)?;
        Ok(shared(consumer)?.state()?.is_current(&checkpoint.0))
    });
    current.unwrap_or(false)
}

/// The partitions it reads now, ascending: writes as many as there is room for and returns how many there are.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_consumer_partitions(
    consumer: Option<&IggyConsumer>,
    partitions: *mut u32,
    room: usize,
) -> usize {
    let found = guarded(|| {
        let shared = shared(consumer)?;
        Ok(Place::at(partitions).list(
            shared
                .state_if_initialised()
                .into_iter()
                .flat_map(IggyConsumerState::partitions),
            room,
        ))
    });
    found.unwrap_or(0)
}

/// The partitions that wait for a seek, ascending: as `iggy_consumer_partitions`.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_consumer_stopped(consumer: Option<&IggyConsumer>, partitions: *mut u32, room: usize) -> usize {
    let found = guarded(|| {
        let shared = shared(consumer)?;
        Ok(Place::at(partitions).list(
            shared
                .state_if_initialised()
                .into_iter()
                .flat_map(IggyConsumerState::stopped),
            room,
        ))
    });
    found.unwrap_or(0)
}

/// The offset of the last message of a partition that was handed out; false when there is none.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_consumer_last_consumed_offset(
    consumer: Option<&IggyConsumer>,
    partition_id: u32,
    offset: *mut u64,
) -> bool {
    let found = guarded(|| {
        let shared = shared(consumer)?;
        Ok(shared
            .state_if_initialised()
            .and_then(|state| state.get_last_consumed_offset(partition_id)))
    });
    found.ok().flatten().map(|found| Place::at(offset).put(found)).is_some()
}

/// The last offset of a partition that this consumer stored; false when there is none.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_consumer_last_stored_offset(
    consumer: Option<&IggyConsumer>,
    partition_id: u32,
    offset: *mut u64,
) -> bool {
    let found = guarded(|| {
        let shared = shared(consumer)?;
        Ok(shared
            .state_if_initialised()
            .and_then(|state| state.get_last_stored_offset(partition_id)))
    });
    found.ok().flatten().map(|found| Place::at(offset).put(found)).is_some()
}

/// The partition of the message handed out last; -1 when there is none.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_consumer_partition_id(consumer: Option<&IggyConsumer>) -> i64 {
    let found = guarded(|| {
        Ok(shared(consumer)?
            .state_if_initialised()
            .and_then(IggyConsumerState::partition_id))
    });
    found.ok().flatten().map_or(-1, i64::from)
}

/// Subscribes to what happens from now on. Only after `iggy_consumer_init`.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_consumer_subscribe_events(
    consumer: Option<&IggyConsumer>,
    failure: *mut *mut IggyFailure,
) -> Option<Box<IggyEvents>> {
    let made = guarded(|| Ok(IggyEvents::of(shared(consumer)?.subscribe_events()?)));
    Place::at(failure).settle(made)
}

/// Ends the reads, stores what automatic commits still owe, leaves the group. May be called again.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_consumer_shutdown(
    consumer: Option<&IggyConsumer>,
    done: IggyDone,
    user: *mut c_void,
) -> Option<Box<IggyCall>> {
    begin(done, user, || {
        let shared = shared(consumer)?;
        Ok(async move {
            shared.shutdown().await?;
            Ok(Content::Nothing)
        })
    })
}

/// Frees a consumer. A member that was not shut down leaves its group when the server misses it.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_consumer_free(consumer: Option<Box<IggyConsumer>>) {
    let _ = guarded(|| {
        drop(consumer);
        Ok(())
    });
}
