//! How clients, producers, consumers, readers and polls are configured, from JSON.
//!
//! Each is an object whose members have the names of the core's builders; what is left out has the core's default, and
//! unknown members are refused by name. Times are microseconds, sizes bytes.

use std::sync::Arc;

use iggy::producer::ErrorCallback;
use iggy::{
    Aes256GcmEncryptor, Aes256GcmSivEncryptor, AutoCommit, BackgroundConfig, BackpressureMode, ClientConfig,
    CommitAfter, CommitEvery, CommitPolicy, Consumer, DirectConfig, Durability, Encryptor, Endpoint, Identifier,
    IggyByteSize, IggyClient, IggyConsumer, IggyDuration, IggyExpiry, IggyProducer, MaxTopicSize, Partitioner,
    Partitioning, PollOptions, PollingStrategy, ReadStart, ReaderBuilder, Secret, Sharding, TlsConfig,
    connection_string,
};
use iggy_protocol::request::session::Credentials;
use iggy_protocol::{ErrorCode, Name};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Failure;

fn read<T: DeserializeOwned>(what: &str, settings: Value) -> Result<T, Failure> {
    serde_json::from_value(settings).map_err(|error| Failure::invalid(format!("{what}: {error}")))
}

fn micros(number: u64) -> IggyDuration {
    IggyDuration::from_micros(number)
}

fn invalid(message: String) -> Failure {
    iggy::IggyError::new(ErrorCode::InvalidConfiguration, message).into()
}

/// `aes-256-gcm` or `aes-256-gcm-siv` with a key of 32 bytes in standard base64.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Encryption {
    cipher: Cipher,
    key: String,
}

#[derive(Deserialize)]
enum Cipher {
    #[serde(rename = "aes-256-gcm")]
    Gcm,
    #[serde(rename = "aes-256-gcm-siv")]
    GcmSiv,
}

