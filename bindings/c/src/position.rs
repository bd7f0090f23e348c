//! Positions: where a read starts or goes on, and how far messages were processed.

use iggy::{Checkpoint, Continuation, PartitionContext, PollingStrategy, ReadStart};
use iggy_ffi::Failure;

use crate::boundary::Place;

/// At the oldest message.
pub const IGGY_START_FIRST: u8 = 0;
/// At the newest messages.
pub const IGGY_START_LAST: u8 = 1;
/// After the stored offset of the consumer.
pub const IGGY_START_NEXT: u8 = 2;
/// At the offset that the value is.
pub const IGGY_START_OFFSET: u8 = 3;
/// At the time that the value is, in microseconds since the Unix epoch.
pub const IGGY_START_TIMESTAMP: u8 = 4;

/// Where a read starts.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct IggyStart {
    /// `IGGY_START_FIRST` and so on.
    kind: u8,
    /// Whether it goes on where another read ended: the members after the value count then, and other histories of the
    /// partition are refused.
    is_continuation: bool,
    /// Whether the history is known.
    has_history: bool,
    /// The partition it belongs to.
    partition_id: u32,
    /// Of the kind.
    value: u64,
    /// The history.
    incarnation: u64,
    /// The ownership within its group; 0 for none.
    owner_generation: u64,
    /// The metadata position a node must have applied; 0 for any.
    metadata_op: u64,
}

impl IggyStart {
    pub(crate) fn read(&self) -> Result<ReadStart, Failure> {
        let strategy = match self.kind {
            IGGY_START_FIRST => PollingStrategy::first(),
            IGGY_START_LAST => PollingStrategy::last(),
            IGGY_START_NEXT => PollingStrategy::next(),
            IGGY_START_OFFSET => PollingStrategy::offset(self.value),
            IGGY_START_TIMESTAMP => PollingStrategy::timestamp(self.value),
            other => return Err(Failure::invalid(format!("{other} is no start; known are 0 to 4"))),
        };
        if !self.is_continuation {
            return Ok(strategy.into());
        }
        let context = self.has_history.then_some(PartitionContext {
            incarnation: self.incarnation,
            owner_generation: self.owner_generation,
            metadata_op: self.metadata_op,
        });
        let partition_id = self.partition_id;
        Ok(Continuation {
            partition_id,
            strategy,
            context,
        }
        .into())
    }

    pub(crate) fn of(continuation: &Continuation) -> Self {
        let (kind, value) = match continuation.strategy {
            PollingStrategy::First => (IGGY_START_FIRST, 0),
            PollingStrategy::Last => (IGGY_START_LAST, 0),
            PollingStrategy::Next => (IGGY_START_NEXT, 0),
            PollingStrategy::Offset(offset) => (IGGY_START_OFFSET, offset),
            PollingStrategy::Timestamp(time) => (IGGY_START_TIMESTAMP, time),
        };
        let context = continuation.context;
        Self {
            kind,
            is_continuation: true,
            has_history: context.is_some(),
            partition_id: continuation.partition_id,
            value,
            incarnation: context.map_or(0, |context| context.incarnation),
            owner_generation: context.map_or(0, |context| context.owner_generation),
            metadata_op: context.map_or(0, |context| context.metadata_op),
        }
    }
}

/// A position to commit: every message up to its offset was processed.
pub struct IggyCheckpoint(pub(crate) Checkpoint);

/// What a position says.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct IggyCheckpointView {
    partition_id: u32,
    /// Of the last processed message.
    offset: u64,
    /// The history it belongs to: a partition that was deleted and made again has another.
    incarnation: u64,
    /// The ownership within its group; 0 for none.
    owner_generation: u64,
}

/// A position from its parts, as an application kept them.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_checkpoint_new(
    partition_id: u32,
    offset: u64,
    incarnation: u64,
    owner_generation: u64,
) -> Box<IggyCheckpoint> {
    let context = PartitionContext {
        incarnation,
        owner_generation,
        metadata_op: 0,
    };
    Box::new(IggyCheckpoint(Checkpoint::new(partition_id, offset, context)))
}

/// The same position at another message of the same read; with the same offset a copy. NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_checkpoint_at(checkpoint: Option<&IggyCheckpoint>, offset: u64) -> Option<Box<IggyCheckpoint>> {
    let mut moved = checkpoint?.0;
    moved.offset = offset;
    Some(Box::new(IggyCheckpoint(moved)))
}

/// Frees a position.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_checkpoint_free(checkpoint: Option<Box<IggyCheckpoint>>) {
    drop(checkpoint);
}

/// What a position says; false for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_checkpoint_view(checkpoint: Option<&IggyCheckpoint>, view: *mut IggyCheckpointView) -> bool {
    let Some(IggyCheckpoint(found)) = checkpoint else {
        return false;
    };
    Place::at(view).put(IggyCheckpointView {
        partition_id: found.partition_id,
        offset: found.offset,
        incarnation: found.context.incarnation,
        owner_generation: found.context.owner_generation,
    });
    true
}

/// Where a read goes on after a position; false for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_checkpoint_continuation(checkpoint: Option<&IggyCheckpoint>, start: *mut IggyStart) -> bool {
    let Some(IggyCheckpoint(found)) = checkpoint else {
        return false;
    };
    Place::at(start).put(IggyStart::of(&Continuation {
        partition_id: found.partition_id,
        strategy: PollingStrategy::Offset(found.offset.saturating_add(1)),
        context: Some(found.context),
    }));
    true
}
