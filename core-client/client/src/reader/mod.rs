//! Reads many partitions of one topic in batches.
//!
//! Partitions are grouped by their primary, and each primary is asked by one grouped fetch at a time, which waits there
//! for messages. Whenever another partition of the same primary can be read, the waiting fetch is cancelled and both go
//! into one. Reading goes on while the application works, up to a bound in bytes and messages.
//!
//! An error of one partition does not stop the others. A partition that is refused waits with doubling pauses and stops
//! after six lasting refusals in a row; one whose history ended, or that holds a message that cannot be read, stops at
//! once. A stopped partition goes on after a [`seek`](PartitionReader::seek).

mod builder;
mod partition;
mod reads;

pub use builder::ReaderBuilder;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use bytes::Bytes;
use iggy_protocol::{Consumer, ErrorCode, Identifier};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

use crate::client::IggyClient;
use crate::consumer::Commits;
use crate::error::IggyError;
use crate::poll::{Checkpoint, Continuation, PollOptions, PolledMessages, ReadStart};
use partition::{ReadPartition, State};
use reads::Done;

/// A read that brought no messages but a reason.
#[derive(Debug)]
pub struct ReadError {
    /// The partition; `None` when it concerns all of them.
    pub partition_id: Option<u32>,
    /// The reason.
    pub error: IggyError,
    /// Where to seek to in order to read on after an unreadable message.
    pub skip: Option<Continuation>,
    /// Offset of an unreadable message.
    pub offset: Option<u64>,
    /// Payload of an unreadable message, as it came.
    pub record: Option<Bytes>,
}

impl ReadError {
    fn of(partition_id: impl Into<Option<u32>>, error: IggyError) -> Self {
        Self {
            partition_id: partition_id.into(),
            error,
            skip: None,
            offset: None,
            record: None,
        }
    }

