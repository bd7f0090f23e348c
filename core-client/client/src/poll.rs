//! The limits of a read, what it returns, and the positions that follow from it.

use bytes::Bytes;
use iggy_protocol::limits::{MAX_DEFERRED_WAIT_MICROS, MIN_REPLY_BYTES};
use iggy_protocol::reply::message::{PollHead, PollReply};
use iggy_protocol::{ErrorCode, IggyDuration, PartitionContext, PollingStrategy};

use crate::error::IggyError;
use crate::message::{IggyMessage, messages_of};

/// When the position of a consumer is stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CommitPolicy {
    /// Never by itself: the application commits what it processed.
    #[default]
    Manual,
    /// The server stores the offset of the last message as part of the read: at most once.
    OnRead,
    /// The client stores positions it counted.
    Auto(AutoCommit),
}

/// How often [`CommitPolicy::Auto`] stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AutoCommit {
    /// After this time; not by time when zero. Default 5 s.
    pub interval: IggyDuration,
    /// After so many messages. Default 10000 messages.
    pub every: Option<CommitEvery>,
    /// What counts as done. Default when the next message is asked for.
    pub after: CommitAfter,
}

impl Default for AutoCommit {
    fn default() -> Self {
        let interval = IggyDuration::from_secs(5);
        Self {
            interval,
            every: Some(CommitEvery::Messages(10_000)),
            after: CommitAfter::Processing,
        }
    }
}

/// After how many messages a position is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitEvery {
    /// Each message.
    Message,
    /// So many messages.
    Messages(u32),
    /// Each batch.
    Batch,
}

/// What counts as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitAfter {
    /// The application asked for the next message.
    Processing,
    /// The message was handed out.
    Delivery,
    /// The application marked it.
    Marked,
}

/// The limits of one read and its commit policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PollOptions {
    /// Most messages. Default 1000.
    pub count: u32,
    /// How long to wait for `min_count` messages: at most 600 s. Default no wait.
    pub max_wait: IggyDuration,
    /// Messages that end the wait: 1 up to `count`. Default 1.
    pub min_count: u32,
    /// Most bytes of the reply: at least 344. A larger first message comes alone. Default 1 MiB.
    pub max_bytes: u32,
    /// When the position is stored. Default never by itself.
    pub commit: CommitPolicy,
}

impl Default for PollOptions {
    fn default() -> Self {
        Self {
            count: 1000,
            max_wait: IggyDuration::ZERO,
            min_count: 1,
            max_bytes: 1 << 20,
            commit: CommitPolicy::Manual,
        }
    }
}

impl PollOptions {
    /// The defaults, with a wait.
    pub fn wait(max_wait: IggyDuration) -> Self {
        Self {
            max_wait,
            ..Self::default()
        }
    }

    /// When the call ends at the latest: the wait and 10 s.
    pub fn request_timeout(&self) -> IggyDuration {
        IggyDuration::from_micros(self.max_wait.as_micros().saturating_add(10_000_000))
    }

    /// Checks the limits.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidMessagesCount`] for `count` and `min_count`, [`ErrorCode::InvalidCommand`] for a wait above 600 s,
    /// [`ErrorCode::InvalidSizeBytes`] for `max_bytes` below 344, [`ErrorCode::InvalidConfiguration`] for automatic commits
    /// that would never happen.
    pub fn validate(&self) -> Result<(), IggyError> {
        if self.min_count == 0 || self.min_count > self.count {
            let message = format!(
                "min_count is {}, expected 1 up to the count, {}",
                self.min_count, self.count
            );
            return Err(IggyError::new(ErrorCode::InvalidMessagesCount, message));
        }
        if self.max_wait.as_micros() > MAX_DEFERRED_WAIT_MICROS {
            let message = format!("max_wait is {}, expected at most 600 s", self.max_wait);
            return Err(IggyError::new(ErrorCode::InvalidCommand, message));
        }
        if self.max_bytes < MIN_REPLY_BYTES {
            let message = format!("max_bytes is {}, expected at least 344", self.max_bytes);
            return Err(IggyError::new(ErrorCode::InvalidSizeBytes, message));
        }
        match self.commit {
            CommitPolicy::Auto(AutoCommit {
                interval, every: None, ..
            }) if interval.is_zero() => {
                let message = "automatic commits need an interval or a number of messages";
                Err(IggyError::new(ErrorCode::InvalidConfiguration, message))
            }
            CommitPolicy::Auto(AutoCommit {
                every: Some(CommitEvery::Messages(0)),
                ..
            }) => {
                let message = "automatic commits after 0 messages would never happen";
                Err(IggyError::new(ErrorCode::InvalidConfiguration, message))
            }
            _ => Ok(()),
        }
    }
}

/// Where the next read of a partition starts. It belongs to one partition and one history of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Continuation {
    /// The partition.
    pub partition_id: u32,
    /// Where to start.
    pub strategy: PollingStrategy,
    /// The history; `None` when the server named none.
    pub context: Option<PartitionContext>,
}

