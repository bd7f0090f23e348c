//! What the options of a topic amount to: every setting with its default filled in.

use crate::error_code::ErrorCode;
use crate::limits::{NEVER, UNLIMITED};
use crate::option_catalog::{OptionError, Scope};
use crate::options::Options;

/// When something is acknowledged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// In the memory of a quorum.
    #[default]
    Replicated,
    /// On the disks of a quorum.
    Persisted,
}

impl Durability {
    /// The option value.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Replicated => "replicated",
            Self::Persisted => "persisted",
        }
    }
}

/// The settings of a topic, defaults filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicSettings {
    /// Whether messages are shown as compressed; stored and shown only.
    pub gzip: bool,
    /// Age in microseconds after which messages may be removed; 2^64-1 is never.
    pub message_expiry: u64,
    /// Bytes above which the oldest segments are removed; 2^64-1 is unlimited.
    pub max_topic_size: u64,
    /// Bytes of a segment.
    pub segment_size: u64,
    /// When sends are acknowledged.
    pub durability: Durability,
    /// When consumer offsets are acknowledged.
    pub consumer_offset_durability: Durability,
    /// Whether partitions can be neither added nor removed.
    pub fixed_partitions: bool,
    /// Messages after which a partition writes to disk.
    pub messages_required_to_save: u32,
    /// Bytes after which a partition writes to disk.
    pub size_of_messages_required_to_save: u64,
    /// Whether disk space is reserved for segments.
    pub preallocate_segments: bool,
    /// Nodes that store each partition; `None` when the server decides.
    pub replication_factor: Option<u32>,
}

impl Default for TopicSettings {
    fn default() -> Self {
        Self::from_options(&Options::new())
    }
}

/// Most bytes one created topic may preallocate.
pub const MAX_PREALLOCATION: u64 = 64 << 30;

impl TopicSettings {
    /// Reads canonical options; what is missing takes its default.
    pub fn from_options(options: &Options) -> Self {
        let text = |key| options.get(key).and_then(|value| value.as_str().ok());
        let wide = |key, default| {
            options
                .get(key)
                .and_then(|value| value.as_uint64().ok())
                .unwrap_or(default)
        };
        let narrow = |key| options.get(key).and_then(|value| value.as_uint32().ok());
        let durability = |key| {
            if text(key) == Some("persisted") {
                Durability::Persisted
            } else {
                Durability::Replicated
            }
        };
        Self {
            gzip: text("compression_algorithm") == Some("gzip"),
            message_expiry: wide("message_expiry", NEVER),
            max_topic_size: wide("max_topic_size", UNLIMITED),
            segment_size: wide("segment_size", 1_073_741_824),
            durability: durability("durability"),
            consumer_offset_durability: durability("consumer_offset_durability"),
            fixed_partitions: text("partition_resize_policy") == Some("fixed"),
            messages_required_to_save: narrow("messages_required_to_save").unwrap_or(1024),
            size_of_messages_required_to_save: wide("size_of_messages_required_to_save", 1_048_576),
            preallocate_segments: options
                .get("preallocate_segments")
                .and_then(|value| value.as_bool().ok())
                .unwrap_or(false),
            replication_factor: narrow("replication_factor"),
        }
    }

    /// Checks the rules between settings: a finite topic size is at least a segment, and preallocation of
    /// `partitions_count` partitions stays within 64 GiB.
    pub fn validate(&self, partitions_count: u32) -> Result<(), OptionError> {
        let refuse = |key, reason: String| {
            Err(OptionError::new(
                Scope::Topic,
                key,
                ErrorCode::InvalidOptionValue,
                reason,
            ))
        };
        if self.max_topic_size < self.segment_size {
            return refuse(
                "max_topic_size",
                format!(
                    "must be unlimited or at least segment_size, {} bytes",
                    self.segment_size
                ),
            );
        }
        let reserved = self.segment_size.saturating_mul(u64::from(partitions_count));
        if self.preallocate_segments && reserved > MAX_PREALLOCATION {
            return refuse(
                "preallocate_segments",
                format!("would reserve {reserved} bytes, at most {MAX_PREALLOCATION} are allowed"),
            );
        }
        Ok(())
    }
}
