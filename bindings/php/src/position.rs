//! Positions: where a read goes on, and how far messages were processed.

use ext_php_rs::prelude::*;
use ext_php_rs::types::Zval;
use iggy::{PartitionContext, PollingStrategy};

use crate::value::{number32, number64, wide};

/// Where the next read of a partition starts.
#[php_class]
#[php(name = "Iggy\\Continuation")]
pub struct Continuation(pub iggy::Continuation);

#[php_impl]
impl Continuation {
    #[php(getter)]
    pub fn get_partition_id(&self) -> i64 {
        self.0.partition_id.into()
    }

    #[php(getter)]
    pub fn get_offset(&self) -> PhpResult<Zval> {
        match self.0.strategy {
            PollingStrategy::Offset(offset) => wide(offset),
            _ => Ok(Zval::null()),
        }
    }

    pub fn equals(&self, other: &Continuation) -> bool {
        self.0 == other.0
    }
}

/// A position to commit.
#[php_class]
#[php(name = "Iggy\\Checkpoint")]
pub struct Checkpoint(pub iggy::Checkpoint);

#[php_impl]
impl Checkpoint {
    pub fn __construct(
        partition_id: i64,
        offset: &Zval,
        incarnation: &Zval,
        owner_generation: Option<&Zval>,
    ) -> PhpResult<Self> {
        let generation = owner_generation.filter(|given| !given.is_null());
        let context = PartitionContext {
            incarnation: number64("the incarnation", incarnation)?,
            owner_generation: generation.map_or(Ok(0), |given| number64("the owner generation", given))?,
            metadata_op: 0,
        };
        let (partition_id, offset) = (
            number32("the partition", partition_id)?,
            number64("the offset", offset)?,
        );
        Ok(Self(iggy::Checkpoint::new(partition_id, offset, context)))
    }

    #[php(getter)]
    pub fn get_partition_id(&self) -> i64 {
        self.0.partition_id.into()
    }

    #[php(getter)]
    pub fn get_offset(&self) -> PhpResult<Zval> {
        wide(self.0.offset)
    }

    #[php(getter)]
    pub fn get_incarnation(&self) -> PhpResult<Zval> {
        wide(self.0.context.incarnation)
    }

    #[php(getter)]
    pub fn get_owner_generation(&self) -> PhpResult<Zval> {
        wide(self.0.context.owner_generation)
    }

    pub fn continuation(&self) -> Continuation {
        Continuation(iggy::Continuation {
            partition_id: self.0.partition_id,
            strategy: PollingStrategy::Offset(self.0.offset.saturating_add(1)),
            context: Some(self.0.context),
        })
    }

    pub fn equals(&self, other: &Checkpoint) -> bool {
        self.0 == other.0
    }
}