/// A position to commit: it says that every message up to its offset was processed.
///
/// One that a reader or consumer handed out also knows in which of its orderings: a first read, a seek and a new
/// assignment each begin one, and positions of an earlier one store nothing any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Checkpoint {
    /// The partition.
    pub partition_id: u32,
    /// The offset of the last processed message.
    pub offset: u64,
    /// The history it belongs to.
    pub context: PartitionContext,
    pub(crate) ordering: Ordering,
}

/// Which reader handed out a position, and in which of its orderings; zero for positions of single polls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Ordering {
    /// The reader, counted in the process from 1.
    pub reader: u64,
    /// Counted by the reader, from 1.
    pub generation: u64,
}

impl Checkpoint {
    /// A position from its parts, as an application may have kept them.
    pub const fn new(partition_id: u32, offset: u64, context: PartitionContext) -> Self {
        let ordering = Ordering {
            reader: 0,
            generation: 0,
        };
        Self {
            partition_id,
            offset,
            context,
            ordering,
        }
    }
}

/// Where a read starts: a strategy, or the continuation of an earlier read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadStart {
    /// By strategy, in whatever history the partition has.
    Strategy(PollingStrategy),
    /// Where an earlier read ended, in the same history.
    Continuation(Continuation),
}

impl ReadStart {
    /// The strategy to send.
    pub fn strategy(&self) -> PollingStrategy {
        match self {
            Self::Strategy(strategy) => *strategy,
            Self::Continuation(continuation) => continuation.strategy,
        }
    }

    /// The history to send.
    pub fn context(&self) -> Option<PartitionContext> {
        match self {
            Self::Strategy(_) => None,
            Self::Continuation(continuation) => continuation.context,
        }
    }
}

macro_rules! starts {
    ($($type:ident $variant:ident)*) => {
        $(impl From<$type> for ReadStart {
            fn from(start: $type) -> Self {
                Self::$variant(start)
            }
        }

        impl From<&$type> for ReadStart {
            fn from(start: &$type) -> Self {
                Self::$variant(*start)
            }
        })*
    };
}

starts! { PollingStrategy Strategy Continuation Continuation }

/// What one read returned.
#[derive(Debug, Clone, PartialEq)]
pub struct PolledMessages {
    /// The partition.
    pub partition_id: u32,
    /// Its newest offset.
    pub current_offset: u64,
    /// Messages returned.
    pub count: u32,
    /// The messages, in offset order.
    pub messages: Vec<IggyMessage>,
    /// The history that was read.
    pub context: PartitionContext,
    pub(crate) start: ReadStart,
    pub(crate) ordering: Ordering,
}

impl PolledMessages {
    /// Reads a reply body. Payloads stay in it.
    pub(crate) fn decode(body: &Bytes, start: ReadStart) -> Result<Self, IggyError> {
        use iggy_protocol::codec::Decode;
        let reply = PollReply::from_bytes(body)?;
        let mut messages = Vec::with_capacity((reply.head.messages_count as usize).min(reply.records.len() / 48));
        for batch in reply.batches() {
            messages_of(body, &batch?, &mut messages);
        }
        let PollHead {
            partition_id,
            current_offset,
            messages_count: count,
            context,
        } = reply.head;
        if messages.len() != count as usize {
            let message = format!("the reply holds {} messages and says {count}", messages.len());
            return Err(IggyError::new(ErrorCode::InvalidMessagesCount, message));
        }
        Ok(Self {
            partition_id,
            current_offset,
            count,
            messages,
            context,
            start,
            ordering: Ordering::default(),
        })
    }

    /// Whether nothing came.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Where the next read of this partition starts.
    pub fn continuation(&self) -> Continuation {
        // An empty reply without a history could not be served: the read starts again as it did.
        if self.context.is_zero() {
            return Continuation {
                partition_id: self.partition_id,
                strategy: self.start.strategy(),
                context: self.start.context(),
            };
        }
        let strategy = match (self.messages.last(), self.start.strategy()) {
            (Some(last), _) => PollingStrategy::Offset(last.header.offset.saturating_add(1)),
            (None, PollingStrategy::First) => PollingStrategy::Offset(0),
            (None, strategy) => strategy,
        };
        Continuation {
            partition_id: self.partition_id,
            strategy,
            context: Some(self.context),
        }
    }

    /// The position after the last message; `None` when nothing came.
    pub fn checkpoint(&self) -> Option<Checkpoint> {
        self.checkpoint_at(self.messages.len().checked_sub(1)?)
    }

    /// The position after the message of this index.
    pub fn checkpoint_at(&self, index: usize) -> Option<Checkpoint> {
        let offset = self.messages.get(index)?.header.offset;
        Some(Checkpoint {
            partition_id: self.partition_id,
            offset,
            context: self.context,
            ordering: self.ordering,
        })
    }
}
