//! A view of a consumer that other tasks hold.

use std::sync::Arc;

use crate::error::IggyError;
use crate::events::{Events, ReaderEvent};
use crate::intake::Shared;
use crate::poll::{Checkpoint, ReadStart};

/// A cloneable view of a consumer or a reader: commits positions while another task reads. See
/// [`IggyConsumer::state`](crate::IggyConsumer::state) and [`PartitionReader::state`](crate::PartitionReader::state).
#[derive(Debug, Clone)]
pub struct IggyConsumerState {
    shared: Arc<Shared>,
}

impl IggyConsumerState {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// As [`IggyConsumer::commit`](crate::IggyConsumer::commit).
    ///
    /// # Cancel safety
    /// The write goes on when the call is dropped.
    pub async fn commit(&self, checkpoint: Checkpoint) -> Result<(), IggyError> {
        self.shared.commit(checkpoint).await
    }

    /// As [`IggyConsumer::subscribe_events`](crate::IggyConsumer::subscribe_events).
    pub fn subscribe_events(&self) -> Events<ReaderEvent> {
        self.shared.subscribe()
    }

    /// As [`IggyConsumer::mark`](crate::IggyConsumer::mark).
    pub fn mark(&self, checkpoint: Checkpoint) -> Result<(), IggyError> {
        self.shared.mark(checkpoint)
    }

    /// As [`IggyConsumer::store_offset`](crate::IggyConsumer::store_offset).
    ///
    /// # Cancel safety
    /// The write goes on when the call is dropped.
    pub async fn store_offset(&self, partition_id: u32, offset: u64) -> Result<(), IggyError> {
        self.shared.store_offset(partition_id, offset).await
    }

    /// As [`IggyConsumer::delete_offset`](crate::IggyConsumer::delete_offset).
    ///
    /// # Cancel safety
    /// The write goes on when the call is dropped.
    pub async fn delete_offset(&self, partition_id: u32) -> Result<(), IggyError> {
        self.shared.delete_offset(partition_id).await
    }

    /// As [`IggyConsumer::seek`](crate::IggyConsumer::seek).
    pub fn seek(&self, partition_id: u32, start: impl Into<ReadStart>) -> Result<(), IggyError> {
        self.shared.seek(partition_id, start.into())
    }

    /// Whether a position belongs to the ordering in which its partition is handed out now: neither a seek nor a new
    /// assignment came since. True of one that was made from its parts, for a partition that is read.
    pub fn is_current(&self, checkpoint: &Checkpoint) -> bool {
        self.shared.is_current(checkpoint)
    }

    /// The partitions that are read now, ascending.
    pub fn partitions(&self) -> impl Iterator<Item = u32> + use<> {
        self.shared.partitions().into_iter()
    }

    /// Partitions that stopped and wait for a seek, ascending.
    pub fn stopped(&self) -> impl Iterator<Item = u32> + use<> {
        self.shared.stopped().into_iter()
    }

    /// As [`IggyConsumer::get_last_consumed_offset`](crate::IggyConsumer::get_last_consumed_offset).
    pub fn get_last_consumed_offset(&self, partition_id: u32) -> Option<u64> {
        self.shared.last_consumed(partition_id)
    }

    /// As [`IggyConsumer::get_last_stored_offset`](crate::IggyConsumer::get_last_stored_offset).
    pub fn get_last_stored_offset(&self, partition_id: u32) -> Option<u64> {
        self.shared.last_stored(partition_id)
    }

    /// The partition of the message handed out last.
    pub fn partition_id(&self) -> Option<u32> {
        self.shared.last_partition()
    }
}
