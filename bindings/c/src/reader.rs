//! The partition reader.

use std::ffi::c_void;
use std::sync::Arc;

use iggy::PartitionReader;
use iggy_ffi::reading::SharedReader;
use iggy_ffi::{Failure, Owned, call};

use crate::boundary::{Place, given, guarded};
use crate::call::{Content, IggyCall, IggyDone, IggyReply, begin};
use crate::events::IggyEvents;
use crate::failure::IggyFailure;
use crate::message::IggyBatch;
use crate::position::{IggyCheckpoint, IggyStart};

/// Reads many partitions of one topic in batches. Reads wait for each other; everything else waits for nobody.
pub struct IggyReader(Owned<Arc<SharedReader>>);

impl IggyReader {
    pub(crate) fn of(reader: PartitionReader) -> Self {
        Self(Owned::new(Arc::new(SharedReader::new(reader))))
    }
}

fn shared(reader: Option<&IggyReader>) -> Result<Arc<SharedReader>, Failure> {
    given("the reader", reader)?.0.get().cloned()
}

/// The next batch, all of one partition. The reply has a batch once it is accepted; what was not is read again. A failure
/// that names a partition concerns that partition alone: read on.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_reader_next(
    reader: Option<&IggyReader>,
    done: IggyDone,
    user: *mut c_void,
) -> Option<Box<IggyCall>> {
    begin(done, user, || {
        let shared = shared(reader)?;
        Ok(async move {
            let next = shared.read().await?;
            Ok(IggyReply::offered(next, |batch| {
                Content::Batch(IggyBatch::Polled(batch))
            }))
        })
    })
}

/// Stores a position. One at or below the last stored, or of an older history, stores nothing.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_reader_commit(
    reader: Option<&IggyReader>,
    checkpoint: Option<&IggyCheckpoint>,
    done: IggyDone,
    user: *mut c_void,
) -> Option<Box<IggyCall>> {
    begin(done, user, || {
        let (shared, checkpoint) = (shared(reader)?, given("the position", checkpoint)?.0);
        Ok(async move {
            shared.state().commit(checkpoint).await?;
            Ok(Content::Nothing)
        })
    })
}

/// Notes that the application is done up to a position, for automatic commits after marks.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_reader_mark(
    reader: Option<&IggyReader>,
    checkpoint: Option<&IggyCheckpoint>,
    failure: *mut *mut IggyFailure,
) -> bool {
    let marked = call::enter(|| {
        let (shared, checkpoint) = (shared(reader)?, given("the position", checkpoint)?.0);
        shared.state().mark(checkpoint).map_err(Failure::from)
    });
    Place::at(failure).settle(marked).is_some()
}

/// Goes on somewhere else in a partition; what was read ahead is dropped. Wakes a stopped partition.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_reader_seek(
    reader: Option<&IggyReader>,
    partition_id: u32,
    to: IggyStart,
    failure: *mut *mut IggyFailure,
) -> bool {
    let sought = call::enter(|| {
        let (shared, to) = (shared(reader)?, to.read()?);
        shared.seek(partition_id, to)
    });
    Place::at(failure).settle(sought).is_some()
}

/// Whether a position belongs to the ordering in which its partition is handed out now: no seek came since.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_reader_is_current(reader: Option<&IggyReader>, checkpoint: Option<&IggyCheckpoint>) -> bool {
    let current = guarded(|| {
        let checkpoint = given("the position", checkpoint)?;
        Ok(shared(reader)?.state().is_current(&checkpoint.0))
    });
    current.unwrap_or(false)
}

/// The partitions it reads, ascending: writes as many as there is room for and returns how many there are.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_reader_partitions(reader: Option<&IggyReader>, partitions: *mut u32, room: usize) -> usize {
    let found = guarded(|| Ok(Place::at(partitions).list(shared(reader)?.state().partitions(), room)));
    found.unwrap_or(0)
}

/// The partitions that wait for a seek, ascending: as `iggy_reader_partitions`.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_reader_stopped(reader: Option<&IggyReader>, partitions: *mut u32, room: usize) -> usize {
    let found = guarded(|| Ok(Place::at(partitions).list(shared(reader)?.state().stopped(), room)));
    found.unwrap_or(0)
}

/// Subscribes to what happens from now on.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_reader_subscribe_events(
    reader: Option<&IggyReader>,
    failure: *mut *mut IggyFailure,
) -> Option<Box<IggyEvents>> {
    let made = guarded(|| Ok(IggyEvents::of(shared(reader)?.subscribe_events())));
    Place::at(failure).settle(made)
}

/// Ends the reads and stores what automatic commits still owe, within a deadline. May be called again.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_reader_close(
    reader: Option<&IggyReader>,
    done: IggyDone,
    user: *mut c_void,
) -> Option<Box<IggyCall>> {
    begin(done, user, || {
        let shared = shared(reader)?;
        Ok(async move {
            shared.close().await?;
            Ok(Content::Nothing)
        })
    })
}

/// Frees a reader.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_reader_free(reader: Option<Box<IggyReader>>) {
    let _ = guarded(|| {
        drop(reader);
        Ok(())
    });
}