impl Encryption {
    fn encryptor(&self) -> Result<Arc<dyn Encryptor>, Failure> {
        Ok(match self.cipher {
            Cipher::Gcm => Arc::new(Aes256GcmEncryptor::from_base64_key(&self.key)?),
            Cipher::GcmSiv => Arc::new(Aes256GcmSivEncryptor::from_base64_key(&self.key)?),
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tls {
    domain: Option<String>,
    ca_file: Option<String>,
    validate_certificate: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClientSettings {
    connection_string: Option<String>,
    server_address: Option<String>,
    username: Option<String>,
    password: Option<String>,
    token: Option<String>,
    tls: Option<Tls>,
    nodelay: Option<bool>,
    reconnection_max_retries: Option<u32>,
    reconnection_interval: Option<u64>,
    reestablish_after: Option<u64>,
    heartbeat_interval: Option<u64>,
    request_timeout: Option<u64>,
    max_pending_operations: Option<u32>,
    max_pending_operation_bytes: Option<u32>,
    max_frame_bytes: Option<u32>,
    encryption: Option<Encryption>,
}

impl ClientSettings {
    fn credentials(&self) -> Result<Option<Credentials>, Failure> {
        match (&self.username, &self.password, &self.token) {
            (None, None, None) => Ok(None),
            (Some(username), Some(password), None) => Ok(Some(Credentials::Password {
                username: Name::new(username).map_err(iggy::IggyError::from)?,
                password: Secret::new(password),
            })),
            (None, None, Some(token)) => Ok(Some(Credentials::Token(Secret::new(token)))),
            _ => Err(invalid(
                "give username and password, or token, or none of them".to_owned(),
            )),
        }
    }

    fn apply(&self, config: &mut ClientConfig) -> Result<(), Failure> {
        if let Some(address) = &self.server_address {
            let endpoint = Endpoint::parse(address);
            config.endpoint = endpoint.ok_or_else(|| {
                let message = format!("'{address}' is no address, expected host:port with IPv6 in brackets");
                Failure::from(iggy::IggyError::new(ErrorCode::InvalidServerAddress, message))
            })?;
        }
        if let Some(credentials) = self.credentials()? {
            config.credentials = Some(credentials);
        }
        if let Some(tls) = &self.tls {
            config.tls = Some(TlsConfig {
                domain: tls.domain.clone(),
                ca_file: tls.ca_file.clone().map(Into::into),
                validate_certificate: tls.validate_certificate.unwrap_or(true),
            });
        }
        let set = |target: &mut std::time::Duration, value: Option<u64>| {
            if let Some(value) = value {
                *target = std::time::Duration::from_micros(value);
            }
        };
        set(&mut config.reconnection.interval, self.reconnection_interval);
        set(&mut config.reconnection.reestablish_after, self.reestablish_after);
        set(&mut config.heartbeat_interval, self.heartbeat_interval);
        set(&mut config.request_timeout, self.request_timeout);
        config.reconnection.max_retries = self.reconnection_max_retries.or(config.reconnection.max_retries);
        config.nodelay = self.nodelay.unwrap_or(config.nodelay);
        let atleast_one = |value: Option<u32>, default: u32| value.unwrap_or(default).max(1);
        config.max_pending_operations = atleast_one(self.max_pending_operations, config.max_pending_operations);
        config.max_pending_operation_bytes =
            atleast_one(self.max_pending_operation_bytes, config.max_pending_operation_bytes);
        config.max_frame_bytes = atleast_one(self.max_frame_bytes, config.max_frame_bytes);
        Ok(())
    }
}

/// A client; it connects with `connect`.
///
/// # Errors
/// Settings that are unknown, malformed or contradict each other.
pub fn client(settings: Value, partitioner: Option<Arc<dyn Partitioner>>) -> Result<IggyClient, Failure> {
    let settings: ClientSettings = read("settings of a client", settings)?;
    let mut config = match &settings.connection_string {
        Some(text) => connection_string::parse(text)?,
        None => ClientConfig::default(),
    };
    settings.apply(&mut config)?;
    let mut builder = IggyClient::builder().with_config(config);
    if let Some(encryption) = &settings.encryption {
        builder = builder.with_encryptor(encryption.encryptor()?);
    }
    if let Some(partitioner) = partitioner {
        builder = builder.with_partitioner(partitioner);
    }
    Ok(builder.build())
}

/// Where a read starts: `first`, `last`, `next`, `{"offset": n}` or `{"timestamp": microseconds}`.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Start {
    First,
    Last,
    Next,
    Offset(u64),
    Timestamp(u64),
}

/// A start in words; the default of the core for `null`.
///
/// # Errors
/// Anything else.
pub fn strategy(start: Value) -> Result<PollingStrategy, Failure> {
    Ok(match read::<Start>("start", start)? {
        Start::First => PollingStrategy::first(),
        Start::Last => PollingStrategy::last(),
        Start::Next => PollingStrategy::next(),
        Start::Offset(offset) => PollingStrategy::offset(offset),
        Start::Timestamp(timestamp) => PollingStrategy::timestamp(timestamp),
    })
}

/// How a send finds its partition: `balanced`, `{"partition": n}`, or `{"key": base64}`.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum PartitioningSetting {
    Balanced,
    Partition(u32),
    Key(String),
}

/// A partitioning in words.
///
/// # Errors
/// Anything else, and keys outside 1..=255 bytes.
pub fn partitioning(setting: Value) -> Result<Partitioning, Failure> {
    use base64::Engine;
    Ok(match read::<PartitioningSetting>("partitioning", setting)? {
        PartitioningSetting::Balanced => Partitioning::balanced(),
        PartitioningSetting::Partition(id) => Partitioning::partition_id(id),
        PartitioningSetting::Key(text) => {
            let key = base64::engine::general_purpose::STANDARD.decode(text);
            let key = key.map_err(|_| Failure::invalid("a key is standard base64"))?;
            Partitioning::messages_key(&key).map_err(iggy::IggyError::from)?
        }
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Commit {
    Manual,
    OnRead,
    Auto(Auto),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Auto {
    interval: Option<u64>,
    /// `message`, `batch` or a number of messages; 0 for by time alone.
    every: Option<Every>,
    after: Option<After>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Every {
    Messages(u32),
    Unit(EveryUnit),
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum EveryUnit {
    Message,
    Batch,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum After {
    Processing,
    Delivery,
    Marked,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PollSettings {
    count: Option<u32>,
    max_wait: Option<u64>,
    min_count: Option<u32>,
    max_bytes: Option<u32>,
    commit: Option<Commit>,
}

fn commit_policy(commit: Commit) -> CommitPolicy {
    let auto = match commit {
        Commit::Manual => return CommitPolicy::Manual,
        Commit::OnRead => return CommitPolicy::OnRead,
        Commit::Auto(auto) => auto,
    };
    let default = AutoCommit::default();
    CommitPolicy::Auto(AutoCommit {
        interval: auto.interval.map_or(default.interval, micros),
        every: match auto.every {
            None => default.every,
            Some(Every::Messages(0)) => None,
            Some(Every::Messages(count)) => Some(CommitEvery::Messages(count)),
            Some(Every::Unit(EveryUnit::Message)) => Some(CommitEvery::Message),
            Some(Every::Unit(EveryUnit::Batch)) => Some(CommitEvery::Batch),
        },
        after: match auto.after {
            None | Some(After::Processing) => CommitAfter::Processing,
            Some(After::Delivery) => CommitAfter::Delivery,
            Some(After::Marked) => CommitAfter::Marked,
        },
    })
}

impl PollSettings {
    fn apply(self, mut options: PollOptions) -> PollOptions {
        options.count = self.count.unwrap_or(options.count);
        options.max_wait = self.max_wait.map_or(options.max_wait, micros);
        options.min_count = self.min_count.unwrap_or(options.min_count);
        options.max_bytes = self.max_bytes.unwrap_or(options.max_bytes);
        options.commit = self.commit.map_or(options.commit, commit_policy);
        options
    }
}

/// The limits and the commit policy of one read.
///
/// # Errors
/// Members that are unknown or of the wrong kind. Limits that make no sense are refused by the read itself.
pub fn poll_options(settings: Value) -> Result<PollOptions, Failure> {
    let settings: PollSettings = read("poll options", settings)?;
    Ok(settings.apply(PollOptions::default()))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Direct {
    batch_length: Option<u32>,
    linger_time: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Background {
    num_shards: Option<usize>,
    sharding: Option<ShardingName>,
    batch_size: Option<usize>,
    batch_length: Option<usize>,
    linger_time: Option<u64>,
    max_buffer_size: Option<usize>,
    failure_mode: Option<FailureMode>,
    max_in_flight: Option<usize>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum ShardingName {
    Ordered,
    Balanced,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum FailureMode {
    Block,
    BlockWithTimeout(u64),
    FailImmediately,
}

impl Background {
    fn config(self, callback: Option<ErrorCallback>) -> BackgroundConfig {
        let default = BackgroundConfig::default();
        BackgroundConfig {
            num_shards: self.num_shards.unwrap_or(default.num_shards),
            sharding: match self.sharding {
                None | Some(ShardingName::Ordered) => Sharding::Ordered,
                Some(ShardingName::Balanced) => Sharding::Balanced,
            },
            batch_size: self.batch_size.unwrap_or(default.batch_size),
            batch_length: self.batch_length.unwrap_or(default.batch_length),
            linger_time: self.linger_time.map_or(default.linger_time, micros),
            max_buffer_size: self.max_buffer_size.unwrap_or(default.max_buffer_size),
            failure_mode: match self.failure_mode {
                None | Some(FailureMode::Block) => BackpressureMode::Block,
                Some(FailureMode::BlockWithTimeout(limit)) => BackpressureMode::BlockWithTimeout(micros(limit)),
                Some(FailureMode::FailImmediately) => BackpressureMode::FailImmediately,
            },
            max_in_flight: self.max_in_flight.unwrap_or(default.max_in_flight),
            error_callback: callback.unwrap_or(default.error_callback),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CreateTopic {
    partitions_count: Option<u32>,
    /// 0 for never.
    message_expiry: Option<u64>,
    /// 0 for unlimited.
    max_topic_size: Option<u64>,
    durability: Option<DurabilityName>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum DurabilityName {
    Replicated,
    Persisted,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProducerSettings {
    partitioning: Option<Value>,
    create_stream: Option<bool>,
    /// `false`, or how the topic is created.
    create_topic: Option<CreateTopicSetting>,
    idempotent: Option<bool>,
    direct: Option<Direct>,
    background: Option<Background>,
    encryption: Option<Encryption>,
    without_encryption: Option<bool>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum CreateTopicSetting {
    Wanted(bool),
    With(CreateTopic),
}

/// What a language gives to a producer that JSON cannot hold.
#[derive(Default)]
pub struct ProducerHooks {
    /// Chooses the partition of every send.
    pub partitioner: Option<Arc<dyn Partitioner>>,
    /// Gets each background send that failed.
    pub error_callback: Option<ErrorCallback>,
}

/// A producer; it starts with `init`. Call it inside the runtime: see [`crate::call::enter`].
///
/// # Errors
/// Settings that are unknown, malformed or contradict each other.
pub fn producer(
    client: &IggyClient,
    stream: &str,
    topic: &str,
    settings: Value,
    hooks: ProducerHooks,
) -> Result<IggyProducer, Failure> {
    let settings: ProducerSettings = read("settings of a producer", settings)?;
    let mut builder = client.producer(stream, topic)?;
    if let Some(setting) = settings.partitioning {
        builder = builder.partitioning(partitioning(setting)?);
    }
    if let Some(partitioner) = hooks.partitioner {
        builder = builder.partitioner(partitioner);
    }
    if settings.create_stream == Some(false) {
        builder = builder.do_not_create_stream_if_not_exists();
    }
    match settings.create_topic {
        None | Some(CreateTopicSetting::Wanted(true)) => {}
        Some(CreateTopicSetting::Wanted(false)) => builder = builder.do_not_create_topic_if_not_exists(),
        Some(CreateTopicSetting::With(topic)) => {
            let durability = topic.durability.unwrap_or(DurabilityName::Replicated);
            builder = builder.topic_durability(match durability {
                DurabilityName::Replicated => Durability::Replicated,
                DurabilityName::Persisted => Durability::Persisted,
            });
            let expiry = match topic.message_expiry {
                None => IggyExpiry::ServerDefault,
                Some(0) => IggyExpiry::NeverExpire,
                Some(time) => IggyExpiry::ExpireDuration(micros(time)),
            };
            let size = match topic.max_topic_size {
                None => MaxTopicSize::ServerDefault,
                Some(0) => MaxTopicSize::Unlimited,
                Some(bytes) => MaxTopicSize::Custom(IggyByteSize::from_bytes(bytes)),
            };
            builder = builder.create_topic_if_not_exists(topic.partitions_count.unwrap_or(1), expiry, size);
        }
    }
    if settings.idempotent == Some(true) {
        builder = builder.idempotent();
    }
    match (settings.direct, settings.background) {
        (Some(_), Some(_)) => {
            return Err(invalid(
                "a producer is direct or in the background, not both".to_owned(),
            ));
        }
        (Some(direct), None) => {
            let default = DirectConfig::default();
            builder = builder.direct(DirectConfig {
                batch_length: direct.batch_length.unwrap_or(default.batch_length),
                linger_time: direct.linger_time.map_or(default.linger_time, micros),
            });
        }
        (None, Some(background)) => builder = builder.background(background.config(hooks.error_callback)),
        (None, None) => {}
    }
    if let Some(encryption) = &settings.encryption {
        builder = builder.encryptor(encryption.encryptor()?);
    }
    if settings.without_encryption == Some(true) {
        builder = builder.without_encryptor();
    }
    Ok(builder.build())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Retries {
    count: u32,
    interval: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConsumerSettings {
    partitions: Option<Vec<u32>>,
    start: Option<Value>,
    poll_options: Option<PollSettings>,
    prefetch_bytes: Option<usize>,
    prefetch_messages: Option<usize>,
    create_consumer_group: Option<bool>,
    polling_retry_interval: Option<u64>,
    init_retries: Option<Retries>,
    allow_replay: Option<bool>,
    offset_drain_timeout: Option<u64>,
    encryption: Option<Encryption>,
    without_encryption: Option<bool>,
}

/// Limits of consumers and readers before anybody sets any: they wait up to 5 s.
fn waiting() -> PollOptions {
    PollOptions::wait(IggyDuration::from_secs(5))
}

/// A consumer of its own, or a member of a group; it starts with `init`.
///
/// # Errors
/// Settings that are unknown or malformed. What contradicts each other is refused by `init`.
pub fn consumer(
    client: &IggyClient,
    name: &str,
    stream: &str,
    topic: &str,
    is_group: bool,
    settings: Value,
) -> Result<IggyConsumer, Failure> {
    let settings: ConsumerSettings = read("settings of a consumer", settings)?;
    let mut builder = if is_group {
        client.consumer_group(name, stream, topic)?
    } else {
        client.consumer(name, stream, topic)?
    };
    if let Some(partitions) = settings.partitions {
        builder = builder.partitions(partitions);
    }
    if let Some(start) = settings.start {
        builder = builder.polling_strategy(strategy(start)?);
    }
    if let Some(options) = settings.poll_options {
        builder = builder.poll_options(options.apply(waiting()));
    }
    if let Some(bytes) = settings.prefetch_bytes {
        builder = builder.prefetch_bytes(bytes);
    }
    if let Some(messages) = settings.prefetch_messages {
        builder = builder.prefetch_messages(messages);
    }
    if settings.create_consumer_group == Some(false) {
        builder = builder.do_not_create_consumer_group_if_not_exists();
    }
    if let Some(interval) = settings.polling_retry_interval {
        builder = builder.polling_retry_interval(micros(interval));
    }
    if let Some(retries) = settings.init_retries {
        builder = builder.init_retries(retries.count, micros(retries.interval.unwrap_or(1_000_000)));
    }
    if settings.allow_replay == Some(true) {
        builder = builder.allow_replay();
    }
    if let Some(timeout) = settings.offset_drain_timeout {
        builder = builder.offset_drain_timeout(micros(timeout));
    }
    if let Some(encryption) = &settings.encryption {
        builder = builder.encryptor(encryption.encryptor()?);
    }
    if settings.without_encryption == Some(true) {
        builder = builder.without_encryptor();
    }
    Ok(builder.build())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReaderSettings {
    partitions: Vec<u32>,
    start: Option<Value>,
    options: Option<PollSettings>,
    prefetch_bytes: Option<usize>,
    prefetch_messages: Option<usize>,
}

/// What builds a reader.
///
/// # Errors
/// Settings that are unknown or malformed.
pub fn reader(
    client: &IggyClient,
    stream: &Identifier,
    topic: &Identifier,
    consumer: &Consumer,
    settings: Value,
) -> Result<ReaderBuilder, Failure> {
    let settings: ReaderSettings = read("settings of a reader", settings)?;
    let mut builder = client.reader(stream, topic, consumer).partitions(settings.partitions);
    if let Some(start) = settings.start {
        builder = builder.start(ReadStart::from(strategy(start)?));
    }
    if let Some(options) = settings.options {
        builder = builder.options(options.apply(waiting()));
    }
    if let Some(bytes) = settings.prefetch_bytes {
        builder = builder.prefetch_bytes(bytes);
    }
    if let Some(messages) = settings.prefetch_messages {
        builder = builder.prefetch_messages(messages);
    }
    Ok(builder)
}
