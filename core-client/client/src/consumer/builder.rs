//! Builds a plain consumer.

use std::collections::BTreeMap;

use futures::stream::FuturesUnordered;
use iggy_protocol::{Consumer, ErrorCode, Identifier, IggyDuration};
use tokio::time::Duration;

use crate::client::IggyClient;
use crate::consumer::commits::Commits;
use crate::consumer::{DEFAULT_START, IggyConsumer, Partition, PartitionState};
use crate::error::IggyError;
use crate::poll::{PollOptions, ReadStart};

/// Builds a consumer of named partitions: by default it starts after its stored offsets and waits up to 5 s per poll.
#[derive(Debug, Clone)]
pub struct IggyConsumerBuilder {
    client: IggyClient,
    name: Identifier,
    stream: Identifier,
    topic: Identifier,
    partitions: Vec<u32>,
    start: ReadStart,
    options: PollOptions,
    retry_interval: Duration,
}

impl IggyConsumerBuilder {
    pub(crate) fn new(client: IggyClient, name: Identifier, stream: Identifier, topic: Identifier) -> Self {
        Self {
            client,
            name,
            stream,
            topic,
            partitions: Vec::new(),
            start: DEFAULT_START.into(),
            options: PollOptions::wait(IggyDuration::from_secs(5)),
            retry_interval: Duration::from_secs(1),
        }
    }

    /// The partitions to read: at least one.
    #[must_use]
    pub fn partitions(mut self, partitions: impl IntoIterator<Item = u32>) -> Self {
        self.partitions = partitions.into_iter().collect();
        self
    }

    /// Where each partition starts. Default after its stored offset.
    #[must_use]
    pub fn polling_strategy(mut self, start: impl Into<ReadStart>) -> Self {
        self.start = start.into();
        self
    }

    /// Limits of each poll and the commit policy. Default [`PollOptions::wait`] of 5 s.
    #[must_use]
    pub fn poll_options(mut self, options: PollOptions) -> Self {
        self.options = options;
        self
    }

    /// Pause before a refused partition is read again. Default 1 s.
    #[must_use]
    pub fn polling_retry_interval(mut self, interval: IggyDuration) -> Self {
        self.retry_interval = interval.into();
        self
    }

    /// The consumer.
    ///
    /// # Errors
    /// No partition is named, one is named twice, or what [`PollOptions::validate`] refuses.
    pub fn build(self) -> Result<IggyConsumer, IggyError> {
        self.options.validate()?;
        if self.partitions.is_empty() {
            return Err(IggyError::new(
                ErrorCode::NoPartitions,
                "a consumer names at least one partition",
            ));
        }
        let mut partitions = BTreeMap::new();
        for id in self.partitions {
            let partition = Partition {
                start: self.start,
                generation: 0,
                refusals: 0,
                state: PartitionState::Idle,
            };
            if partitions.insert(id, partition).is_some() {
                return Err(IggyError::new(
                    ErrorCode::InvalidCommand,
                    format!("partition {id} is named twice"),
                ));
            }
        }
        Ok(IggyConsumer {
            client: self.client,
            consumer: Consumer::new(self.name),
            stream: self.stream,
            topic: self.topic,
            commits: Commits::new(self.options.commit),
            options: self.options,
            retry_pause: self.retry_interval,
            partitions,
            reads: FuturesUnordered::new(),
            ready: std::collections::VecDeque::new(),
            closed: false,
        })
    }
}
