//! Builds a partition reader.

use iggy_protocol::{Consumer, Identifier, IggyDuration};
use tokio::time::Duration;

use super::PartitionReader;
use crate::client::IggyClient;
use crate::error::IggyError;
use crate::intake::{
    DEFAULT_START, Intake, Joining, PREFETCH_BYTES, PREFETCH_MESSAGES, Settings, Share, join_as_member,
};
use crate::poll::{PollOptions, ReadStart};

/// Longest pause before a refused partition is read again.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Builds a [`PartitionReader`]; see [`IggyClient::reader`].
#[derive(Debug, Clone)]
pub struct ReaderBuilder {
    client: IggyClient,
    stream: Identifier,
    topic: Identifier,
    consumer: Consumer,
    partitions: Vec<u32>,
    start: ReadStart,
    options: PollOptions,
    prefetch_bytes: usize,
    prefetch_messages: Option<usize>,
}

impl ReaderBuilder {
    pub(crate) fn new(client: IggyClient, stream: Identifier, topic: Identifier, consumer: Consumer) -> Self {
        Self {
            client,
            stream,
            topic,
            consumer,
            partitions: Vec::new(),
            start: DEFAULT_START.into(),
            options: PollOptions::wait(IggyDuration::from_secs(5)),
            prefetch_bytes: PREFETCH_BYTES,
            prefetch_messages: None,
        }
    }

    /// The partitions to read: at least one for a single consumer, none for a group, which assigns them.
    #[must_use]
    pub fn partitions(mut self, partitions: impl IntoIterator<Item = u32>) -> Self {
        self.partitions = partitions.into_iter().collect();
        self
    }

    /// Where every partition starts. Default: after the consumer's stored offset. A partition that a group assigns later
    /// starts after the group's stored offset if there is one.
    #[must_use]
    pub fn start(mut self, start: impl Into<ReadStart>) -> Self {
        self.start = start.into();
        self
    }

    /// Limits of one read and the commit policy. Default: 1,000 messages, 1 MiB, a wait of 5 s, manual commits. With
    /// `OnRead` nothing is read ahead: reads are made only while [`PartitionReader::next`] waits.
    #[must_use]
    pub fn options(mut self, options: PollOptions) -> Self {
        self.options = options;
        self
    }

    /// Bytes to hold that the application has not taken yet. Default 16 MiB; one read may go beyond it.
    #[must_use]
    pub fn prefetch_bytes(mut self, bytes: usize) -> Self {
        self.prefetch_bytes = bytes;
        self
    }

    /// Messages to hold that the application has not taken yet. Default 16,000, or the count of one read if that is more.
    #[must_use]
    pub fn prefetch_messages(mut self, messages: usize) -> Self {
        self.prefetch_messages = Some(messages);
        self
    }

    /// Makes the reader; for a group, creates it if it is missing and joins it first. Nothing is read before [`PartitionReader::next`].
    ///
    /// # Errors
    /// For a single consumer no partition, or one named twice; for a group a partition at all;
    /// a continuation of another partition; an external group; options that [`PollOptions::validate`] refuses;
    /// `OnRead` with an encryptor; and whatever refuses the join. When a join ends as `OperationUncertain`, the next
    /// build is refused as `LaneBlocked` until the operation is resolved or abandoned.
    ///
    /// # Cancel safety
    /// Dropping the future leaves at worst the session a member of its group; the next build finds that.
    pub async fn build(self) -> Result<PartitionReader, IggyError> {
        let settings = Settings {
            encryptor: self.client.encryptor(),
            drain_timeout: self.client.core().config.request_timeout,
            client: self.client,
            stream: self.stream,
            topic: self.topic,
            consumer: self.consumer,
            start: self.start,
            options: self.options,
            prefetch_bytes: self.prefetch_bytes,
            prefetch_messages: self
                .prefetch_messages
                .unwrap_or(PREFETCH_MESSAGES.max(self.options.count as usize)),
            // A reader hands out what it reads: positions are its caller's business.
            allow_replay: true,
            retry_interval: LONGEST_PAUSE,
        };
        settings.validate(&self.partitions)?;
        let share = if settings.is_group() {
            let joining = Joining {
                client: &settings.client,
                stream: &settings.stream,
                topic: &settings.topic,
                group: &settings.consumer.id,
                create: true,
            };
            let (seat, assignment) = join_as_member(&joining).await?;
            Share::Assigned(seat, assignment)
        } else {
            Share::Named(self.partitions)
        };
        Ok(PartitionReader {
            intake: Intake::start(settings, share),
        })
    }
}
