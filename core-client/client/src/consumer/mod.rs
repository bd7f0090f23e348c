//! Consumers: hand out messages one by one, and commit positions.
//!
//! A standalone consumer reads the partitions it names; a group member reads those its group assigns to it. Both stand
//! on the machinery of the [reader](crate::reader): one cursor per partition, grouped fetches, bounded reading ahead.

mod builder;
mod handler;
mod state;

pub use builder::IggyConsumerBuilder;
pub use handler::MessageHandler;
pub use state::IggyConsumerState;

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::Stream;
use iggy_protocol::{Consumer, ConsumerKind, ErrorCode, Identifier};
use tokio::time::Duration;

use crate::error::IggyError;
use crate::events::{Events, ReaderEvent};
use crate::intake::{Intake, Joining, ReadError, Settings, Share, find_topic, join_as_member};
use crate::message::IggyMessage;
use crate::poll::{Checkpoint, PolledMessages, ReadStart};

/// A message with its place.
#[derive(Debug, Clone, PartialEq)]
pub struct ReceivedMessage {
    /// The message.
    pub message: IggyMessage,
    /// The newest offset of the partition when it was read.
    pub current_offset: u64,
    /// The partition.
    pub partition_id: u32,
    checkpoint: Checkpoint,
}

impl ReceivedMessage {
    pub(crate) fn new(message: IggyMessage, current_offset: u64, checkpoint: Checkpoint) -> Self {
        Self {
            message,
            current_offset,
            partition_id: checkpoint.partition_id,
            checkpoint,
        }
    }

    /// The position after this message.
    pub fn checkpoint(&self) -> Checkpoint {
        self.checkpoint
    }

    /// The messages of a batch one by one, each with its position.
    pub fn each_of(batch: PolledMessages) -> impl Iterator<Item = Self> {
        let PolledMessages {
            partition_id,
            current_offset,
            messages,
            context,
            ordering,
            ..
        } = batch;
        messages.into_iter().map(move |message| {
            let offset = message.header.offset;
            let checkpoint = Checkpoint {
                partition_id,
                offset,
                context,
                ordering,
            };
            Self::new(message, current_offset, checkpoint)
        })
    }
}

/// A batch of this message alone.
impl From<ReceivedMessage> for PolledMessages {
    fn from(received: ReceivedMessage) -> Self {
        let checkpoint = received.checkpoint;
        Self {
            partition_id: received.partition_id,
            current_offset: received.current_offset,
            count: 1,
            messages: vec![received.message],
            context: checkpoint.context,
            start: ReadStart::Strategy(iggy_protocol::PollingStrategy::Offset(checkpoint.offset)),
            ordering: checkpoint.ordering,
        }
    }
}

/// What a consumer needs to begin.
#[derive(Debug)]
struct Plan {
    settings: Settings,
    partitions: Vec<u32>,
    create_group: bool,
    /// Further tries of `init`, and the pause before each.
    init_retries: Option<(u32, Duration)>,
}

/// A consumer of named partitions, or a member of a consumer group. One task at a time reads; positions can be stored
/// from others through its [`state`](Self::state).
///
/// [`init`](Self::init) comes first. The consumer is also a [`Stream`] of messages; [`batches`](Self::batches) is one of
/// batches. A stream cannot tell that nobody polls it any more: with `OnRead`, a read that was begun for it goes on to its
/// end. A consumer that is dropped stores nothing more, and its session stays a member of its group until it ends:
/// [`shutdown`](Self::shutdown) does both.
#[derive(Debug)]
pub struct IggyConsumer {
    plan: Plan,
    intake: Option<Intake>,
}

impl IggyConsumer {
    /// Makes sure that stream and topic exist; a group member creates its group if it is missing and may be created, and
    /// joins it. Must succeed before the first message is asked for; does nothing when it has.
    ///
    /// # Errors
    /// What the builder was given does not fit together, see [`IggyConsumerBuilder`]; stream, topic or group are missing;
    /// and whatever the server refuses. When a join or the creation of a group ends as `OperationUncertain`, the next
    /// `init` is refused as `LaneBlocked` until the operation is resolved or abandoned.
    ///
    /// # Cancel safety
    /// Dropping the future leaves at worst a group, or a membership, that the next `init` finds.
    pub async fn init(&mut self) -> Result<(), IggyError> {
        if self.intake.is_some() {
            return Ok(());
        }
        self.plan.settings.validate(&self.plan.partitions)?;
        let (mut left, pause) = self.plan.init_retries.unwrap_or((0, Duration::ZERO));
        let share = loop {
            match self.join().await {
                Ok(share) => break share,
                Err(error) if left == 0 || error.operation().is_some() => return Err(error),
                Err(error) => {
                    tracing::debug!(%error, left, "the consumer could not begin and tries again");
                    left -= 1;
                    tokio::time::sleep(pause).await;
                }
            }
        };
        self.intake = Some(Intake::start(self.plan.settings.clone(), share));
        Ok(())
    }

