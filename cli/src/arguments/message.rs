//! Messages, consumer offsets and consumer groups.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use iggy_protocol::{ConsumerKind, Identifier};

use super::resource::ListMode;
use super::value::{HeaderArgument, parse_id, parse_time};

/// Commands on messages.
#[derive(Debug, Subcommand)]
pub enum MessageCommand {
    /// Send messages: from the command line, from a file, or from standard input
    #[command(visible_alias = "s")]
    Send(SendArguments),
    /// Read messages of one partition
    #[command(visible_alias = "p")]
    Poll(PollArguments),
}

/// Where messages come from and where they go.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("source").args(["messages", "lines", "input_file"])))]
pub struct SendArguments {
    /// Id or name of the stream
    #[arg(value_parser = parse_id)]
    pub stream: Identifier,
    /// Id or name of the topic
    #[arg(value_parser = parse_id)]
    pub topic: Identifier,
    /// Payloads; without any, and without --lines and --input-file, each line of standard input is one
    pub messages: Vec<String>,
    /// Send to this partition; without it and without --message-key batches go to the partitions in turn
    #[arg(short, long, value_name = "PARTITION", conflicts_with = "message_key")]
    pub partition_id: Option<u32>,
    /// Choose the partition by this key: the same key is always the same partition
    #[arg(short, long, value_name = "KEY")]
    pub message_key: Option<String>,
    /// Headers of every message: KEY:KIND:VALUE, separated by commas
    #[arg(short = 'H', long, value_name = "HEADERS", value_delimiter = ',')]
    pub headers: Vec<HeaderArgument>,
    /// Each line of this file is one message; - is standard input
    #[arg(long, value_name = "FILE")]
    pub lines: Option<PathBuf>,
    /// With lines: the end of the line belongs to the message, so that the payloads put together are the file
    #[arg(long)]
    pub keep_line_ends: bool,
    /// Send the messages of this file, one JSON object per line, as `message poll --output-file` writes them; - is
    /// standard input
    #[arg(long, value_name = "FILE")]
    pub input_file: Option<PathBuf>,
    /// Messages per request, 1 to 100000
    #[arg(long, default_value_t = 1000, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub batch_length: u32,
}

/// Where to read, how much, and what to do with it.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("start").args(["offset", "first", "last", "next", "timestamp"])))]
#[command(group(ArgGroup::new("form").args(["raw", "show_headers"])))]
pub struct PollArguments {
    /// Id or name of the stream
    #[arg(value_parser = parse_id)]
    pub stream: Identifier,
    /// Id or name of the topic
    #[arg(value_parser = parse_id)]
    pub topic: Identifier,
    /// Partition
    pub partition: u32,
    /// Most messages to read; with --all and --follow, of one request
    #[arg(short, long, value_name = "COUNT", default_value_t = 1, default_value_ifs = [("all", "true", "1000"), ("follow", "true", "1000")], value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub message_count: u32,
    /// Store the offset of the last message read, so that --next goes on after it
    #[arg(short, long)]
    pub auto_commit: bool,
    /// Start at this offset
    #[arg(short, long)]
    pub offset: Option<u64>,
    /// Start at the oldest message
    #[arg(short, long)]
    pub first: bool,
    /// The newest messages
    #[arg(short, long)]
    pub last: bool,
    /// Start after the consumer's stored offset [default]
    #[arg(short, long)]
    pub next: bool,
    /// Start at the first message of this time: RFC 3339, microseconds since the epoch, or a time ago such as 5m
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    pub timestamp: Option<Moment>,
    /// Consumer whose offset --next and --auto-commit use
    #[arg(short, long, default_value = "iggy-cli", value_parser = parse_id)]
    pub consumer: Identifier,
    /// Show the headers of messages
    #[arg(short, long)]
    pub show_headers: bool,
    /// Print payloads as they are, with nothing before, between or after them
    #[arg(long, conflicts_with = "json")]
    pub raw: bool,
    /// Read on until there is no more
    #[arg(long, conflicts_with_all = ["follow", "last"])]
    pub all: bool,
    /// Read on and wait for more until interrupted
    #[arg(long)]
    pub follow: bool,
    /// Wait up to this long for the first message, 0s to 10m
    #[arg(long, value_name = "TIME", value_parser = parse_wait)]
    pub wait: Option<Duration>,
    /// Write the messages to this file, one JSON object per line, instead of printing them
    #[arg(long, value_name = "FILE", conflicts_with = "form")]
    pub output_file: Option<PathBuf>,
}

/// A point in time, or a distance back from now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Microseconds since the epoch.
    At(u64),
    /// This long ago.
    Ago(Duration),
}

