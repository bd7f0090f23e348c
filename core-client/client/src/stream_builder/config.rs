//! What a stream builder is told: names, and how to read and send. Everything but the names has a default.

use std::sync::Arc;

use iggy_protocol::{ConsumerKind, Durability, IggyDuration, Partitioning, PollingStrategy};

use crate::encryption::Encryptor;
use crate::intake::{DEFAULT_START, PREFETCH_BYTES, PREFETCH_MESSAGES};
use crate::poll::PollOptions;

macro_rules! config {
    (
        $(#[$doc:meta])* $config:ident, $builder:ident ( $($name:ident),* );
        $($(#[$field_doc:meta])* $field:ident: $type:ty = $default:expr;)*
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone)]
        pub struct $config {
            $($(#[$field_doc])* pub $field: $type,)*
        }

        #[doc = concat!("Builds an [`", stringify!($config), "`].")]
        #[derive(Debug, Clone)]
        pub struct $builder($config);

        impl $config {
            /// Begins with the names and the defaults.
            pub fn builder($($name: impl Into<String>),*) -> $builder {
                $builder(Self { $($name: $name.into(),)* ..Self::defaults() })
            }

            fn defaults() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl $builder {
            $(
                $(#[$field_doc])*
                #[must_use]
                pub fn $field(mut self, $field: impl Into<$type>) -> Self {
                    self.0.$field = $field.into();
                    self
                }
            )*

            /// The configuration.
            pub fn build(self) -> $config {
                self.0
            }
        }
    };
}

config! {
    /// How an [`crate::IggyStreamConsumer`] reads.
    IggyConsumerConfig, IggyConsumerConfigBuilder(stream_name, topic_name, consumer_name);
    /// The stream.
    stream_name: String = String::new();
    /// The topic.
    topic_name: String = String::new();
    /// The consumer, or its group.
    consumer_name: String = String::new();
    /// Whether it is a member of a group or stands alone. Default a member.
    consumer_kind: ConsumerKind = ConsumerKind::Group;
    /// Whether a missing stream is created. Default not.
    create_stream_if_not_exists: bool = false;
    /// Whether a missing topic is created, with `partitions_count` partitions. Default not.
    create_topic_if_not_exists: bool = false;
    /// Partitions of a topic that is created. Default 1.
    partitions_count: u32 = 1;
    /// The partitions a consumer that stands alone reads: all of the topic when none is named. A group names none.
    partitions: Vec<u32> = Vec::new();
    /// Limits of one read and the commit policy. Default [`PollOptions::wait`] of 5 s.
    poll_options: PollOptions = PollOptions::wait(IggyDuration::from_secs(5));
    /// Where partitions start. Default after the stored offset.
    polling_strategy: PollingStrategy = DEFAULT_START;
    /// Decrypts messages. Default the client's encryptor.
    encryptor: Option<Arc<dyn Encryptor>> = None;
    /// Longest pause before a refused partition is read again. Default 1 s.
    polling_retry_interval: IggyDuration = IggyDuration::ONE_SECOND;
    /// Further tries when stream, topic or group are missing. Default none.
    init_retries: u32 = 0;
    /// Pause before each of them. Default 1 s.
    init_interval: IggyDuration = IggyDuration::ONE_SECOND;
    /// Bytes to hold that the application has not taken yet. Default 16 MiB.
    prefetch_bytes: usize = PREFETCH_BYTES;
    /// Messages to hold that the application has not taken yet. Default 16,000.
    prefetch_messages: usize = PREFETCH_MESSAGES;
}

config! {
    /// How an [`crate::IggyStreamProducer`] sends. Missing streams and topics are created.
    IggyProducerConfig, IggyProducerConfigBuilder(stream_name, topic_name);
    /// The stream.
    stream_name: String = String::new();
    /// The topic.
    topic_name: String = String::new();
    /// Partitions of a topic that is created. Default 1.
    topic_partitions_count: u32 = 1;
    /// Most messages of one request; 0 is as many as fit. Default 1000.
    batch_length: u32 = 1000;
    /// Least time between two sends. Default none.
    linger_time: IggyDuration = IggyDuration::ZERO;
    /// How partitions are chosen. Default balanced.
    partitioning: Partitioning = Partitioning::Balanced;
    /// Encrypts messages. Default the client's encryptor.
    encryptor: Option<Arc<dyn Encryptor>> = None;
    /// Durability of a topic that is created. Default replicated.
    topic_durability: Durability = Durability::Replicated;
}

/// How an [`crate::IggyStream`] reads and sends.
#[derive(Debug, Clone)]
pub struct IggyStreamConfig {
    /// The consumer.
    pub consumer_config: IggyConsumerConfig,
    /// The producer.
    pub producer_config: IggyProducerConfig,
}

impl IggyStreamConfig {
    /// From both halves.
    pub fn new(consumer_config: IggyConsumerConfig, producer_config: IggyProducerConfig) -> Self {
        Self {
            consumer_config,
            producer_config,
        }
    }

    /// Sends to a topic and reads from it as a member of the group `consumer-{stream}-{topic}`, starting after the
    /// group's stored offsets.
    pub fn from_stream_topic(
        stream: &str,
        topic: &str,
        batch_length: u32,
        linger_time: IggyDuration,
        poll_options: PollOptions,
    ) -> Self {
        let consumer = format!("consumer-{stream}-{topic}");
        Self {
            consumer_config: IggyConsumerConfig::builder(stream, topic, consumer)
                .poll_options(poll_options)
                .build(),
            producer_config: IggyProducerConfig::builder(stream, topic)
                .batch_length(batch_length)
                .linger_time(linger_time)
                .build(),
        }
    }
}
