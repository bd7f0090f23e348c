//! Reads many partitions of one topic in batches.
//!
//! Partitions are grouped by their primary, and each primary is asked by one grouped fetch at a time, which waits there
//! for messages. Whenever another partition of the same primary can be read, the waiting fetch is cancelled and both go
//! into one. Reading goes on while the application works, up to a bound in bytes and messages.
//!
//! An error of one partition does not stop the others. A partition that is refused waits with doubling pauses and stops
//! after six lasting refusals in a row; one whose history ended, whose read has an unknown outcome, or that holds a
//! message that cannot be read, stops at once. A stopped partition goes on after a [`seek`](PartitionReader::seek).

mod builder;

pub use crate::intake::ReadError;
pub use builder::ReaderBuilder;

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::Stream;
use iggy_protocol::ErrorCode;

use crate::consumer::IggyConsumerState;
use crate::error::IggyError;
use crate::events::{Events, ReaderEvent};
use crate::intake::Intake;
use crate::poll::{Checkpoint, PolledMessages, ReadStart};

/// Reads many partitions of one topic in batches. See the module's page, and [`crate::IggyClient::reader`].
///
/// It is also a [`Stream`] of batches, which ends when the reader is closed or every partition has stopped. A stream
/// cannot tell that nobody polls it any more: with `OnRead`, a read that was begun for it goes on to its end.
#[derive(Debug)]
pub struct PartitionReader {
    intake: Intake,
}

impl PartitionReader {
    /// The next batch of messages, all of one partition. Waits until there is one.
    ///
    /// # Errors
    /// What keeps a partition from being read, or a position from being stored; the reader goes on with the next call.
    /// `NoPartitions` when every partition has stopped, `ClientShutdown` after [`close`](Self::close).
    ///
    /// # Cancel safety
    /// Nothing is lost or delivered twice when the call is dropped. With `OnRead` a dropped call ends the read at the
    /// server; what it had brought comes with the next call.
    pub async fn next(&mut self) -> Result<PolledMessages, ReadError> {
        let _waiting = self.intake.waiting();
        let next = poll_fn(|context| self.intake.poll_batch(context)).await;
        next.unwrap_or_else(|| {
            let (code, message) = if self.intake.shared().is_closed() {
                (ErrorCode::ClientShutdown, "the reader is closed")
            } else {
                (
                    ErrorCode::NoPartitions,
                    "every partition has stopped; seek one to read on",
                )
            };
            Err(ReadError::of(None, IggyError::new(code, message)))
        })
    }

    /// Stores a position. One at or below the last stored, or of an earlier ordering or history, stores nothing: the
    /// first read, each seek and each new assignment begin an ordering.
    ///
    /// # Errors
    /// `InvalidCommand` for a position of a partition this reader does not read or of another reader, and with `OnRead`;
    /// `ConsumerGroupPartitionNotOwned` when the partition belongs to another member of the group; and whatever refuses
    /// the write.
    ///
    /// # Cancel safety
    /// The write goes on when the call is dropped.
    pub async fn commit(&self, checkpoint: Checkpoint) -> Result<(), IggyError> {
        self.intake.shared().commit(checkpoint).await
    }

    /// Notes that the application is done up to a position, for automatic commits after marks.
    ///
    /// # Errors
    /// `InvalidCommand` for a position of a partition this reader does not read or of another reader, and unless commits
    /// are automatic after marks.
    pub fn mark(&self, checkpoint: Checkpoint) -> Result<(), IggyError> {
        self.intake.shared().mark(checkpoint)
    }

    /// Goes on somewhere else in a partition; what was read ahead of it is dropped. Wakes a stopped partition.
    ///
    /// # Errors
    /// `InvalidCommand` for a partition this reader does not read, or a continuation of another one;
    /// `ConsumerGroupPartitionNotOwned` when the partition belongs to another member of the group.
    pub fn seek(&self, partition_id: u32, start: impl Into<ReadStart>) -> Result<(), IggyError> {
        self.intake.shared().seek(partition_id, start.into())
    }

    /// The partitions it reads now, ascending.
    pub fn partitions(&self) -> impl Iterator<Item = u32> + use<> {
        self.intake.shared().partitions().into_iter()
    }

    /// The partitions that wait for a seek, ascending.
    pub fn stopped(&self) -> impl Iterator<Item = u32> + use<> {
        self.intake.shared().stopped().into_iter()
    }

    /// A cloneable view, which commits and seeks from other tasks while one reads.
    pub fn state(&self) -> IggyConsumerState {
        IggyConsumerState::new(self.intake.shared().clone())
    }

    /// Subscribes to what happens to the reader from now on.
    pub fn subscribe_events(&self) -> Events<ReaderEvent> {
        self.intake.shared().subscribe()
    }

    /// Ends the reads, stores what automatic commits still owe, moves what reads stored back to the last message that was
    /// delivered, and leaves the group, all within the client's call deadline for each. What was read ahead is dropped.
    ///
    /// # Errors
    /// `TaskTimeout` when the positions were not stored in time, and whatever refuses a write.
    ///
    /// # Cancel safety
    /// It goes on in the background when the call is dropped.
    pub async fn close(&mut self) -> Result<(), IggyError> {
        self.intake.close().await
    }
}

impl Stream for PartitionReader {
    type Item = Result<PolledMessages, ReadError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.intake.poll_batch(context)
    }
}
