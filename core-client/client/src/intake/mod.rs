//! What readers and consumers share: reading ahead, positions, and group membership.
//!
//! An [`Intake`] is a state under a lock and a task that acts on it ([`driver`]). The task asks each primary for the
//! partitions it leads by one grouped fetch at a time, which waits there for messages; whenever another partition of the
//! same primary can be read, the waiting fetch is cancelled and both go into one. It stores positions that are due, and
//! keeps the assignment of a group member. The application's calls only change the state and wake the task, so that
//! dropping any of them loses nothing.
//!
//! Reads that store offsets (`OnRead`) are made only while the application waits for the next message and nothing is
//! left to hand out. When such a read ends unknown, the intake abandons it, looks up what was stored, and reads the
//! messages up to there again without storing anything. Not tolerated: a rebalance that takes the partition first.

mod commits;
mod cursor;
mod driver;
mod handle;
mod membership;
mod plan;
mod read_error;
mod replies;
mod state;

pub(crate) use handle::{Intake, Share, Shared};
pub(crate) use membership::{Joining, find_topic, join_as_member};
pub use read_error::ReadError;

use std::sync::Arc;
use std::time::Duration;

use iggy_protocol::{Consumer, ConsumerKind, ErrorCode, Identifier, PollingStrategy};

use crate::client::IggyClient;
use crate::encryption::Encryptor;
use crate::error::IggyError;
use crate::poll::{CommitPolicy, PollOptions, ReadStart};
use crate::routes::RouteKey;

/// Where reading starts when nobody says otherwise.
pub(crate) const DEFAULT_START: PollingStrategy = PollingStrategy::Next;
/// Bytes read ahead by default.
pub(crate) const PREFETCH_BYTES: usize = 16 << 20;
/// Messages read ahead by default, or the count of one read if that is more.
pub(crate) const PREFETCH_MESSAGES: usize = 16_000;

/// What an intake reads, and how.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// The client.
    pub client: IggyClient,
    /// The stream.
    pub stream: Identifier,
    /// The topic.
    pub topic: Identifier,
    /// Who reads.
    pub consumer: Consumer,
    /// Where partitions start.
    pub start: ReadStart,
    /// Limits of one read and the commit policy.
    pub options: PollOptions,
    /// Bytes to hold that the application has not taken.
    pub prefetch_bytes: usize,
    /// Messages to hold that the application has not taken.
    pub prefetch_messages: usize,
    /// Decrypts messages.
    pub encryptor: Option<Arc<dyn Encryptor>>,
    /// Whether messages that were handed out already may be handed out again.
    pub allow_replay: bool,
    /// Longest pause before a refused partition is read again.
    pub retry_interval: Duration,
    /// How long positions may take to be stored when a partition is taken away, and at the end.
    pub drain_timeout: Duration,
}

impl Settings {
    /// Whether a group shares the partitions out.
    pub fn is_group(&self) -> bool {
        self.consumer.kind == ConsumerKind::Group
    }

    /// Whether reads store offsets.
    pub fn commits_on_read(&self) -> bool {
        self.options.commit == CommitPolicy::OnRead
    }

    /// A partition of the topic.
    pub fn partition(&self, partition_id: u32) -> RouteKey {
        RouteKey {
            stream: self.stream.clone(),
            topic: self.topic.clone(),
            partition_id,
        }
    }

    /// Refuses what cannot be read.
    pub fn validate(&self, partitions: &[u32]) -> Result<(), IggyError> {
        self.options.validate()?;
        let refuse = |code, message: String| Err(IggyError::new(code, message));
        if self.commits_on_read() && self.encryptor.is_some() {
            let message = "reads cannot store offsets of encrypted messages: one that cannot be decrypted would count \
                           as consumed; use Manual or Auto commits";
            return refuse(ErrorCode::InvalidConfiguration, message.to_owned());
        }
        match self.consumer.kind {
            ConsumerKind::External => {
                let message = "an external group keeps offsets only and is never read for";
                return refuse(ErrorCode::FeatureUnavailable, message.to_owned());
            }
            ConsumerKind::Group if !partitions.is_empty() => {
                let message = "a group shares its partitions out by itself: name none";
                return refuse(ErrorCode::InvalidCommand, message.to_owned());
            }
            ConsumerKind::Group if matches!(self.start, ReadStart::Continuation(_)) => {
                let message = "a group member starts by a strategy: a continuation belongs to one partition";
                return refuse(ErrorCode::InvalidCommand, message.to_owned());
            }
            ConsumerKind::Consumer if partitions.is_empty() => {
                let message = "name at least one partition to read";
                return refuse(ErrorCode::NoPartitions, message.to_owned());
            }
            ConsumerKind::Group | ConsumerKind::Consumer => {}
        }
        let mut seen = std::collections::BTreeSet::new();
        for id in partitions {
            check_start(&self.start, *id)?;
            if !seen.insert(*id) {
                return refuse(ErrorCode::InvalidCommand, format!("partition {id} is named twice"));
            }
        }
        Ok(())
    }
}

/// Refuses a continuation of another partition.
fn check_start(start: &ReadStart, partition_id: u32) -> Result<(), IggyError> {
    if let ReadStart::Continuation(continuation) = start
        && continuation.partition_id != partition_id
    {
        let message = format!(
            "the start continues partition {}, not {partition_id}",
            continuation.partition_id
        );
        return Err(IggyError::new(ErrorCode::InvalidCommand, message));
    }
    Ok(())
}
