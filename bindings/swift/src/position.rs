//! Names of resources, and positions in partitions.

use std::sync::Arc;

use iggy::{
    Checkpoint, Consumer, Continuation, Identifier, IggyError, PartitionContext, Partitioning, PollingStrategy,
    ReadStart,
};
use iggy_ffi::Failure;

/// A stream, topic, group or user.
#[derive(uniffi::Enum)]
pub enum NativeId {
    Name { name: String },
    Number { number: u32 },
}

impl NativeId {
    pub fn identifier(self) -> Result<Identifier, Failure> {
        match self {
            Self::Number { number } => Ok(Identifier::numeric(number)),
            Self::Name { name } => Identifier::named(&name).map_err(|error| IggyError::from(error).into()),
        }
    }

    /// As the builders of the core take it.
    pub fn text(self) -> String {
        match self {
            Self::Number { number } => number.to_string(),
            Self::Name { name } => name,
        }
    }
}

/// Who reads.
#[derive(uniffi::Enum)]
pub enum NativeConsumerId {
    Alone { id: NativeId },
    Group { id: NativeId },
    External { id: NativeId },
}

impl NativeConsumerId {
    pub fn consumer(self) -> Result<Consumer, Failure> {
        Ok(match self {
            Self::Alone { id } => Consumer::new(id.identifier()?),
            Self::Group { id } => Consumer::group(id.identifier()?),
            Self::External { id } => Consumer::external(id.identifier()?),
        })
    }
}

/// How a send finds its partition.
#[derive(uniffi::Enum)]
pub enum NativePartitioning {
    Balanced,
    Partition { id: u32 },
    Key { key: Vec<u8> },
}

impl NativePartitioning {
    pub fn partitioning(self) -> Result<Partitioning, Failure> {
        Ok(match self {
            Self::Balanced => Partitioning::balanced(),
            Self::Partition { id } => Partitioning::partition_id(id),
            Self::Key { key } => Partitioning::messages_key(&key).map_err(IggyError::from)?,
        })
    }
}

/// Where a read starts, whatever the history of the partition.
#[derive(uniffi::Enum)]
pub enum NativeStrategy {
    First,
    Last,
    Next,
    Offset { offset: u64 },
    Timestamp { micros: u64 },
}

impl From<NativeStrategy> for PollingStrategy {
    fn from(strategy: NativeStrategy) -> Self {
        match strategy {
            NativeStrategy::First => Self::first(),
            NativeStrategy::Last => Self::last(),
            NativeStrategy::Next => Self::next(),
            NativeStrategy::Offset { offset } => Self::offset(offset),
            NativeStrategy::Timestamp { micros } => Self::timestamp(micros),
        }
    }
}

impl From<PollingStrategy> for NativeStrategy {
    fn from(strategy: PollingStrategy) -> Self {
        match strategy {
            PollingStrategy::First => Self::First,
            PollingStrategy::Last => Self::Last,
            PollingStrategy::Next => Self::Next,
            PollingStrategy::Offset(offset) => Self::Offset { offset },
            PollingStrategy::Timestamp(micros) => Self::Timestamp { micros },
        }
    }
}

/// A history of a partition.
#[derive(uniffi::Record)]
pub struct NativeHistory {
    pub incarnation: u64,
    pub owner_generation: u64,
    pub metadata_op: u64,
}

/// Where another read ended.
#[derive(uniffi::Record)]
pub struct NativeContinuation {
    pub partition_id: u32,
    pub strategy: NativeStrategy,
    pub history: Option<NativeHistory>,
}

impl From<Continuation> for NativeContinuation {
    fn from(continuation: Continuation) -> Self {
        Self {
            partition_id: continuation.partition_id,
            strategy: continuation.strategy.into(),
            history: continuation.context.map(|context| NativeHistory {
                incarnation: context.incarnation,
                owner_generation: context.owner_generation,
                metadata_op: context.metadata_op,
            }),
        }
    }
}

/// Where a read starts.
#[derive(uniffi::Enum)]
pub enum NativeStart {
    Strategy { strategy: NativeStrategy },
    Continuation { continuation: NativeContinuation },
}

impl From<NativeStart> for ReadStart {
    fn from(start: NativeStart) -> Self {
        match start {
            NativeStart::Strategy { strategy } => PollingStrategy::from(strategy).into(),
            NativeStart::Continuation { continuation } => Continuation {
                partition_id: continuation.partition_id,
                strategy: continuation.strategy.into(),
                context: continuation.history.map(|history| PartitionContext {
                    incarnation: history.incarnation,
                    owner_generation: history.owner_generation,
                    metadata_op: history.metadata_op,
                }),
            }
            .into(),
        }
    }
}

/// What a position says.
#[derive(uniffi::Record)]
pub struct NativePosition {
    pub partition_id: u32,
    pub offset: u64,
    pub incarnation: u64,
    pub owner_generation: u64,
}

/// A position to commit, with what only the client knows about it.
#[derive(uniffi::Object)]
pub struct NativeCheckpoint(pub Checkpoint);

#[uniffi::export]
impl NativeCheckpoint {
    /// From its parts, as an application kept them.
    #[uniffi::constructor]
    pub fn new(partition_id: u32, offset: u64, incarnation: u64, owner_generation: u64) -> Arc<Self> {
        let context = PartitionContext {
            incarnation,
            owner_generation,
            metadata_op: 0,
        };
        Arc::new(Self(Checkpoint::new(partition_id, offset, context)))
    }

    pub fn position(&self) -> NativePosition {
        NativePosition {
            partition_id: self.0.partition_id,
            offset: self.0.offset,
            incarnation: self.0.context.incarnation,
            owner_generation: self.0.context.owner_generation,
        }
    }

    /// The same position at another message of the same read.
    pub fn at(&self, offset: u64) -> Arc<Self> {
        let mut moved = self.0;
        moved.offset = offset;
        Arc::new(Self(moved))
    }

    /// Where a read goes on after it.
    pub fn continuation(&self) -> NativeContinuation {
        let after = Continuation {
            partition_id: self.0.partition_id,
            strategy: PollingStrategy::Offset(self.0.offset.saturating_add(1)),
            context: Some(self.0.context),
        };
        after.into()
    }
}
