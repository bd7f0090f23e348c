//! A value with a kind: what user headers and options are made of (wire 5.7).

use std::fmt;

use bytes::{BufMut, Bytes, BytesMut};
use serde::{Deserialize, Serialize};

use crate::codec::{DecodeError, Reader};
use crate::error_code::ErrorCode;

macro_rules! kinds {
    ($($code:literal $name:ident $text:literal $size:expr;)*) => {
        /// The kind of a value. Kinds above 15 are valid and forwarded untouched; only reading them fails.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ValueKind {
            $(#[doc = concat!("Kind ", $code, ".")] $name,)*
            /// A kind this version does not define.
            Unknown(u8),
        }

        impl ValueKind {
            /// Every kind this version defines.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The kind of this byte; zero is none.
            pub const fn from_u8(code: u8) -> Option<Self> {
                match code { 0 => None, $($code => Some(Self::$name),)* other => Some(Self::Unknown(other)) }
            }

            /// The byte on the wire.
            pub const fn code(self) -> u8 {
                match self { $(Self::$name => $code,)* Self::Unknown(code) => code }
            }

            /// The name in text forms, or `None` for a kind this version does not define.
            pub const fn name(self) -> Option<&'static str> {
                match self { $(Self::$name => Some($text),)* Self::Unknown(_) => None }
            }

            /// The one length a value of this kind has, when there is only one.
            pub const fn fixed_size(self) -> Option<usize> {
                match self { $(Self::$name => $size,)* Self::Unknown(_) => None }
            }
        }
    };
}

kinds! {
    1 Raw "raw" None;
    2 String "string" None;
    3 Bool "bool" Some(1);
    4 Int8 "int8" Some(1);
    5 Int16 "int16" Some(2);
    6 Int32 "int32" Some(4);
    7 Int64 "int64" Some(8);
    8 Int128 "int128" Some(16);
    9 Uint8 "uint8" Some(1);
    10 Uint16 "uint16" Some(2);
    11 Uint32 "uint32" Some(4);
    12 Uint64 "uint64" Some(8);
    13 Uint128 "uint128" Some(16);
    14 Float32 "float32" Some(4);
    15 Float64 "float64" Some(8);
}

impl ValueKind {
    /// The kind of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == Some(name))
    }
}

/// A value of 1..=255 bytes and its kind. The order is that of the wire: by kind, then by bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "(u8, Bytes)", try_from = "(u8, Bytes)")]
pub struct TypedValue {
    kind: u8,
    bytes: Bytes,
}

/// A value that cannot be made or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TypedValueError {
    /// The kind byte is zero.
    #[error("kind 0 is not allowed, expected 1..=255")]
    ZeroKind,
    /// Fewer or more bytes than a value may have.
    #[error("a value has 1..=255 bytes, this one has {0}")]
    Length(usize),
    /// The value is of another kind than the one asked for.
    #[error("the value is of kind {found}, not {wanted}")]
    Kind {
        /// Its kind.
        found: u8,
        /// What was asked for.
        wanted: &'static str,
    },
    /// The bytes are no value of the kind.
    #[error("the bytes are no valid {0}")]
    Bytes(&'static str),
    /// A text that is no value of the kind.
    #[error("'{text}' is no valid {wanted}")]
    Text {
        /// The text.
        text: String,
        /// The kind wanted.
        wanted: &'static str,
    },
}

impl TypedValueError {
    /// The code of this error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::ZeroKind | Self::Kind { .. } => ErrorCode::InvalidHeaderKind,
            Self::Length(_) | Self::Bytes(_) | Self::Text { .. } => ErrorCode::InvalidHeaderValue,
        }
    }
}

impl From<TypedValue> for (u8, Bytes) {
    fn from(value: TypedValue) -> Self {
        (value.kind, value.bytes)
    }
}

impl TryFrom<(u8, Bytes)> for TypedValue {
    type Error = TypedValueError;

