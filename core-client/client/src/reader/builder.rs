//! Builds a partition reader.

use std::collections::BTreeMap;

use iggy_protocol::{Consumer, ConsumerKind, ErrorCode, Identifier, IggyDuration};

use super::partition::ReadPartition;
use super::{PartitionReader, Prefetch};
use crate::client::IggyClient;
use crate::consumer::DEFAULT_START;
use crate::error::IggyError;
use crate::poll::{CommitPolicy, PollOptions, ReadStart};

const PREFETCH_BYTES: usize = 16 << 20;
const PREFETCH_MESSAGES: usize = 16_000;

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

    /// The partitions to read; at least one.
    #[must_use]
    pub fn partitions(mut self, partitions: impl IntoIterator<Item = u32>) -> Self {
        self.partitions = partitions.into_iter().collect();
        self
    }

    /// Where every partition starts. Default: after the consumer's stored offset.
    #[must_use]
    pub fn start(mut self, start: impl Into<ReadStart>) -> Self {
        self.start = start.into();
        self
    }

    /// Limits of one read and the commit policy. Default: 1,000 messages, 1 MiB, a wait of 5 s, manual commits.
    /// `OnRead` is refused: a reader reads ahead, and what was read ahead must not count as consumed.
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

    /// Makes the reader. Nothing is read before [`PartitionReader::next`].
    ///
    /// # Errors
    /// No partition, one named twice, a continuation of another partition, a consumer that is not standalone, or options
    /// that [`PollOptions::validate`] or a reader refuses.
    // Not yet: a group's reader will join its group here, which waits for the server.
    #[allow(clippy::unused_async)]
    pub async fn build(self) -> Result<PartitionReader, IggyError> {
        self.options.validate()?;
        let refuse = |code, message: String| Err(IggyError::new(code, message));
        if self.options.commit == CommitPolicy::OnRead {
            let message = "a reader reads ahead, so positions cannot be stored as part of its reads".to_owned();
            return refuse(ErrorCode::FeatureUnavailable, message);
        }
        if self.consumer.kind != ConsumerKind::Consumer {
            let message = "a reader of named partitions has a consumer of its own, not a group".to_owned();
            return refuse(ErrorCode::FeatureUnavailable, message);
        }
        if self.partitions.is_empty() {
            return refuse(
                ErrorCode::NoPartitions,
                "a reader names at least one partition".to_owned(),
            );
        }
        let mut partitions = BTreeMap::new();
        for id in self.partitions {
            if let ReadStart::Continuation(continuation) = self.start
                && continuation.partition_id != id
            {
                let message = format!("the start continues partition {}, not {id}", continuation.partition_id);
                return refuse(ErrorCode::InvalidCommand, message);
            }
            if partitions.insert(id, ReadPartition::new(self.start)).is_some() {
                return refuse(ErrorCode::InvalidCommand, format!("partition {id} is named twice"));
            }
        }
        let prefetch = Prefetch {
            bytes: self.prefetch_bytes,
            messages: self
                .prefetch_messages
                .unwrap_or(PREFETCH_MESSAGES.max(self.options.count as usize)),
        };
        Ok(PartitionReader::new(
            self.client,
            self.stream,
            self.topic,
            self.consumer,
            self.options,
            prefetch,
            partitions,
        ))
    }
}
