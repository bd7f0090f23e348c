//! Who reads: a single consumer, a consumer group, or a group of another system that keeps offsets only (wire 5.2).

use bytes::{BufMut, BytesMut};
use serde::{Deserialize, Serialize};

use crate::codec::{Decode, DecodeError, Encode, Reader};
use crate::identifier::Identifier;

/// The kind of a consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum ConsumerKind {
    /// One consumer with offsets of its own.
    Consumer = 1,
    /// A member of a consumer group.
    Group = 2,
    /// A group of another system: offsets only, never polled.
    External = 3,
}

/// A consumer and its identifier.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Consumer {
    /// The kind.
    pub kind: ConsumerKind,
    /// Its number or name.
    pub id: Identifier,
}

impl Consumer {
    /// A single consumer.
    pub fn new(id: Identifier) -> Self {
        Self {
            kind: ConsumerKind::Consumer,
            id,
        }
    }

    /// A consumer group.
    pub fn group(id: Identifier) -> Self {
        Self {
            kind: ConsumerKind::Group,
            id,
        }
    }

    /// A group of another system, which keeps offsets only.
    pub fn external(id: Identifier) -> Self {
        Self {
            kind: ConsumerKind::External,
            id,
        }
    }
}

impl Encode for Consumer {
    fn encode(&self, out: &mut BytesMut) {
        out.put_u8(self.kind as u8);
        self.id.encode(out);
    }
}

impl<'a> Decode<'a> for Consumer {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let kind = match reader.u8("consumer kind")? {
            1 => ConsumerKind::Consumer,
            2 => ConsumerKind::Group,
            3 => ConsumerKind::External,
            other => {
                return Err(DecodeError::value(
                    "consumer kind",
                    other,
                    "1 (consumer), 2 (group) or 3 (external group)",
                ));
            }
        };
        Ok(Self {
            kind,
            id: Identifier::decode(reader)?,
        })
    }
}

/// An optional partition id: always five bytes (wire 5.3).
pub(crate) fn encode_optional_partition(partition: Option<u32>, out: &mut BytesMut) {
    out.put_u8(u8::from(partition.is_some()));
    out.put_u32_le(partition.unwrap_or(0));
}

/// Reads an optional partition id: flag 1 means present, every other flag absent (wire 5.3).
pub(crate) fn decode_optional_partition(reader: &mut Reader<'_>) -> Result<Option<u32>, DecodeError> {
    let flag = reader.u8("partition flag")?;
    let partition = reader.u32("partition id")?;
    Ok((flag == 1).then_some(partition))
}