    fn try_from((kind, bytes): (u8, Bytes)) -> Result<Self, TypedValueError> {
        let kind = ValueKind::from_u8(kind).ok_or(TypedValueError::ZeroKind)?;
        Self::new(kind, bytes)
    }
}

macro_rules! numbers {
    ($($make:ident $read:ident $type:ident $kind:ident;)*) => {
        $(#[doc = concat!("A value of type `", stringify!($type), "`.")]
        pub fn $make(value: $type) -> Self {
            Self { kind: ValueKind::$kind.code(), bytes: Bytes::copy_from_slice(&value.to_le_bytes()) }
        }

        #[doc = concat!("The value as `", stringify!($type), "`, when it is of that kind.")]
        pub fn $read(&self) -> Result<$type, TypedValueError> {
            let bytes = self.of_kind(ValueKind::$kind, stringify!($type))?;
            bytes.try_into().map($type::from_le_bytes).map_err(|_| TypedValueError::Bytes(stringify!($type)))
        })*
    };
}

impl TypedValue {
    /// A value of any kind; its bytes are taken as they are.
    pub fn new(kind: ValueKind, bytes: impl Into<Bytes>) -> Result<Self, TypedValueError> {
        let bytes = bytes.into();
        match (kind.code(), bytes.len()) {
            (0, _) => Err(TypedValueError::ZeroKind),
            (kind, 1..=255) => Ok(Self { kind, bytes }),
            (_, length) => Err(TypedValueError::Length(length)),
        }
    }

    /// Text of 1..=255 bytes.
    pub fn string(text: impl AsRef<str>) -> Result<Self, TypedValueError> {
        Self::new(ValueKind::String, Bytes::copy_from_slice(text.as_ref().as_bytes()))
    }

    /// 1..=255 bytes.
    pub fn raw(bytes: &[u8]) -> Result<Self, TypedValueError> {
        Self::new(ValueKind::Raw, Bytes::copy_from_slice(bytes))
    }

    /// A truth value.
    pub fn bool(value: bool) -> Self {
        Self {
            kind: ValueKind::Bool.code(),
            bytes: Bytes::from_static(if value { &[1] } else { &[0] }),
        }
    }

    numbers! {
        int8 as_int8 i8 Int8;
        int16 as_int16 i16 Int16;
        int32 as_int32 i32 Int32;
        int64 as_int64 i64 Int64;
        int128 as_int128 i128 Int128;
        uint8 as_uint8 u8 Uint8;
        uint16 as_uint16 u16 Uint16;
        uint32 as_uint32 u32 Uint32;
        uint64 as_uint64 u64 Uint64;
        uint128 as_uint128 u128 Uint128;
        float32 as_float32 f32 Float32;
        float64 as_float64 f64 Float64;
    }

    /// Reads `text` as a value of this kind: decimal numbers, `true` and `false`, raw values as their own UTF-8 bytes.
    pub fn parse(kind: ValueKind, text: &str) -> Result<Self, TypedValueError> {
        macro_rules! number {
            ($make:ident, $name:literal) => {
                text.parse().map(Self::$make).map_err(|_| TypedValueError::Text {
                    text: text.to_owned(),
                    wanted: $name,
                })
            };
        }
        match kind {
            ValueKind::Raw => Self::raw(text.as_bytes()),
            ValueKind::String => Self::string(text),
            ValueKind::Bool => number!(bool, "bool"),
            ValueKind::Int8 => number!(int8, "int8"),
            ValueKind::Int16 => number!(int16, "int16"),
            ValueKind::Int32 => number!(int32, "int32"),
            ValueKind::Int64 => number!(int64, "int64"),
            ValueKind::Int128 => number!(int128, "int128"),
            ValueKind::Uint8 => number!(uint8, "uint8"),
            ValueKind::Uint16 => number!(uint16, "uint16"),
            ValueKind::Uint32 => number!(uint32, "uint32"),
            ValueKind::Uint64 => number!(uint64, "uint64"),
            ValueKind::Uint128 => number!(uint128, "uint128"),
            ValueKind::Float32 => number!(float32, "float32"),
            ValueKind::Float64 => number!(float64, "float64"),
            ValueKind::Unknown(found) => Err(TypedValueError::Kind {
                found,
                wanted: "a kind of 1..=15",
            }),
        }
    }