    async fn join(&self) -> Result<Share, IggyError> {
        let Settings {
            client,
            stream,
            topic,
            consumer,
            ..
        } = &self.plan.settings;
        if !self.plan.settings.is_group() {
            find_topic(client, stream, topic).await?;
            return Ok(Share::Named(self.plan.partitions.clone()));
        }
        let joining = Joining {
            client,
            stream,
            topic,
            group: &consumer.id,
            create: self.plan.create_group,
        };
        let (seat, assignment) = join_as_member(&joining).await?;
        Ok(Share::Assigned(seat, assignment))
    }

    fn intake(&self) -> Result<&Intake, IggyError> {
        self.intake.as_ref().ok_or_else(|| {
            IggyError::new(
                ErrorCode::InvalidConfiguration,
                "call init before the first use of the consumer",
            )
        })
    }

    /// The next message, in offset order within each partition. An error concerns one partition, which is read again
    /// after a pause unless it stopped. `None` when every partition that was named has stopped, or the consumer was shut
    /// down.
    ///
    /// # Cancel safety
    /// Nothing is lost or delivered twice when the call is dropped.
    pub async fn next(&mut self) -> Option<Result<ReceivedMessage, ReadError>> {
        match self.intake() {
            Ok(intake) => {
                let _waiting = intake.waiting();
                poll_fn(|context| intake.poll_message(context)).await
            }
            Err(error) => Some(Err(ReadError::of(None, error))),
        }
    }

    /// The next messages of one partition at once: what is left of a batch that was begun, or the next one. `None` as
    /// with [`next`](Self::next).
    ///
    /// # Cancel safety
    /// Nothing is lost or delivered twice when the call is dropped.
    pub async fn next_batch(&mut self) -> Option<Result<PolledMessages, ReadError>> {
        match self.intake() {
            Ok(intake) => {
                let _waiting = intake.waiting();
                poll_fn(|context| intake.poll_batch(context)).await
            }
            Err(error) => Some(Err(ReadError::of(None, error))),
        }
    }

