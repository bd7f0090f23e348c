//! Where a poll starts (wire 5.4).

use bytes::{BufMut, BytesMut};
use serde::{Deserialize, Serialize};

use crate::codec::{Decode, DecodeError, Encode, Reader};

/// Where a poll starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PollingStrategy {
    /// At this offset.
    Offset(u64),
    /// At the first message whose broker time is not before this one, in microseconds since the Unix epoch.
    Timestamp(u64),
    /// At the oldest message.
    First,
    /// At the newest messages.
    Last,
    /// After the stored offset of the consumer.
    Next,
}

impl PollingStrategy {
    /// At this offset.
    pub const fn offset(offset: u64) -> Self {
        Self::Offset(offset)
    }

    /// At the first message not before `micros`, in microseconds since the Unix epoch.
    pub const fn timestamp(micros: u64) -> Self {
        Self::Timestamp(micros)
    }

    /// At the oldest message.
    pub const fn first() -> Self {
        Self::First
    }

    /// At the newest messages.
    pub const fn last() -> Self {
        Self::Last
    }

    /// After the stored offset of the consumer.
    pub const fn next() -> Self {
        Self::Next
    }

    /// The kind byte on the wire.
    pub const fn kind(self) -> u8 {
        match self {
            Self::Offset(_) => 1,
            Self::Timestamp(_) => 2,
            Self::First => 3,
            Self::Last => 4,
            Self::Next => 5,
        }
    }
}

impl Encode for PollingStrategy {
    fn encode(&self, out: &mut BytesMut) {
        out.put_u8(self.kind());
        out.put_u64_le(match self {
            Self::Offset(value) | Self::Timestamp(value) => *value,
            Self::First | Self::Last | Self::Next => 0,
        });
    }
}

impl<'a> Decode<'a> for PollingStrategy {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let kind = reader.u8("strategy kind")?;
        let value = reader.u64("strategy value")?;
        Ok(match kind {
            1 => Self::Offset(value),
            2 => Self::Timestamp(value),
            3 => Self::First,
            4 => Self::Last,
            5 => Self::Next,
            other => {
                return Err(DecodeError::value(
                    "strategy kind",
                    other,
                    "1 offset, 2 timestamp, 3 first, 4 last or 5 next",
                ));
            }
        })
    }
}