    /// The kind.
    pub fn kind(&self) -> ValueKind {
        ValueKind::from_u8(self.kind).unwrap_or(ValueKind::Unknown(self.kind))
    }

    /// The bytes, whatever the kind.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Bytes the value takes on the wire.
    pub fn encoded_len(&self) -> usize {
        5 + self.bytes.len()
    }

    fn of_kind(&self, kind: ValueKind, wanted: &'static str) -> Result<&[u8], TypedValueError> {
        if self.kind() == kind {
            Ok(&self.bytes)
        } else {
            Err(TypedValueError::Kind {
                found: self.kind,
                wanted,
            })
        }
    }

    /// The text, when it is a string.
    pub fn as_str(&self) -> Result<&str, TypedValueError> {
        let bytes = self.of_kind(ValueKind::String, "string")?;
        std::str::from_utf8(bytes).map_err(|_| TypedValueError::Bytes("UTF-8 string"))
    }

    /// The bytes, when it is raw.
    pub fn as_raw(&self) -> Result<&[u8], TypedValueError> {
        self.of_kind(ValueKind::Raw, "raw")
    }

    /// The truth value, when it is one.
    pub fn as_bool(&self) -> Result<bool, TypedValueError> {
        match self.of_kind(ValueKind::Bool, "bool")? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(TypedValueError::Bytes("bool (0 or 1)")),
        }
    }

    pub(crate) fn write(&self, out: &mut BytesMut) {
        out.put_u8(self.kind);
        out.put_u32_le(self.bytes.len() as u32);
        out.put_slice(&self.bytes);
    }

    /// Reads kind, length and bytes in place.
    pub(crate) fn read_parts<'a>(
        reader: &mut Reader<'a>,
        field: &'static str,
    ) -> Result<(ValueKind, &'a [u8]), DecodeError> {
        let kind = reader.u8(field)?;
        let kind = ValueKind::from_u8(kind).ok_or_else(|| {
            DecodeError::value(field, kind, "a kind of 1..=255").with_code(ErrorCode::InvalidHeaderKind)
        })?;
        let length = reader.u32(field)? as usize;
        if !(1..=255).contains(&length) {
            return Err(DecodeError::length(field, length, "1..=255 bytes").with_code(ErrorCode::InvalidHeaderValue));
        }
        Ok((kind, reader.bytes(field, length)?))
    }

    pub(crate) fn read(reader: &mut Reader<'_>, field: &'static str) -> Result<Self, DecodeError> {
        let (kind, bytes) = Self::read_parts(reader, field)?;
        Ok(Self {
            kind: kind.code(),
            bytes: Bytes::copy_from_slice(bytes),
        })
    }
}

impl fmt::Display for TypedValue {
    /// Text for people: strings and numbers as they read, everything else in hexadecimal.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        macro_rules! show {
            ($read:ident) => {
                if let Ok(value) = self.$read() {
                    return write!(out, "{value}");
                }
            };
        }
        match self.kind() {
            ValueKind::String => show!(as_str),
            ValueKind::Bool => show!(as_bool),
            ValueKind::Int8 => show!(as_int8),
            ValueKind::Int16 => show!(as_int16),
            ValueKind::Int32 => show!(as_int32),
            ValueKind::Int64 => show!(as_int64),
            ValueKind::Int128 => show!(as_int128),
            ValueKind::Uint8 => show!(as_uint8),
            ValueKind::Uint16 => show!(as_uint16),
            ValueKind::Uint32 => show!(as_uint32),
            ValueKind::Uint64 => show!(as_uint64),
            ValueKind::Uint128 => show!(as_uint128),
            ValueKind::Float32 => show!(as_float32),
            ValueKind::Float64 => show!(as_float64),
            ValueKind::Raw | ValueKind::Unknown(_) => {}
        }
        self.bytes.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}