    /// Whether asking again will most likely be refused again. Six such in a row stop the partition.
    pub fn is_lasting_refusal(&self) -> bool {
        !self.error.retryable()
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.partition_id {
            Some(id) => write!(out, "partition {id}: {}", self.error),
            None => self.error.fmt(out),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

#[derive(Debug, Clone, Copy)]
struct Prefetch {
    bytes: usize,
    messages: usize,
}

/// A fetch that waits at a primary.
#[derive(Debug)]
struct InFlight {
    number: u64,
    partitions: Vec<u32>,
    abort: AbortHandle,
}

type Ready = Result<PolledMessages, ReadError>;

/// Reads many partitions of one topic in batches. See the module's page, and [`IggyClient::reader`].
#[derive(Debug)]
pub struct PartitionReader {
    client: IggyClient,
    stream: Identifier,
    topic: Identifier,
    consumer: Consumer,
    options: PollOptions,
    prefetch: Prefetch,
    partitions: BTreeMap<u32, ReadPartition>,
    /// The one fetch of each primary.
    fetches: BTreeMap<u8, InFlight>,
    tasks: JoinSet<Done>,
    ready: VecDeque<Ready>,
    commits: Commits,
    numbers: u64,
    /// Since when no primary has answered at all.
    unanswered_since: Option<Instant>,
    closed: bool,
}

impl PartitionReader {
    fn new(
        client: IggyClient,
        stream: Identifier,
        topic: Identifier,
        consumer: Consumer,
        options: PollOptions,
        prefetch: Prefetch,
        partitions: BTreeMap<u32, ReadPartition>,
    ) -> Self {
        Self {
            client,
            stream,
            topic,
            consumer,
            options,
            prefetch,
            partitions,
            fetches: BTreeMap::new(),
            tasks: JoinSet::new(),
            ready: VecDeque::new(),
            commits: Commits::new(options.commit),
            numbers: 0,
            unanswered_since: None,
            closed: false,
        }
    }

    /// The next batch of messages, all of one partition. Waits until there is one.
    ///
    /// # Errors
    /// What keeps a partition from being read, or a position from being stored; the reader goes on with the next call.
    /// `NoPartitions` when every partition has stopped, `ClientShutdown` after [`close`](Self::close).
    ///
    /// # Cancel safety
    /// Nothing is lost or delivered twice when the call is dropped.
    pub async fn next(&mut self) -> Result<PolledMessages, ReadError> {
        if self.closed {
            let message = "the reader is closed";
            return Err(ReadError::of(None, IggyError::new(ErrorCode::ClientShutdown, message)));
        }
        self.commits.asked_for_next();
        loop {
            for checkpoint in self.commits.take_due(false) {
                self.store(&checkpoint)
                    .await
                    .map_err(|error| ReadError::of(checkpoint.partition_id, error))?;
            }
            self.begin_reads();
            if let Some(ready) = self.ready.pop_front() {
                let polled = ready?;
                if let Some(checkpoint) = polled.checkpoint() {
                    self.commits.handed_out(checkpoint, true);
                }
                self.begin_reads();
                return Ok(polled);
            }
            if self
                .partitions
                .values()
                .all(|partition| partition.state == State::Stopped)
            {
                let message = "every partition has stopped; seek one to read on";
                return Err(ReadError::of(None, IggyError::new(ErrorCode::NoPartitions, message)));
            }
            self.wait().await;
        }
    }

    /// Waits until a read ends, a pause is over or a position is due.
    async fn wait(&mut self) {
        let resumes = self
            .partitions
            .values()
            .filter(|partition| partition.state == State::Idle);
        let wake = resumes
            .filter_map(|partition| partition.resume_at)
            .chain(self.commits.due_at())
            .min();
        let done = match wake {
            None => self.tasks.join_next().await,
            Some(wake) => match tokio::time::timeout_at(wake, self.tasks.join_next()).await {
                Ok(None) => {
                    tokio::time::sleep_until(wake).await;
                    None
                }
                Ok(done) => done,
                Err(_) => None,
            },
        };
        // A task that was aborted has nothing to say.
        if let Some(Ok(done)) = done {
            self.take_in(done);
        }
    }

    /// Stores a position. One at or below the last stored, or of an older history, stores nothing.
    ///
    /// # Errors
    /// `InvalidCommand` for a position of a partition this reader does not read, and whatever refuses the write.
    ///
    /// # Cancel safety
    /// The write goes on when the call is dropped.
    pub async fn commit(&mut self, checkpoint: Checkpoint) -> Result<(), IggyError> {
        self.check_own(checkpoint.partition_id)?;
        if !self.commits.advances(&checkpoint) {
            return Ok(());
        }
        self.store(&checkpoint).await?;
        self.commits.stored(checkpoint);
        Ok(())
    }

    /// Notes that the application is done up to a position, for automatic commits after marks.
    ///
    /// # Errors
    /// `InvalidCommand` for a position of a partition this reader does not read.
    pub fn mark(&mut self, checkpoint: Checkpoint) -> Result<(), IggyError> {
        self.check_own(checkpoint.partition_id)?;
        self.commits.marked(checkpoint);
        Ok(())
    }

    /// Goes on somewhere else in a partition; what was read ahead of it is dropped. Wakes a stopped partition.
    ///
    /// # Errors
    /// `InvalidCommand` for a partition this reader does not read, or a continuation of another one.
    pub fn seek(&mut self, partition_id: u32, start: impl Into<ReadStart>) -> Result<(), IggyError> {
        self.check_own(partition_id)?;
        let start = start.into();
        if let ReadStart::Continuation(continuation) = start
            && continuation.partition_id != partition_id
        {
            let message = format!(
                "the start continues partition {}, not {partition_id}",
                continuation.partition_id
            );
            return Err(IggyError::new(ErrorCode::InvalidCommand, message));
        }
        let waiting = self
            .fetches
            .iter()
            .find(|(_, fetch)| fetch.partitions.contains(&partition_id));
        if let Some(primary) = waiting.map(|(primary, _)| *primary) {
            self.cancel(primary);
        }
        if let Some(partition) = self.partitions.get_mut(&partition_id) {
            partition.seek(start);
        }
        self.ready.retain(|ready| match ready {
            Ok(polled) => polled.partition_id != partition_id,
            Err(error) => error.partition_id != Some(partition_id),
        });
        self.commits.restarted(partition_id);
        Ok(())
    }

    /// The partitions it reads, ascending.
    pub fn partitions(&self) -> impl Iterator<Item = u32> + '_ {
        self.partitions.keys().copied()
    }

    /// The partitions that wait for a seek, ascending.
    pub fn stopped(&self) -> impl Iterator<Item = u32> + '_ {
        let stopped = |(_, partition): &(&u32, &ReadPartition)| partition.state == State::Stopped;
        self.partitions.iter().filter(stopped).map(|(id, _)| *id)
    }

    /// Ends the reads and stores what automatic commits still owe, within the client's call deadline. What was read ahead
    /// is dropped.
    ///
    /// # Errors
    /// `TaskTimeout` when the positions were not stored in time, and whatever refuses a write.
    pub async fn close(&mut self) -> Result<(), IggyError> {
        self.closed = true;
        self.tasks.abort_all();
        self.fetches.clear();
        self.ready.clear();
        let owed = self.commits.take_due(true);
        let deadline = self.client.core().default_deadline();
        let stored = tokio::time::timeout_at(deadline, async {
            for checkpoint in &owed {
                self.store(checkpoint).await?;
            }
            Ok(())
        });
        let late = || IggyError::new(ErrorCode::TaskTimeout, "the last positions were not stored in time");
        stored.await.unwrap_or_else(|_| Err(late()))
    }

    async fn store(&self, checkpoint: &Checkpoint) -> Result<(), IggyError> {
        self.client
            .store_consumer_position(&self.consumer, &self.stream, &self.topic, checkpoint)
            .await
    }

    fn check_own(&self, partition_id: u32) -> Result<(), IggyError> {
        if self.partitions.contains_key(&partition_id) {
            return Ok(());
        }
        let message = format!("this reader does not read partition {partition_id}");
        Err(IggyError::new(ErrorCode::InvalidCommand, message))
    }
}
