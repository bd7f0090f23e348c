//! A producer and a consumer in one call each, from names alone.

mod config;

pub use config::{
    IggyConsumerConfig, IggyConsumerConfigBuilder, IggyProducerConfig, IggyProducerConfigBuilder, IggyStreamConfig,
};

use iggy_protocol::{ConsumerKind, ErrorCode};

use crate::client::IggyClient;
use crate::consumer::IggyConsumer;
use crate::error::IggyError;
use crate::producer::{DirectConfig, IggyProducer};
use crate::resource_options::{IggyExpiry, MaxTopicSize};
use crate::topic_setup::{TopicCreation, ensure_topic};

/// A producer and a consumer of one topic.
///
/// ```no_run
/// # async fn example() -> Result<(), iggy::IggyError> {
/// use iggy::prelude::*;
///
/// let config = IggyStreamConfig::from_stream_topic(
///     "orders",
///     "created",
///     1000,
///     IggyDuration::ZERO,
///     PollOptions::wait(IggyDuration::ONE_SECOND),
/// );
/// let (client, producer, mut consumer) =
///     IggyStream::with_client_from_connection_string("iggy://iggy:iggy@127.0.0.1:8090", &config).await?;
/// producer.send(vec![IggyMessage::new("placed")?]).await?;
/// let received = consumer.next().await;
/// # let _ = (client, received);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct IggyStream;

impl IggyStream {
    /// Makes both, ready for use: first the producer, which creates what is missing, then the consumer, which joins its
    /// group.
    ///
    /// # Errors
    /// As [`IggyStreamProducer::build`] and [`IggyStreamConsumer::build`].
    pub async fn build(
        client: &IggyClient,
        config: &IggyStreamConfig,
    ) -> Result<(IggyProducer, IggyConsumer), IggyError> {
        let producer = IggyStreamProducer::build(client, &config.producer_config).await?;
        let consumer = IggyStreamConsumer::build(client, &config.consumer_config).await?;
        Ok((producer, consumer))
    }

    /// Connects a client first.
    ///
    /// # Errors
    /// As [`Self::build_iggy_client`] and [`Self::build`].
    pub async fn with_client_from_connection_string(
        connection_string: &str,
        config: &IggyStreamConfig,
    ) -> Result<(IggyClient, IggyProducer, IggyConsumer), IggyError> {
        let client = Self::build_iggy_client(connection_string).await?;
        let (producer, consumer) = Self::build(&client, config).await?;
        Ok((client, producer, consumer))
    }

    /// A client of a connection string, connected.
    ///
    /// # Errors
    /// As [`IggyClient::from_connection_string`] and [`IggyClient::connect`].
    pub async fn build_iggy_client(connection_string: &str) -> Result<IggyClient, IggyError> {
        let client = IggyClient::from_connection_string(connection_string)?;
        client.connect().await?;
        Ok(client)
    }
}

/// A producer from its configuration.
#[derive(Debug, Clone, Copy)]
pub struct IggyStreamProducer;

impl IggyStreamProducer {
    /// A producer, ready to send.
    ///
    /// # Errors
    /// A name that is empty or above 255 bytes, and as [`IggyProducer::init`].
    pub async fn build(client: &IggyClient, config: &IggyProducerConfig) -> Result<IggyProducer, IggyError> {
        let mut builder = client
            .producer(&config.stream_name, &config.topic_name)?
            .create_topic_if_not_exists(
                config.topic_partitions_count,
                IggyExpiry::ServerDefault,
                MaxTopicSize::ServerDefault,
            )
            .topic_durability(config.topic_durability)
            .partitioning(config.partitioning.clone())
            .direct(DirectConfig {
                batch_length: config.batch_length,
                linger_time: config.linger_time,
            });
        if let Some(encryptor) = &config.encryptor {
            builder = builder.encryptor(encryptor.clone());
        }
        let producer = builder.build();
        producer.init().await?;
        Ok(producer)
    }

    /// Connects a client first.
    ///
    /// # Errors
    /// As [`IggyStream::build_iggy_client`] and [`Self::build`].
    pub async fn with_client_from_url(
        connection_string: &str,
        config: &IggyProducerConfig,
    ) -> Result<(IggyClient, IggyProducer), IggyError> {
        let client = IggyStream::build_iggy_client(connection_string).await?;
        let producer = Self::build(&client, config).await?;
        Ok((client, producer))
    }
}

/// A consumer from its configuration.
#[derive(Debug, Clone, Copy)]
pub struct IggyStreamConsumer;

impl IggyStreamConsumer {
    /// A consumer, ready to read: a group member has joined its group, which is created when it is missing.
    ///
    /// # Errors
    /// A name that is empty or above 255 bytes, partitions named for a group, an external group, a stream or topic that
    /// is missing and may not be created, and as [`IggyConsumer::init`].
    pub async fn build(client: &IggyClient, config: &IggyConsumerConfig) -> Result<IggyConsumer, IggyError> {
        let IggyConsumerConfig {
            stream_name: stream,
            topic_name: topic,
            consumer_name: name,
            ..
        } = config;
        let mut builder = match config.consumer_kind {
            ConsumerKind::Consumer => client.consumer(name, stream, topic)?,
            ConsumerKind::Group => client.consumer_group(name, stream, topic)?,
            ConsumerKind::External => {
                let message = "an external group keeps offsets only and is never read for";
                return Err(IggyError::new(ErrorCode::FeatureUnavailable, message));
            }
        };
        if config.create_stream_if_not_exists || config.create_topic_if_not_exists {
            let creation = TopicCreation {
                partitions_count: config.partitions_count,
                ..TopicCreation::default()
            };
            let creation = config.create_topic_if_not_exists.then_some(creation);
            let (stream, topic) = (stream.as_str().try_into()?, topic.as_str().try_into()?);
            ensure_topic(client, &stream, &topic, config.create_stream_if_not_exists, creation).await?;
        }
        let partitions = match (config.consumer_kind, config.partitions.is_empty()) {
            (ConsumerKind::Consumer, true) => {
                let (stream, topic) = (stream.as_str().try_into()?, topic.as_str().try_into()?);
                let details = client.get_topic(&stream, &topic).await?;
                // Without a topic `init` says what is missing.
                (0..details.map_or(1, |details| details.topic.partitions_count)).collect()
            }
            _ => config.partitions.clone(),
        };
        builder = builder
            .partitions(partitions)
            .poll_options(config.poll_options)
            .polling_strategy(config.polling_strategy)
            .polling_retry_interval(config.polling_retry_interval)
            .init_retries(config.init_retries, config.init_interval)
            .prefetch_bytes(config.prefetch_bytes)
            .prefetch_messages(config.prefetch_messages.max(config.poll_options.count as usize));
        if let Some(encryptor) = &config.encryptor {
            builder = builder.encryptor(encryptor.clone());
        }
        let mut consumer = builder.build();
        consumer.init().await?;
        Ok(consumer)
    }

    /// Connects a client first.
    ///
    /// # Errors
    /// As [`IggyStream::build_iggy_client`] and [`Self::build`].
    pub async fn with_client_from_url(
        connection_string: &str,
        config: &IggyConsumerConfig,
    ) -> Result<(IggyClient, IggyConsumer), IggyError> {
        let client = IggyStream::build_iggy_client(connection_string).await?;
        let consumer = Self::build(&client, config).await?;
        Ok((client, consumer))
    }
}
