//! Builds a consumer.

use std::sync::Arc;

use iggy_protocol::{Consumer, Identifier, IggyDuration};

use crate::client::IggyClient;
use crate::consumer::{IggyConsumer, Plan};
use crate::encryption::Encryptor;
use crate::intake::{DEFAULT_START, PREFETCH_BYTES, PREFETCH_MESSAGES, Settings};
use crate::poll::{PollOptions, ReadStart};

/// Builds a consumer: by default it starts after its stored offsets, waits up to 5 s per poll, and commits nothing by
/// itself.
#[derive(Debug, Clone)]
pub struct IggyConsumerBuilder {
    client: IggyClient,
    consumer: Consumer,
    stream: Identifier,
    topic: Identifier,
    partitions: Vec<u32>,
    start: ReadStart,
    options: PollOptions,
    prefetch_bytes: usize,
    prefetch_messages: Option<usize>,
    create_group: bool,
    encryptor: Option<Arc<dyn Encryptor>>,
    retry_interval: IggyDuration,
    init_retries: Option<(u32, IggyDuration)>,
    allow_replay: bool,
    drain_timeout: IggyDuration,
}

impl IggyConsumerBuilder {
    pub(crate) fn new(client: IggyClient, consumer: Consumer, stream: Identifier, topic: Identifier) -> Self {
        Self {
            encryptor: client.encryptor(),
            client,
            consumer,
            stream,
            topic,
            partitions: Vec::new(),
            start: DEFAULT_START.into(),
            options: PollOptions::wait(IggyDuration::from_secs(5)),
            prefetch_bytes: PREFETCH_BYTES,
            prefetch_messages: None,
            create_group: true,
            retry_interval: IggyDuration::from_secs(1),
            init_retries: None,
            allow_replay: false,
            drain_timeout: IggyDuration::from_secs(5),
        }
    }

    /// Another stream.
    #[must_use]
    pub fn stream(mut self, stream: Identifier) -> Self {
        self.stream = stream;
        self
    }

    /// Another topic.
    #[must_use]
    pub fn topic(mut self, topic: Identifier) -> Self {
        self.topic = topic;
        self
    }

    /// The partitions to read: at least one for a standalone consumer, none for a group member, whose group assigns them.
    #[must_use]
    pub fn partitions(mut self, partitions: impl IntoIterator<Item = u32>) -> Self {
        self.partitions = partitions.into_iter().collect();
        self
    }

    /// Where each partition starts. Default after its stored offset. A partition that a group assigns later starts after
    /// the group's stored offset if there is one.
    #[must_use]
    pub fn polling_strategy(mut self, start: impl Into<ReadStart>) -> Self {
        self.start = start.into();
        self
    }

    /// Limits of each read and the commit policy. Default [`PollOptions::wait`] of 5 s. With `OnRead` nothing is read
    /// ahead: reads are made only while the next message is waited for.
    #[must_use]
    pub fn poll_options(mut self, options: PollOptions) -> Self {
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

    /// Creates the consumer group when it is missing. Default; a standalone consumer has none.
    #[must_use]
    pub fn create_consumer_group_if_not_exists(mut self) -> Self {
        self.create_group = true;
        self
    }

    /// Fails when the consumer group is missing.
    #[must_use]
    pub fn do_not_create_consumer_group_if_not_exists(mut self) -> Self {
        self.create_group = false;
        self
    }

    /// Decrypts messages. Default the client's encryptor.
    #[must_use]
    pub fn encryptor(mut self, encryptor: Arc<dyn Encryptor>) -> Self {
        self.encryptor = Some(encryptor);
        self
    }

    /// Decrypts nothing.
    #[must_use]
    pub fn without_encryptor(mut self) -> Self {
        self.encryptor = None;
        self
    }

    /// Longest pause before a refused partition is read again: pauses double from 50 ms up to it. Default 1 s.
    #[must_use]
    pub fn polling_retry_interval(mut self, interval: IggyDuration) -> Self {
        self.retry_interval = interval;
        self
    }

    /// Further tries of [`IggyConsumer::init`] when stream, topic or group are missing or the server refuses, and the
    /// pause before each. Default none.
    #[must_use]
    pub fn init_retries(mut self, retries: u32, interval: IggyDuration) -> Self {
        self.init_retries = Some((retries, interval));
        self
    }

    /// Hands out messages again that were handed out before, when a partition comes back to this member and its stored
    /// offset lies behind them. Default they are passed over, unless a seek asks for them.
    #[must_use]
    pub fn allow_replay(mut self) -> Self {
        self.allow_replay = true;
        self
    }

    /// How long positions may take to be stored when a rebalance takes a partition, and at shutdown. Default 5 s.
    #[must_use]
    pub fn offset_drain_timeout(mut self, timeout: IggyDuration) -> Self {
        self.drain_timeout = timeout;
        self
    }

    /// The consumer; [`IggyConsumer::init`] comes next and checks what was given here.
    pub fn build(self) -> IggyConsumer {
        let prefetch_messages = self.prefetch_messages;
        let settings = Settings {
            client: self.client,
            stream: self.stream,
            topic: self.topic,
            consumer: self.consumer,
            start: self.start,
            options: self.options,
            prefetch_bytes: self.prefetch_bytes,
            prefetch_messages: prefetch_messages.unwrap_or(PREFETCH_MESSAGES.max(self.options.count as usize)),
            encryptor: self.encryptor,
            allow_replay: self.allow_replay,
            retry_interval: self.retry_interval.into(),
            drain_timeout: self.drain_timeout.into(),
        };
        IggyConsumer {
            plan: Plan {
                settings,
                partitions: self.partitions,
                create_group: self.create_group,
                init_retries: self.init_retries.map(|(retries, interval)| (retries, interval.into())),
            },
            intake: None,
        }
    }
}
