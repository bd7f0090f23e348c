//! Which history of a partition a request speaks about (wire 4.8 and 5.9).

use bytes::{BufMut, BytesMut};
use serde::{Deserialize, Serialize};

use crate::codec::{Decode, DecodeError, Encode, Reader};

/// The history, the group ownership and the metadata position a request was made under.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PartitionContext {
    /// The metadata position that created the partition.
    pub incarnation: u64,
    /// The metadata position that decided the owner of the partition within its group; zero when none was captured.
    pub owner_generation: u64,
    /// The metadata position an answering node must have applied; zero when any will do.
    pub metadata_op: u64,
}

impl PartitionContext {
    /// No history at all.
    pub const ZERO: Self = Self {
        incarnation: 0,
        owner_generation: 0,
        metadata_op: 0,
    };

    /// The context of a request that a route leads to.
    pub const fn from_route(incarnation: u64, metadata_op: u64) -> Self {
        Self {
            incarnation,
            owner_generation: 0,
            metadata_op,
        }
    }

    /// Whether it names no history.
    pub const fn is_zero(&self) -> bool {
        self.incarnation == 0 && self.owner_generation == 0 && self.metadata_op == 0
    }
}

impl Encode for PartitionContext {
    fn encode(&self, out: &mut BytesMut) {
        out.put_u64_le(self.incarnation);
        out.put_u64_le(self.owner_generation);
        out.put_u64_le(self.metadata_op);
    }
}

impl<'a> Decode<'a> for PartitionContext {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            incarnation: reader.u64("context incarnation")?,
            owner_generation: reader.u64("context owner generation")?,
            metadata_op: reader.u64("context metadata op")?,
        })
    }
}
