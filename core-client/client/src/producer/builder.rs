//! Builds a producer.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use iggy_protocol::{Durability, Identifier, Partitioning};

use crate::client::IggyClient;
use crate::encryption::Encryptor;
use crate::producer::background::Workers;
use crate::producer::idempotent::Sequences;
use crate::producer::{BackgroundConfig, DirectConfig, IggyProducer, Partitioner, Plan};
use crate::resource_options::{IggyExpiry, MaxTopicSize};
use crate::topic_setup::TopicCreation;

/// Builds a producer: by default direct, balanced, creating stream and topic when they are missing.
#[derive(Debug, Clone)]
pub struct IggyProducerBuilder {
    client: IggyClient,
    stream: Identifier,
    topic: Identifier,
    encryptor: Option<Arc<dyn Encryptor>>,
    partitioner: Option<Arc<dyn Partitioner>>,
    partitioning: Partitioning,
    create_stream: bool,
    create_topic: Option<TopicCreation>,
    durability: Durability,
    direct: DirectConfig,
    background: Option<BackgroundConfig>,
    idempotent: bool,
}

impl IggyProducerBuilder {
    pub(crate) fn new(client: IggyClient, stream: Identifier, topic: Identifier) -> Self {
        Self {
            encryptor: client.encryptor(),
            partitioner: client.partitioner(),
            client,
            stream,
            topic,
            partitioning: Partitioning::Balanced,
            create_stream: true,
            create_topic: Some(TopicCreation::default()),
            durability: Durability::Replicated,
            direct: DirectConfig::default(),
            background: None,
            idempotent: false,
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

    /// Encrypts messages. Default the client's encryptor.
    #[must_use]
    pub fn encryptor(mut self, encryptor: Arc<dyn Encryptor>) -> Self {
        self.encryptor = Some(encryptor);
        self
    }

    /// Encrypts nothing.
    #[must_use]
    pub fn without_encryptor(mut self) -> Self {
        self.encryptor = None;
        self
    }

    /// How partitions are chosen. Default balanced.
    #[must_use]
    pub fn partitioning(mut self, partitioning: Partitioning) -> Self {
        self.partitioning = partitioning;
        self
    }

    /// Balanced again.
    #[must_use]
    pub fn without_partitioning(mut self) -> Self {
        self.partitioning = Partitioning::Balanced;
        self
    }

    /// Chooses partitions by messages; overrides the partitioning. Default the client's partitioner.
    #[must_use]
    pub fn partitioner(mut self, partitioner: Arc<dyn Partitioner>) -> Self {
        self.partitioner = Some(partitioner);
        self
    }

    /// No partitioner.
    #[must_use]
    pub fn without_partitioner(mut self) -> Self {
        self.partitioner = None;
        self
    }

    /// Creates the stream when it is missing. Default.
    #[must_use]
    pub fn create_stream_if_not_exists(mut self) -> Self {
        self.create_stream = true;
        self
    }

    /// Fails when the stream is missing.
    #[must_use]
    pub fn do_not_create_stream_if_not_exists(mut self) -> Self {
        self.create_stream = false;
        self
    }

    /// Creates the topic when it is missing. Default with 1 partition and the server's expiry and size.
    #[must_use]
    pub fn create_topic_if_not_exists(
        mut self,
        partitions_count: u32,
        expiry: IggyExpiry,
        max_size: MaxTopicSize,
    ) -> Self {
        let durability = self.durability;
        self.create_topic = Some(TopicCreation {
            partitions_count,
            message_expiry: expiry,
            max_topic_size: max_size,
            durability,
        });
        self
    }

    /// Fails when the topic is missing.
    #[must_use]
    pub fn do_not_create_topic_if_not_exists(mut self) -> Self {
        self.create_topic = None;
        self
    }

    /// Durability of a topic this producer creates. Default replicated.
    #[must_use]
    pub fn topic_durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// The partition writes each batch once, however often it is sent.
    #[must_use]
    pub fn idempotent(mut self) -> Self {
        self.idempotent = true;
        self
    }

    /// A batch that is sent twice is written twice. Default.
    #[must_use]
    pub fn without_idempotence(mut self) -> Self {
        self.idempotent = false;
        self
    }

    /// Sends from the calling task. Default.
    #[must_use]
    pub fn direct(mut self, config: DirectConfig) -> Self {
        self.direct = config;
        self.background = None;
        self
    }

    /// Sends in the background.
    #[must_use]
    pub fn background(mut self, config: BackgroundConfig) -> Self {
        self.background = Some(config);
        self
    }

    /// The producer; [`IggyProducer::init`] must succeed before the first send. A background producer must be built
    /// within a tokio runtime, where its workers run.
    pub fn build(self) -> IggyProducer {
        let create_topic = self.create_topic.map(|creation| TopicCreation {
            durability: self.durability,
            ..creation
        });
        // In the background, batches are shaped by the workers; a request then holds as much as fits.
        let direct = match &self.background {
            Some(_) => DirectConfig {
                batch_length: 0,
                ..DirectConfig::default()
            },
            None => self.direct,
        };
        let plan = Arc::new(Plan {
            client: self.client,
            stream: self.stream,
            topic: self.topic,
            encryptor: self.encryptor,
            partitioner: self.partitioner,
            partitioning: self.partitioning,
            create_stream: self.create_stream,
            create_topic,
            direct,
            sequences: self.idempotent.then(Sequences::default),
            pace: super::direct::Pace::default(),
            uncertain: Mutex::default(),
            ready: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        });
        let background = self.background.map(|config| Arc::new(Workers::start(&plan, config)));
        IggyProducer { plan, background }
    }
}
