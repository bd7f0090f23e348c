//! A plain consumer: reads named partitions of one topic, hands out messages one by one, and commits positions.
//!
//! Each partition has at most one poll under way; the next begins when its messages were handed out. A partition that is
//! refused is asked again after a pause; one whose history ended, or that is refused six times in a row, stops until a
//! seek.

mod builder;
mod commits;

pub use builder::IggyConsumerBuilder;
pub(crate) use commits::Commits;

use std::collections::{BTreeMap, VecDeque};

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use iggy_protocol::{Consumer, ErrorCode, Identifier, PollingStrategy};
use tokio::time::{Duration, Instant};

use crate::client::IggyClient;
use crate::error::{ErrorClass, IggyError};
use crate::message::IggyMessage;
use crate::poll::{Checkpoint, CommitPolicy, PollOptions, PolledMessages, ReadStart};

/// Refusals in a row after which a partition stops.
const LASTING_REFUSALS: u32 = 6;

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
    /// Whether it is the last of its batch.
    last_of_batch: bool,
    /// The seek it was read after; positions of an earlier one commit nothing.
    generation: u64,
}

impl ReceivedMessage {
    /// The position after this message.
    pub fn checkpoint(&self) -> Checkpoint {
        self.checkpoint
    }
}

#[derive(Debug)]
struct Partition {
    start: ReadStart,
    generation: u64,
    refusals: u32,
    state: PartitionState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PartitionState {
    /// A poll is under way, or its messages are being handed out.
    Reading,
    /// It may be polled.
    Idle,
    /// Nothing is read before a seek.
    Stopped,
}

type Read = (u32, u64, Result<PolledMessages, IggyError>);

/// A consumer of named partitions. One task at a time uses it.
pub struct IggyConsumer {
    client: IggyClient,
    consumer: Consumer,
    stream: Identifier,
    topic: Identifier,
    options: PollOptions,
    retry_pause: Duration,
    partitions: BTreeMap<u32, Partition>,
    reads: FuturesUnordered<BoxFuture<'static, Read>>,
    ready: VecDeque<Result<ReceivedMessage, IggyError>>,
    commits: Commits,
    closed: bool,
}

impl std::fmt::Debug for IggyConsumer {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("IggyConsumer")
            .field("consumer", &self.consumer)
            .field("stream", &self.stream)
            .field("topic", &self.topic)
            .field("partitions", &self.partitions)
            .finish_non_exhaustive()
    }
}

impl IggyConsumer {
    /// The next message, in offset order within each partition. An error concerns one partition, which is read again
    /// after a pause unless it stopped. `None` when every partition stopped or the consumer was shut down.
    ///
    /// Cancel safe: nothing that was read is lost.
    pub async fn next(&mut self) -> Option<Result<ReceivedMessage, IggyError>> {
        if self.closed {
            return None;
        }
        self.commits.asked_for_next();
        loop {
            if let Some(result) = self.store_due(false).await {
                return Some(Err(result));
            }
            if let Some(received) = self.ready.pop_front() {
                return Some(self.hand_out(received));
            }
            self.start_reads();
            if self.reads.is_empty() {
                return None;
            }
            let due = self.commits.due_at();
            let read = async {
                match due {
                    None => Ok(self.reads.next().await),
                    Some(due) => tokio::time::timeout_at(due, self.reads.next()).await,
                }
            };
            match read.await {
                Ok(Some(read)) => self.take_in(read),
                Ok(None) => return None,
                // It is time to store a position.
                Err(_) => {}
            }
        }
    }

    fn hand_out(&mut self, received: Result<ReceivedMessage, IggyError>) -> Result<ReceivedMessage, IggyError> {
        let received = received?;
        if received.last_of_batch
            && let Some(partition) = self.partitions.get_mut(&received.partition_id)
            && partition.generation == received.generation
        {
            partition.state = PartitionState::Idle;
        }
        self.commits.handed_out(received.checkpoint, received.last_of_batch);
        Ok(received)
    }

    fn start_reads(&mut self) {
        let (client, stream, topic) = (&self.client, &self.stream, &self.topic);
        for (id, partition) in &mut self.partitions {
            if partition.state != PartitionState::Idle {
                continue;
            }
            partition.state = PartitionState::Reading;
            let (id, generation, start) = (*id, partition.generation, partition.start);
            let pause = if partition.refusals > 0 {
                self.retry_pause
            } else {
                Duration::ZERO
            };
            let (client, stream, topic) = (client.clone(), stream.clone(), topic.clone());
            let (consumer, options) = (self.consumer.clone(), self.commits.poll_options(self.options));
            self.reads.push(Box::pin(async move {
                if !pause.is_zero() {
                    tokio::time::sleep(pause).await;
                }
                let polled = client
                    .poll_messages(&stream, &topic, id, &consumer, start, options)
                    .await;
                (id, generation, polled)
            }));
        }
    }

