//! How a stream, topic, group or user is named in a request: by number or by name (wire 5.1).

use std::fmt;

use bytes::{BufMut, BytesMut};
use serde::{Deserialize, Serialize};

use crate::codec::{Decode, DecodeError, Encode, Reader, WriteWire};
use crate::error_code::ErrorCode;
use crate::name::{Name, NameError};

const KIND_NUMERIC: u8 = 1;
const KIND_NAMED: u8 = 2;

/// A number or a name. Numbers start at 0.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Identifier {
    /// By number.
    Numeric(u32),
    /// By name.
    Named(Name),
}

impl Identifier {
    /// By number.
    pub const fn numeric(id: u32) -> Self {
        Self::Numeric(id)
    }

    /// By name, which must have 1..=255 bytes.
    pub fn named(name: impl AsRef<str>) -> Result<Self, NameError> {
        Name::new(name).map(Self::Named)
    }

    /// Bytes this identifier takes on the wire.
    pub fn encoded_len(&self) -> usize {
        match self {
            Self::Numeric(_) => 6,
            Self::Named(name) => 2 + name.len(),
        }
    }
}

impl Encode for Identifier {
    fn encode(&self, out: &mut BytesMut) {
        match self {
            Self::Numeric(id) => {
                out.put_u8(KIND_NUMERIC);
                out.put_u8(4);
                out.put_u32_le(*id);
            }
            Self::Named(name) => {
                out.put_u8(KIND_NAMED);
                out.put_name(name);
            }
        }
    }
}

impl<'a> Decode<'a> for Identifier {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let read = |reader: &mut Reader<'a>| match reader.u8("identifier kind")? {
            KIND_NUMERIC => match reader.u8("identifier length")? {
                4 => Ok(Self::Numeric(reader.u32("identifier value")?)),
                other => Err(DecodeError::length(
                    "identifier length",
                    usize::from(other),
                    "4 for a numeric identifier",
                )),
            },
            KIND_NAMED => Ok(Self::Named(reader.name("identifier name")?)),
            other => Err(DecodeError::value(
                "identifier kind",
                other,
                "1 (numeric) or 2 (string)",
            )),
        };
        read(reader).map_err(|error| error.with_code(ErrorCode::InvalidIdentifier))
    }
}

impl fmt::Display for Identifier {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Numeric(id) => write!(out, "{id}"),
            Self::Named(name) => write!(out, "{name}"),
        }
    }
}

impl From<u32> for Identifier {
    fn from(id: u32) -> Self {
        Self::Numeric(id)
    }
}

impl From<Name> for Identifier {
    fn from(name: Name) -> Self {
        Self::Named(name)
    }
}

impl TryFrom<&str> for Identifier {
    type Error = NameError;

    /// A text of decimal digits that fits is a number, everything else a name.
    fn try_from(text: &str) -> Result<Self, NameError> {
        match text.parse() {
            Ok(id) if text.bytes().all(|byte| byte.is_ascii_digit()) => Ok(Self::Numeric(id)),
            _ => Self::named(text),
        }
    }
}

impl std::str::FromStr for Identifier {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        Self::try_from(text)
    }
}
