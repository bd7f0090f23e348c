//! Which partition a send goes to (wire 5.5).

use bytes::{BufMut, Bytes, BytesMut};
use xxhash_rust::xxh32::xxh32;

use crate::codec::{Decode, DecodeError, Encode, Problem, Reader};

/// Which partition a send goes to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Partitioning {
    /// The next partition in turn.
    Balanced,
    /// This partition.
    PartitionId(u32),
    /// The partition of this key: 1..=255 bytes.
    MessagesKey(Bytes),
}

impl Partitioning {
    /// The next partition in turn.
    pub const fn balanced() -> Self {
        Self::Balanced
    }

    /// This partition.
    pub const fn partition_id(id: u32) -> Self {
        Self::PartitionId(id)
    }

    /// The partition of a key of 1..=255 bytes.
    pub fn messages_key(key: &[u8]) -> Result<Self, DecodeError> {
        match key.len() {
            1..=255 => Ok(Self::MessagesKey(Bytes::copy_from_slice(key))),
            length => Err(DecodeError::length("messages key", length, "1..=255 bytes")),
        }
    }

    /// The partition of a text key of 1..=255 bytes.
    pub fn messages_key_str(key: &str) -> Result<Self, DecodeError> {
        Self::messages_key(key.as_bytes())
    }

    /// The partition of an integer key, hashed by its four little-endian bytes.
    pub fn messages_key_u32(key: u32) -> Self {
        Self::MessagesKey(Bytes::copy_from_slice(&key.to_le_bytes()))
    }

    /// The partition of an integer key, hashed by its eight little-endian bytes.
    pub fn messages_key_u64(key: u64) -> Self {
        Self::MessagesKey(Bytes::copy_from_slice(&key.to_le_bytes()))
    }

    /// The partition of an integer key, hashed by its sixteen little-endian bytes.
    pub fn messages_key_u128(key: u128) -> Self {
        Self::MessagesKey(Bytes::copy_from_slice(&key.to_le_bytes()))
    }
}

/// The hash of a messages key: XXH32 with seed 0.
pub fn key_hash(key: &[u8]) -> u32 {
    xxh32(key, 0)
}

/// The partition of a messages key among `partitions_count` partitions, or `None` when there are none.
pub fn partition_of_key(key: &[u8], partitions_count: u32) -> Option<u32> {
    key_hash(key).checked_rem(partitions_count)
}

impl Encode for Partitioning {
    fn encode(&self, out: &mut BytesMut) {
        match self {
            Self::Balanced => out.put_slice(&[1, 0]),
            Self::PartitionId(id) => {
                out.put_slice(&[2, 4]);
                out.put_u32_le(*id);
            }
            Self::MessagesKey(key) => {
                out.put_u8(3);
                out.put_u8(key.len() as u8);
                out.put_slice(key);
            }
        }
    }
}

impl<'a> Decode<'a> for Partitioning {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let kind = reader.u8("partitioning kind")?;
        let length = reader.u8("partitioning length")?;
        let wrong = |allowed| {
            Err(DecodeError::new(
                "partitioning length",
                Problem::Length {
                    found: u64::from(length),
                    allowed,
                },
            ))
        };
        match (kind, length) {
            (1, 0) => Ok(Self::Balanced),
            (1, _) => wrong("0 for balanced"),
            (2, 4) => Ok(Self::PartitionId(reader.u32("partitioning id")?)),
            (2, _) => wrong("4 for a partition id"),
            (3, 0) => wrong("1..=255 for a messages key"),
            (3, length) => {
                let key = reader.bytes("partitioning key", usize::from(length))?;
                Ok(Self::MessagesKey(Bytes::copy_from_slice(key)))
            }
            (other, _) => Err(DecodeError::value(
                "partitioning kind",
                other,
                "1 balanced, 2 partition id or 3 messages key",
            )),
        }
    }
}
