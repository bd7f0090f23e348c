//! What can be said about a stream, topic or user when it is created or changed, typed.

use std::collections::BTreeMap;

use iggy_protocol::limits::{NEVER, UNLIMITED};
use iggy_protocol::{Durability, IggyByteSize, IggyDuration, Name, Options, TypedValue};

use crate::error::IggyError;

/// When messages may be removed for their age.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum IggyExpiry {
    /// As the server is configured.
    #[default]
    ServerDefault,
    /// After this time.
    ExpireDuration(IggyDuration),
    /// Never.
    NeverExpire,
}

impl IggyExpiry {
    /// The value on the wire, in microseconds.
    pub fn as_micros(self) -> u64 {
        match self {
            Self::ServerDefault => 0,
            Self::ExpireDuration(duration) => duration.as_micros(),
            Self::NeverExpire => NEVER,
        }
    }
}

/// When messages may be removed for the size of their topic.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MaxTopicSize {
    /// As the server is configured.
    #[default]
    ServerDefault,
    /// Above this size.
    Custom(IggyByteSize),
    /// Never.
    Unlimited,
}

impl MaxTopicSize {
    /// The value on the wire, in bytes.
    pub fn as_bytes(self) -> u64 {
        match self {
            Self::ServerDefault => 0,
            Self::Custom(size) => size.as_bytes_u64(),
            Self::Unlimited => UNLIMITED,
        }
    }
}

/// Whether partitions may be added and removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PartitionResizePolicy {
    /// They may.
    #[default]
    Mutable,
    /// They may not.
    Fixed,
}

/// How messages are shown as compressed; the server stores and shows it, nothing more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CompressionAlgorithm {
    /// Not compressed.
    #[default]
    None,
    /// As gzip.
    Gzip,
}

/// Further options as text, for the server to convert: `("message_expiry", "7 days")`.
pub type RawOptions = BTreeMap<String, String>;

fn text(value: &str) -> Result<TypedValue, IggyError> {
    Ok(TypedValue::string(value)?)
}

fn put(options: &mut Options, key: &str, value: TypedValue) -> Result<(), IggyError> {
    options.insert(Name::new(key)?, value);
    Ok(())
}

fn put_raw(options: &mut Options, raw: &RawOptions) -> Result<(), IggyError> {
    for (key, value) in raw {
        put(options, key, text(value)?)?;
    }
    Ok(options.check_limits()?)
}

fn reset_names(keys: &[String]) -> Result<Vec<Name>, IggyError> {
    keys.iter().map(|key| Ok(Name::new(key)?)).collect()
}

/// Settings of a new stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StreamCreateOptions {
    /// A key of the stream's own for messages at rest: 32 bytes. The server needs a key of its own to keep it.
    pub encryption_key: Option<[u8; 32]>,
    /// Further options as text.
    pub raw: RawOptions,
}

impl StreamCreateOptions {
    pub(crate) fn encode(&self) -> Result<Options, IggyError> {
        let mut options = Options::new();
        if let Some(key) = &self.encryption_key {
            put(&mut options, "encryption_key", TypedValue::raw(key)?)?;
        }
        put_raw(&mut options, &self.raw)?;
        Ok(options)
    }
}

/// Settings of a new topic.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TopicCreateOptions {
    /// Partitions it starts with: 1..=1000. Default 1.
    pub partitions_count: Option<u32>,
    /// Nodes that store each partition: 1..=32. Default as the server is configured.
    pub replication_factor: Option<u32>,
    /// When sends are acknowledged.
    pub durability: Durability,
    /// When consumer offsets are acknowledged.
    pub consumer_offset_durability: Durability,
    /// When messages may be removed for their age.
    pub message_expiry: Option<IggyExpiry>,
    /// When messages may be removed for the size of the topic.
    pub max_topic_size: Option<MaxTopicSize>,
    /// Bytes of a segment: a multiple of 512 in 1048576..=1073741824.
    pub segment_size: Option<IggyByteSize>,
    /// How messages are shown as compressed.
    pub compression_algorithm: Option<CompressionAlgorithm>,
    /// Whether partitions may be added and removed.
    pub partition_resize_policy: Option<PartitionResizePolicy>,
    /// Messages after which a partition writes to disk: 1..=16777216.
    pub messages_required_to_save: Option<u32>,
    /// Bytes after which a partition writes to disk: at most 1073741824.
    pub size_of_messages_required_to_save: Option<IggyByteSize>,
    /// Whether disk space is reserved for segments.
    pub preallocate_segments: Option<bool>,
    /// Further options as text.
    pub raw: RawOptions,
}