    fn take_in(&mut self, (id, generation, polled): Read) {
        let Some(partition) = self
            .partitions
            .get_mut(&id)
            .filter(|partition| partition.generation == generation)
        else {
            return;
        };
        let polled = match polled {
            Ok(polled) => polled,
            Err(error) => {
                partition.refusals += 1;
                // A position of a history that ended, or an unknown outcome, needs a decision of the application.
                let decided = matches!(
                    error.class(),
                    ErrorClass::Stale | ErrorClass::Uncertain | ErrorClass::Closed
                );
                let lasting = partition.refusals >= LASTING_REFUSALS && !error.retryable();
                partition.state = if decided || lasting {
                    PartitionState::Stopped
                } else {
                    PartitionState::Idle
                };
                self.ready.push_back(Err(error));
                return;
            }
        };
        partition.refusals = 0;
        partition.start = polled.continuation().into();
        if polled.is_empty() {
            partition.state = PartitionState::Idle;
            return;
        }
        let count = polled.messages.len();
        let (partition_id, current_offset, context) = (polled.partition_id, polled.current_offset, polled.context);
        self.ready
            .extend(polled.messages.into_iter().enumerate().map(|(index, message)| {
                let checkpoint = Checkpoint {
                    partition_id,
                    offset: message.header.offset,
                    context,
                };
                let last_of_batch = index + 1 == count;
                Ok(ReceivedMessage {
                    message,
                    current_offset,
                    partition_id,
                    checkpoint,
                    last_of_batch,
                    generation,
                })
            }));
    }

    /// Stores what is due, or everything that is done. The error of a store that failed.
    async fn store_due(&mut self, everything: bool) -> Option<IggyError> {
        for checkpoint in self.commits.take_due(everything) {
            if let Err(error) = self.store(checkpoint).await {
                return Some(error);
            }
        }
        None
    }

    async fn store(&self, checkpoint: Checkpoint) -> Result<(), IggyError> {
        self.client
            .store_consumer_position(&self.consumer, &self.stream, &self.topic, &checkpoint)
            .await
    }

    /// Stores a position of a message this consumer received. A position at or below the last committed one stores
    /// nothing.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidCommand`] for a partition this consumer does not read and with [`CommitPolicy::OnRead`], and
    /// whatever the server refuses.
    pub async fn commit(&mut self, checkpoint: Checkpoint) -> Result<(), IggyError> {
        if self.options.commit == CommitPolicy::OnRead {
            return Err(IggyError::new(
                ErrorCode::InvalidCommand,
                "positions are stored as part of each read",
            ));
        }
        self.check_own(&checkpoint)?;
        if !self.commits.advances(&checkpoint) {
            return Ok(());
        }
        self.store(checkpoint).await?;
        self.commits.stored(checkpoint);
        Ok(())
    }

    /// Marks a message as processed, for automatic commits of what is marked.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidCommand`] for a partition this consumer does not read.
    pub fn mark(&mut self, checkpoint: Checkpoint) -> Result<(), IggyError> {
        self.check_own(&checkpoint)?;
        self.commits.marked(checkpoint);
        Ok(())
    }

    fn check_own(&self, checkpoint: &Checkpoint) -> Result<(), IggyError> {
        if self.partitions.contains_key(&checkpoint.partition_id) {
            return Ok(());
        }
        let message = format!("this consumer does not read partition {}", checkpoint.partition_id);
        Err(IggyError::new(ErrorCode::InvalidCommand, message))
    }

    /// Reads a partition from somewhere else. What was read before and not handed out is dropped.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidCommand`] for a partition this consumer does not read.
    pub fn seek(&mut self, partition_id: u32, start: impl Into<ReadStart>) -> Result<(), IggyError> {
        let Some(partition) = self.partitions.get_mut(&partition_id) else {
            let message = format!("this consumer does not read partition {partition_id}");
            return Err(IggyError::new(ErrorCode::InvalidCommand, message));
        };
        partition.generation += 1;
        partition.start = start.into();
        partition.refusals = 0;
        partition.state = PartitionState::Idle;
        self.ready.retain(|received| {
            received
                .as_ref()
                .map_or(true, |received| received.partition_id != partition_id)
        });
        self.commits.restarted(partition_id);
        Ok(())
    }

    /// The offset stored at the server for a partition.
    ///
    /// # Errors
    /// Whatever the server refuses.
    pub async fn get_last_stored_offset(&self, partition_id: u32) -> Result<Option<u64>, IggyError> {
        let stored = self
            .client
            .get_consumer_offset(&self.consumer, &self.stream, &self.topic, partition_id)
            .await?;
        Ok(stored.map(|stored| stored.stored_offset))
    }

    /// The offset of the last message handed out of a partition.
    pub fn get_last_consumed_offset(&self, partition_id: u32) -> Option<u64> {
        self.commits.last_handed_out(partition_id)
    }

    /// The partitions this consumer reads.
    pub fn partitions(&self) -> impl Iterator<Item = u32> {
        self.partitions.keys().copied()
    }

    /// Partitions that stopped and wait for a seek.
    pub fn stopped(&self) -> impl Iterator<Item = u32> {
        let stopped = |(_, partition): &(&u32, &Partition)| partition.state == PartitionState::Stopped;
        self.partitions.iter().filter(stopped).map(|(id, _)| *id)
    }

    /// Stops reading and stores what automatic commits still owe.
    ///
    /// # Errors
    /// A position could not be stored.
    pub async fn shutdown(&mut self) -> Result<(), IggyError> {
        self.closed = true;
        self.reads.clear();
        self.ready.clear();
        let deadline = Instant::now() + self.client.core().config.request_timeout;
        match tokio::time::timeout_at(deadline, self.store_due(true)).await {
            Ok(None) => Ok(()),
            Ok(Some(error)) => Err(error),
            Err(_) => Err(IggyError::new(
                ErrorCode::TaskTimeout,
                "the last positions were not stored in time",
            )),
        }
    }
}

/// Where a consumer starts when nobody says otherwise.
pub(crate) const DEFAULT_START: PollingStrategy = PollingStrategy::Next;
