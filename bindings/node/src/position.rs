//! Positions: where a read goes on, and how far messages were processed.

use iggy::{PartitionContext, PollingStrategy, ReadStart};
use iggy_ffi::settings;
use napi::bindgen_prelude::BigInt;
use napi_derive::napi;

use crate::failure::{OrThrow, invalid};
use crate::value::{json, whole, wide};

/// Where the next read of a partition starts.
#[napi]
pub struct Continuation(pub(crate) iggy::Continuation);

#[napi]
impl Continuation {
    /// The partition.
    #[napi(getter)]
    pub fn partition_id(&self) -> u32 {
        self.0.partition_id
    }

    /// The offset it starts at; `null` when it starts elsewhere.
    #[napi(getter)]
    pub fn offset(&self) -> Option<BigInt> {
        match self.0.strategy {
            PollingStrategy::Offset(offset) => Some(offset.into()),
            _ => None,
        }
    }

    /// Whether both are the same.
    #[napi]
    pub fn equals(&self, other: &Continuation) -> bool {
        self.0 == other.0
    }
}

/// A position to commit.
#[napi]
pub struct Checkpoint(pub(crate) iggy::Checkpoint);

#[napi]
impl Checkpoint {
    /// A position from its parts, as an application kept them.
    ///
    /// # Errors
    /// Numbers out of range.
    #[napi(constructor)]
    #[allow(clippy::needless_pass_by_value, reason = "as values arrive")]
    pub fn new(
        partition_id: f64,
        offset: BigInt,
        incarnation: BigInt,
        owner_generation: Option<BigInt>,
    ) -> napi::Result<Self> {
        let generation = owner_generation.map_or(Ok(0), |number| wide("the owner generation", &number))?;
        let context = PartitionContext {
            incarnation: wide("the incarnation", &incarnation)?,
            owner_generation: generation,
            metadata_op: 0,
        };
        let (partition_id, offset) = (whole("the partition", partition_id)?, wide("the offset", &offset)?);
        Ok(Self(iggy::Checkpoint::new(partition_id, offset, context)))
    }

    /// The same position of another message of the same read.
    ///
    /// # Errors
    /// An offset out of range.
    #[napi]
    #[allow(clippy::needless_pass_by_value, reason = "as values arrive")]
    pub fn at(&self, offset: BigInt) -> napi::Result<Self> {
        let mut moved = self.0;
        moved.offset = wide("the offset", &offset)?;
        Ok(Self(moved))
    }

    /// Where a read goes on after it.
    #[napi]
    pub fn continuation(&self) -> Continuation {
        Continuation(iggy::Continuation {
            partition_id: self.0.partition_id,
            strategy: PollingStrategy::Offset(self.0.offset.saturating_add(1)),
            context: Some(self.0.context),
        })
    }

    /// The partition.
    #[napi(getter)]
    pub fn partition_id(&self) -> u32 {
        self.0.partition_id
    }

    /// The offset of the last processed message.
    #[napi(getter)]
    pub fn offset(&self) -> BigInt {
        self.0.offset.into()
    }

    /// The history it belongs to.
    #[napi(getter)]
    pub fn incarnation(&self) -> BigInt {
        self.0.context.incarnation.into()
    }

    /// The ownership it belongs to; 0 for none.
    #[napi(getter)]
    pub fn owner_generation(&self) -> BigInt {
        self.0.context.owner_generation.into()
    }

    /// Whether both are the same.
    #[napi]
    pub fn equals(&self, other: &Checkpoint) -> bool {
        self.0 == other.0
    }
}

/// A start: a [`Continuation`], or a strategy as JSON.
pub fn read_start(continuation: Option<&Continuation>, strategy: Option<&str>) -> napi::Result<ReadStart> {
    match (continuation, strategy) {
        (Some(continuation), None) => Ok(continuation.0.into()),
        (None, Some(text)) => Ok(settings::strategy(json(text)?).or_throw()?.into()),
        _ => Err(invalid("a start is a continuation or a strategy")),
    }
}