fn parse_moment(text: &str) -> Result<Moment, String> {
    if let Ok(micros) = text.parse() {
        return Ok(Moment::At(micros));
    }
    if let Ok(time) = humantime::parse_rfc3339_weak(text) {
        let since_epoch = time
            .duration_since(std::time::UNIX_EPOCH)
            .map_err(|_| "before 1970".to_owned())?;
        return u64::try_from(since_epoch.as_micros())
            .map(Moment::At)
            .map_err(|_| "too far in the future".to_owned());
    }
    parse_time(text)
        .map(Moment::Ago)
        .map_err(|_| "allowed: 2026-01-31T12:00:00Z, microseconds since the epoch, or a time ago such as 5m".to_owned())
}

fn parse_wait(text: &str) -> Result<Duration, String> {
    let wait = parse_time(text)?;
    if wait > Duration::from_mins(10) {
        Err("allowed: at most 10m".to_owned())
    } else {
        Ok(wait)
    }
}

/// Kind of consumer of an offset.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ConsumerKindArgument {
    /// A plain consumer.
    #[default]
    #[value(alias = "c")]
    Consumer,
    /// A consumer group; only its members may read and set its offsets.
    #[value(alias = "cg")]
    ConsumerGroup,
    /// A group whose members someone else keeps.
    #[value(alias = "eg")]
    ExternalGroup,
}

impl From<ConsumerKindArgument> for ConsumerKind {
    fn from(kind: ConsumerKindArgument) -> Self {
        match kind {
            ConsumerKindArgument::Consumer => Self::Consumer,
            ConsumerKindArgument::ConsumerGroup => Self::Group,
            ConsumerKindArgument::ExternalGroup => Self::External,
        }
    }
}

/// Commands on consumer offsets.
#[derive(Debug, Subcommand)]
pub enum ConsumerOffsetCommand {
    /// Show how far a consumer has read a partition
    #[command(visible_alias = "g")]
    Get {
        /// Id or name of the consumer
        #[arg(value_parser = parse_id)]
        consumer: Identifier,
        /// Id or name of the stream
        #[arg(value_parser = parse_id)]
        stream: Identifier,
        /// Id or name of the topic
        #[arg(value_parser = parse_id)]
        topic: Identifier,
        /// Partition
        partition: u32,
        /// Kind of the consumer
        #[arg(short, long, value_enum, default_value_t)]
        kind: ConsumerKindArgument,
    },
    /// Set how far a consumer has read a partition
    #[command(visible_alias = "s")]
    Set {
        /// Id or name of the consumer
        #[arg(value_parser = parse_id)]
        consumer: Identifier,
        /// Id or name of the stream
        #[arg(value_parser = parse_id)]
        stream: Identifier,
        /// Id or name of the topic
        #[arg(value_parser = parse_id)]
        topic: Identifier,
        /// Partition
        partition: u32,
        /// Offset of the last message read
        offset: u64,
        /// Kind of the consumer
        #[arg(short, long, value_enum, default_value_t)]
        kind: ConsumerKindArgument,
    },
}

/// Commands on consumer groups.
#[derive(Debug, Subcommand)]
pub enum ConsumerGroupCommand {
    /// Create a consumer group
    #[command(visible_alias = "c")]
    Create {
        /// Id or name of the stream
        #[arg(value_parser = parse_id)]
        stream: Identifier,
        /// Id or name of the topic
        #[arg(value_parser = parse_id)]
        topic: Identifier,
        /// Name, 1 to 255 bytes
        name: String,
    },
    /// Delete a consumer group with its offsets
    #[command(visible_alias = "d")]
    Delete {
        /// Id or name of the stream
        #[arg(value_parser = parse_id)]
        stream: Identifier,
        /// Id or name of the topic
        #[arg(value_parser = parse_id)]
        topic: Identifier,
        /// Id or name of the group
        #[arg(value_parser = parse_id)]
        group: Identifier,
    },
    /// Show a consumer group and its members
    #[command(visible_alias = "g")]
    Get {
        /// Id or name of the stream
        #[arg(value_parser = parse_id)]
        stream: Identifier,
        /// Id or name of the topic
        #[arg(value_parser = parse_id)]
        topic: Identifier,
        /// Id or name of the group
        #[arg(value_parser = parse_id)]
        group: Identifier,
    },
    /// List the consumer groups of a topic
    #[command(visible_alias = "l")]
    List {
        /// Id or name of the stream
        #[arg(value_parser = parse_id)]
        stream: Identifier,
        /// Id or name of the topic
        #[arg(value_parser = parse_id)]
        topic: Identifier,
        /// Form of the output
        #[arg(short, long, value_enum, default_value_t)]
        list_mode: ListMode,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_moments_should_read_all_three_spellings() {
        assert_eq!(parse_moment("1700000000000000"), Ok(Moment::At(1_700_000_000_000_000)));
        assert_eq!(parse_moment("1970-01-01T00:00:01Z"), Ok(Moment::At(1_000_000)));
        assert_eq!(parse_moment("5m"), Ok(Moment::Ago(Duration::from_mins(5))));
        assert!(parse_moment("yesterday").is_err());
    }

    #[test]
    fn given_a_wait_should_keep_to_ten_minutes() {
        assert!(parse_wait("10m").is_ok());
        assert!(parse_wait("601s").is_err());
    }
}