impl TopicCreateOptions {
    pub(crate) fn encode(&self) -> Result<Options, IggyError> {
        let mut options = Options::new();
        put(&mut options, "durability", text(self.durability.as_str())?)?;
        put(
            &mut options,
            "consumer_offset_durability",
            text(self.consumer_offset_durability.as_str())?,
        )?;
        let numbers = [
            ("message_expiry", self.message_expiry.map(IggyExpiry::as_micros)),
            ("max_topic_size", self.max_topic_size.map(MaxTopicSize::as_bytes)),
            ("segment_size", self.segment_size.map(IggyByteSize::as_bytes_u64)),
            (
                "size_of_messages_required_to_save",
                self.size_of_messages_required_to_save.map(IggyByteSize::as_bytes_u64),
            ),
        ];
        for (key, value) in numbers {
            if let Some(value) = value {
                put(&mut options, key, TypedValue::uint64(value))?;
            }
        }
        let counts = [
            ("replication_factor", self.replication_factor),
            ("messages_required_to_save", self.messages_required_to_save),
        ];
        for (key, value) in counts {
            if let Some(value) = value {
                put(&mut options, key, TypedValue::uint32(value))?;
            }
        }
        if let Some(algorithm) = self.compression_algorithm {
            let name = if algorithm == CompressionAlgorithm::Gzip {
                "gzip"
            } else {
                "none"
            };
            put(&mut options, "compression_algorithm", text(name)?)?;
        }
        if let Some(policy) = self.partition_resize_policy {
            let name = if policy == PartitionResizePolicy::Fixed {
                "fixed"
            } else {
                "mutable"
            };
            put(&mut options, "partition_resize_policy", text(name)?)?;
        }
        if let Some(flag) = self.preallocate_segments {
            put(&mut options, "preallocate_segments", TypedValue::bool(flag))?;
        }
        put_raw(&mut options, &self.raw)?;
        Ok(options)
    }
}

/// What changes about a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StreamUpdateOptions {
    /// A new name.
    pub name: Option<String>,
    /// Further options as text.
    pub raw: RawOptions,
    /// Keys that return to their defaults; at most 255.
    pub reset: Vec<String>,
}

impl StreamUpdateOptions {
    pub(crate) fn encode(&self) -> Result<(Options, Vec<Name>), IggyError> {
        let mut options = Options::new();
        if let Some(name) = &self.name {
            put(&mut options, "name", text(name)?)?;
        }
        put_raw(&mut options, &self.raw)?;
        Ok((options, reset_names(&self.reset)?))
    }
}

/// What changes about a topic.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TopicUpdateOptions {
    /// A new name.
    pub name: Option<String>,
    /// When messages may be removed for their age.
    pub message_expiry: Option<IggyExpiry>,
    /// When messages may be removed for the size of the topic.
    pub max_topic_size: Option<MaxTopicSize>,
    /// Further options as text.
    pub raw: RawOptions,
    /// Keys that return to their defaults; at most 255.
    pub reset: Vec<String>,
}

impl TopicUpdateOptions {
    pub(crate) fn encode(&self) -> Result<(Options, Vec<Name>), IggyError> {
        let mut options = Options::new();
        if let Some(name) = &self.name {
            put(&mut options, "name", text(name)?)?;
        }
        if let Some(expiry) = self.message_expiry {
            put(&mut options, "message_expiry", TypedValue::uint64(expiry.as_micros()))?;
        }
        if let Some(size) = self.max_topic_size {
            put(&mut options, "max_topic_size", TypedValue::uint64(size.as_bytes()))?;
        }
        put_raw(&mut options, &self.raw)?;
        Ok((options, reset_names(&self.reset)?))
    }
}

/// Whether a user may sign in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UserStatus {
    /// It may.
    #[default]
    Active,
    /// It may not.
    Inactive,
}

impl UserStatus {
    /// The byte on the wire.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Active => iggy_protocol::reply::user::USER_ACTIVE,
            Self::Inactive => iggy_protocol::reply::user::USER_INACTIVE,
        }
    }

    /// The option value.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Inactive => "inactive",
        }
    }
}

/// Settings of a new user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserCreateOptions {
    /// Whether it may sign in.
    pub status: UserStatus,
    /// What it may do.
    pub permissions: Option<iggy_protocol::Permissions>,
    /// Further options as text.
    pub raw: RawOptions,
}

impl UserCreateOptions {
    pub(crate) fn encode(&self) -> Result<Options, IggyError> {
        let mut options = Options::new();
        put_raw(&mut options, &self.raw)?;
        Ok(options)
    }
}

/// What changes about a user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserUpdateOptions {
    /// A new name, 3..=50 bytes.
    pub username: Option<String>,
    /// Whether it may sign in. Deactivation ends its sessions.
    pub status: Option<UserStatus>,
    /// Further options as text.
    pub raw: RawOptions,
    /// Keys that return to their defaults; at most 255.
    pub reset: Vec<String>,
}

impl UserUpdateOptions {
    pub(crate) fn encode(&self) -> Result<(Options, Vec<Name>), IggyError> {
        let mut options = Options::new();
        if let Some(name) = &self.username {
            put(&mut options, "username", text(name)?)?;
        }
        if let Some(status) = self.status {
            put(&mut options, "status", text(status.as_str())?)?;
        }
        put_raw(&mut options, &self.raw)?;
        Ok((options, reset_names(&self.reset)?))
    }
}
