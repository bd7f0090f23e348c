//! Streams, topics, partitions and segments.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand, ValueEnum};
use iggy_protocol::Identifier;

use super::value::parse_id;

/// Partitions of one request.
const PARTITIONS_MAX: i64 = 1000;

/// How lists are printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ListMode {
    /// One row each.
    #[default]
    Table,
    /// One block of lines each.
    List,
}

/// One `KEY=VALUE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The option.
    pub key: String,
    /// Its value as text.
    pub value: String,
}

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((key, value)) if !key.is_empty() && !value.is_empty() => Ok(Self {
                key: key.to_owned(),
                value: value.to_owned(),
            }),
            _ => Err("allowed: KEY=VALUE, both not empty; `iggy options` lists the keys".to_owned()),
        }
    }
}

/// Commands on streams.
#[derive(Debug, Subcommand)]
pub enum StreamCommand {
    /// Create a stream
    #[command(visible_alias = "c")]
    Create {
        /// Name, 1 to 255 bytes
        name: String,
        /// Accepted and not used: the server chooses ids
        #[arg(short, long, value_name = "ID")]
        stream_id: Option<u32>,
        /// File with the key that the server seals this stream's messages with: base64 of 32 bytes
        #[arg(long, value_name = "FILE")]
        stream_key_file: Option<PathBuf>,
    },
    /// Delete a stream with everything in it
    #[command(visible_alias = "d")]
    Delete {
        /// Id or name
        #[arg(value_parser = parse_id)]
        stream: Identifier,
    },
    /// Change a stream
    #[command(visible_alias = "u")]
    Update {
        /// Id or name
        #[arg(value_parser = parse_id)]
        stream: Identifier,
        /// New name
        #[arg(short, long)]
        name: Option<String>,
        /// Set an option; may be repeated
        #[arg(long, value_name = "KEY=VALUE")]
        set: Vec<Setting>,
        /// Give an option back its default; may be repeated
        #[arg(short, long, value_name = "KEY")]
        reset: Vec<String>,
    },
    /// Show a stream and its topics
    #[command(visible_alias = "g")]
    Get {
        /// Id or name
        #[arg(value_parser = parse_id)]
        stream: Identifier,
    },
    /// List streams
    #[command(visible_alias = "l")]
    List {
        /// Form of the output
        #[arg(short, long, value_enum, default_value_t)]
        list_mode: ListMode,
    },
}

/// What a topic is created with.
#[derive(Debug, Args)]
pub struct TopicCreateArguments {
    /// Id or name of the stream
    #[arg(value_parser = parse_id)]
    pub stream: Identifier,
    /// Name, 1 to 255 bytes
    pub name: String,
    /// Partitions, 1 to 1000
    #[arg(value_parser = clap::value_parser!(u32).range(1..=PARTITIONS_MAX))]
    pub partitions: u32,
    /// Compression: none or gzip; gzip is stored and shown and not applied yet
    #[arg(value_parser = ["none", "gzip"])]
    pub compression: String,
    /// Age at which messages may be deleted, as `1day 2h`, none or `server_default`
    #[arg(value_name = "EXPIRY")]
    pub expiry: Vec<String>,
    /// Accepted and not used: the server chooses ids
    #[arg(short, long, value_name = "ID")]
    pub topic_id: Option<u32>,
    /// Size at which old messages are deleted, as 10GiB, unlimited or `server_default`
    #[arg(short, long, value_name = "SIZE", default_value = "server_default")]
    pub max_topic_size: String,
    /// When a send is acknowledged
    #[arg(long, value_parser = ["replicated", "persisted"])]
    pub durability: Option<String>,
    /// When a stored consumer offset is acknowledged
    #[arg(long, value_parser = ["replicated", "persisted"])]
    pub consumer_offset_durability: Option<String>,
    /// Set an option; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<Setting>,
}

/// Commands on topics.
#[derive(Debug, Subcommand)]
pub enum TopicCommand {
    /// Create a topic
    #[command(visible_alias = "c")]
    Create(TopicCreateArguments),
    /// Delete a topic with everything in it
    #[command(visible_alias = "d")]
    Delete {
        /// Id or name of the stream
        #[arg(value_parser = parse_id)]
        stream: Identifier,
        /// Id or name of the topic
        #[arg(value_parser = parse_id)]
        topic: Identifier,
    },
    /// Change a topic
    #[command(visible_alias = "u")]
    Update {
        /// Id or name of the stream
        #[arg(value_parser = parse_id)]
        stream: Identifier,
        /// Id or name of the topic
        #[arg(value_parser = parse_id)]
        topic: Identifier,
        /// New name
        #[arg(short, long)]
        name: Option<String>,
        /// Size at which old messages are deleted, as 10GiB or unlimited
        #[arg(short, long, value_name = "SIZE")]
        max_topic_size: Option<String>,
        /// Age at which messages may be deleted, as `1day 2h` or none
        #[arg(short = 'e', long, value_name = "EXPIRY", num_args = 1..)]
        message_expiry: Vec<String>,
        /// Set an option; may be repeated
        #[arg(long, value_name = "KEY=VALUE")]
        set: Vec<Setting>,
        /// Give an option back its default; may be repeated
        #[arg(short, long, value_name = "KEY")]
        reset: Vec<String>,
    },
    /// Show a topic and its partitions
    #[command(visible_alias = "g")]
    Get {
        /// Id or name of the stream
        #[arg(value_parser = parse_id)]
        stream: Identifier,
        /// Id or name of the topic
        #[arg(value_parser = parse_id)]
        topic: Identifier,
    },
    /// List the topics of a stream
    #[command(visible_alias = "l")]
    List {
        /// Id or name of the stream
        #[arg(value_parser = parse_id)]
        stream: Identifier,
        /// Form of the output
        #[arg(short, long, value_enum, default_value_t)]
        list_mode: ListMode,
    },
}

/// Commands on partitions.
#[derive(Debug, Subcommand)]
pub enum PartitionCommand {
    /// Add partitions to a topic
    #[command(visible_alias = "c")]
    Create {
        /// Id or name of the stream
        #[arg(value_parser = parse_id)]
        stream: Identifier,
        /// Id or name of the topic
        #[arg(value_parser = parse_id)]
        topic: Identifier,
        /// How many, 1 to 1000
        #[arg(value_parser = clap::value_parser!(u32).range(1..=PARTITIONS_MAX))]
        count: u32,
    },
    /// Remove the partitions with the highest ids, with their messages
    #[command(visible_alias = "d")]
    Delete {
        /// Id or name of the stream
        #[arg(value_parser = parse_id)]
        stream: Identifier,
        /// Id or name of the topic
        #[arg(value_parser = parse_id)]
        topic: Identifier,
        /// How many, 1 to 1000
        #[arg(value_parser = clap::value_parser!(u32).range(1..=PARTITIONS_MAX))]
        count: u32,
    },
}

/// Commands on segments.
#[derive(Debug, Subcommand)]
pub enum SegmentCommand {
    /// Delete the oldest sealed segments of a partition
    #[command(visible_alias = "d")]
    Delete {
        /// Id or name of the stream
        #[arg(value_parser = parse_id)]
        stream: Identifier,
        /// Id or name of the topic
        #[arg(value_parser = parse_id)]
        topic: Identifier,
        /// Partition
        partition: u32,
        /// How many, at least 1
        #[arg(value_parser = clap::value_parser!(u32).range(1..))]
        count: u32,
    },
}