    /// The messages in batches, as a stream. Dropping it loses nothing: the consumer goes on where it was.
    pub fn batches(&mut self) -> impl Stream<Item = Result<PolledMessages, ReadError>> + Unpin + '_ {
        futures::stream::poll_fn(move |context| match self.intake() {
            Ok(intake) => intake.poll_batch(context),
            Err(error) => Poll::Ready(Some(Err(ReadError::of(None, error)))),
        })
    }

    /// Stores a position of a message this consumer received. One at or below the last stored, or of an earlier ordering
    /// or history, stores nothing: the first read, each seek and each new assignment begin an ordering.
    ///
    /// # Errors
    /// `InvalidCommand` for a position of a partition this consumer does not read or of another consumer, and with
    /// `OnRead`; `ConsumerGroupPartitionNotOwned` when the partition belongs to another member of the group; and
    /// whatever the server refuses.
    ///
    /// # Cancel safety
    /// The write goes on when the call is dropped.
    pub async fn commit(&self, checkpoint: Checkpoint) -> Result<(), IggyError> {
        self.intake()?.shared().commit(checkpoint).await
    }

    /// Marks a message as processed, for automatic commits of what is marked.
    ///
    /// # Errors
    /// `InvalidCommand` for a position of a partition this consumer does not read or of another consumer, and unless
    /// commits are automatic after marks.
    pub fn mark(&self, checkpoint: Checkpoint) -> Result<(), IggyError> {
        self.intake()?.shared().mark(checkpoint)
    }

    /// Stores an offset as that of the last processed message, wherever it lies. What is read does not change: see
    /// [`seek`](Self::seek).
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    ///
    /// # Cancel safety
    /// The write goes on when the call is dropped.
    pub async fn store_offset(&self, partition_id: u32, offset: u64) -> Result<(), IggyError> {
        self.intake()?.shared().store_offset(partition_id, offset).await
    }

    /// Deletes the stored offset of a partition.
    ///
    /// # Errors
    /// As [`commit`](Self::commit), and `ConsumerOffsetNotFound` when none is stored.
    ///
    /// # Cancel safety
    /// The write goes on when the call is dropped.
    pub async fn delete_offset(&self, partition_id: u32) -> Result<(), IggyError> {
        self.intake()?.shared().delete_offset(partition_id).await
    }

    /// Reads a partition from somewhere else. What was read before and not handed out is dropped. Wakes a stopped
    /// partition.
    ///
    /// # Errors
    /// `InvalidCommand` for a partition this consumer does not read, or a continuation of another one;
    /// `ConsumerGroupPartitionNotOwned` when the partition belongs to another member of the group.
    pub fn seek(&self, partition_id: u32, start: impl Into<ReadStart>) -> Result<(), IggyError> {
        self.intake()?.shared().seek(partition_id, start.into())
    }

    /// A cloneable view, which commits from other tasks.
    ///
    /// # Errors
    /// The consumer was not initialised.
    pub fn state(&self) -> Result<IggyConsumerState, IggyError> {
        Ok(IggyConsumerState::new(self.intake()?.shared().clone()))
    }

    /// Subscribes to what happens to the consumer from now on.
    ///
    /// # Errors
    /// The consumer was not initialised.
    pub fn subscribe_events(&self) -> Result<Events<ReaderEvent>, IggyError> {
        Ok(self.intake()?.shared().subscribe())
    }

    /// The offset of the last message handed out of a partition since its last seek or assignment.
    pub fn get_last_consumed_offset(&self, partition_id: u32) -> Option<u64> {
        self.intake.as_ref()?.shared().last_consumed(partition_id)
    }

    /// The offset this consumer stored last for a partition since its last seek or assignment. What the server holds is
    /// told by [`get_consumer_offset`](crate::IggyClient::get_consumer_offset).
    pub fn get_last_stored_offset(&self, partition_id: u32) -> Option<u64> {
        self.intake.as_ref()?.shared().last_stored(partition_id)
    }

    /// The partition of the message handed out last.
    pub fn partition_id(&self) -> Option<u32> {
        self.intake.as_ref()?.shared().last_partition()
    }

    /// The partitions this consumer reads now, ascending.
    pub fn partitions(&self) -> impl Iterator<Item = u32> + use<> {
        let named = || {
            let mut named = self.plan.partitions.clone();
            named.sort_unstable();
            named
        };
        let read = self.intake.as_ref().map(|intake| intake.shared().partitions());
        read.unwrap_or_else(named).into_iter()
    }

    /// Partitions that stopped and wait for a seek, ascending.
    pub fn stopped(&self) -> impl Iterator<Item = u32> + use<> {
        let stopped = self.intake.as_ref().map(|intake| intake.shared().stopped());
        stopped.unwrap_or_default().into_iter()
    }

    /// The name of the consumer or of its group.
    pub fn name(&self) -> &Identifier {
        &self.consumer().id
    }

    /// Who reads.
    pub fn consumer(&self) -> &Consumer {
        &self.plan.settings.consumer
    }

    /// Whether it is a member of a consumer group.
    pub fn is_group_member(&self) -> bool {
        self.consumer().kind == ConsumerKind::Group
    }

    /// The stream.
    pub fn stream(&self) -> &Identifier {
        &self.plan.settings.stream
    }

    /// The topic.
    pub fn topic(&self) -> &Identifier {
        &self.plan.settings.topic
    }

    /// Stops reading, stores what automatic commits still owe and moves what reads stored back to the last message that
    /// was handed out, within the offset drain timeout; then leaves the group, within the client's call deadline.
    ///
    /// # Errors
    /// `TaskTimeout` when that took longer, and whatever refused a position or the leave.
    ///
    /// # Cancel safety
    /// It goes on in the background when the call is dropped.
    pub async fn shutdown(&mut self) -> Result<(), IggyError> {
        match &mut self.intake {
            Some(intake) => intake.close().await,
            None => Ok(()),
        }
    }
}

impl Stream for IggyConsumer {
    type Item = Result<ReceivedMessage, ReadError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.intake() {
            Ok(intake) => intake.poll_message(context),
            Err(error) => Poll::Ready(Some(Err(ReadError::of(None, error)))),
        }
    }
}
