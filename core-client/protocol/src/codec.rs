//! Reading and writing the primitives of the wire: little-endian integers, names and counted strings.
//!
//! A [`Reader`] never trusts a length: it checks each against the bytes that are left before anything is taken or
//! allocated, and says which field was wrong, how, and what is allowed.

use bytes::{BufMut, BytesMut};

use crate::error_code::ErrorCode;
use crate::name::Name;

/// What was wrong with a field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The bytes end before the field does.
    #[error("needs {needed} bytes but {available} are left")]
    Truncated {
        /// Bytes the field needs.
        needed: usize,
        /// Bytes that were left.
        available: usize,
    },
    /// Bytes follow where the body must end.
    #[error("{0} bytes follow the end")]
    Trailing(usize),
    /// A length is outside its range.
    #[error("length {found} is not allowed, expected {allowed}")]
    Length {
        /// The length received.
        found: u64,
        /// What is allowed.
        allowed: &'static str,
    },
    /// A value is outside its range.
    #[error("value {found} is not allowed, expected {allowed}")]
    Value {
        /// The value received.
        found: u64,
        /// What is allowed.
        allowed: &'static str,
    },
    /// Text is not UTF-8.
    #[error("is not valid UTF-8")]
    Utf8,
    /// The same thing is named twice.
    #[error("{0} is named twice")]
    Duplicate(String),
    /// A rule between fields is broken.
    #[error("{0}")]
    Rule(&'static str),
}

/// Bytes from outside that do not follow the protocol: names the field, the problem and the code a server answers with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct DecodeError {
    /// The field that was wrong.
    pub field: &'static str,
    /// What was wrong and what is allowed.
    pub problem: Problem,
    code: ErrorCode,
}

impl DecodeError {
    /// A problem with `field`, answered with [`ErrorCode::InvalidCommand`] unless [`DecodeError::with_code`] names another.
    pub fn new(field: &'static str, problem: Problem) -> Self {
        let code = match problem {
            Problem::Utf8 => ErrorCode::InvalidUtf8,
            _ => ErrorCode::InvalidCommand,
        };
        Self { field, problem, code }
    }

    /// A value outside its range.
    pub fn value(field: &'static str, found: impl Into<u64>, allowed: &'static str) -> Self {
        Self::new(
            field,
            Problem::Value {
                found: found.into(),
                allowed,
            },
        )
    }

    /// A length outside its range.
    pub fn length(field: &'static str, found: usize, allowed: &'static str) -> Self {
        Self::new(
            field,
            Problem::Length {
                found: found as u64,
                allowed,
            },
        )
    }

    /// A broken rule between fields.
    pub fn rule(field: &'static str, rule: &'static str) -> Self {
        Self::new(field, Problem::Rule(rule))
    }

    /// The same error answered with another code.
    #[must_use]
    pub fn with_code(mut self, code: ErrorCode) -> Self {
        self.code = code;
        self
    }

    /// The code a server answers with.
    pub fn code(&self) -> ErrorCode {
        self.code
    }
}

/// A value that can be written to the wire.
pub trait Encode {
    /// Appends the value to `out`.
    fn encode(&self, out: &mut BytesMut);

    /// The value alone.
    fn to_bytes(&self) -> BytesMut {
        let mut out = BytesMut::new();
        self.encode(&mut out);
        out
    }
}

/// A value that can be read from the wire.
pub trait Decode<'a>: Sized {
    /// Reads the value from where `reader` stands.
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError>;

    /// Reads a value that must fill `bytes` exactly.
    fn from_bytes(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let value = Self::decode(&mut reader)?;
        reader.finish()?;
        Ok(value)
    }
}

/// A cursor over received bytes.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
}

macro_rules! read_integer {
    ($($(#[$doc:meta])* $name:ident -> $type:ty;)*) => {
        $($(#[$doc])*
        pub fn $name(&mut self, field: &'static str) -> Result<$type, DecodeError> {
            Ok(<$type>::from_le_bytes(*self.array(field)?))
        })*
    };
}

impl<'a> Reader<'a> {
    /// A reader at the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    /// Bytes not yet read.
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.position
    }

    /// Whether everything was read.
    pub fn is_empty(&self) -> bool {
        self.remaining() == 0
    }

    /// Bytes read so far.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Takes exactly `count` bytes without copying them.
    pub fn bytes(&mut self, field: &'static str, count: usize) -> Result<&'a [u8], DecodeError> {
        let available = self.remaining();
        if count > available {
            return Err(DecodeError::new(
                field,
                Problem::Truncated {
                    needed: count,
                    available,
                },
            ));
        }
        let taken = &self.bytes[self.position..self.position + count];
        self.position += count;
        Ok(taken)
    }

    /// Takes a fixed number of bytes.
    pub fn array<const N: usize>(&mut self, field: &'static str) -> Result<&'a [u8; N], DecodeError> {
        let available = self.remaining();
        let Some((taken, _)) = self.bytes[self.position..].split_first_chunk::<N>() else {
            return Err(DecodeError::new(field, Problem::Truncated { needed: N, available }));
        };
        self.position += N;
        Ok(taken)
    }

    /// Takes everything that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        let taken = &self.bytes[self.position..];
        self.position = self.bytes.len();
        taken
    }

    /// Looks at what is left without taking it.
    pub fn peek(&self) -> &'a [u8] {
        &self.bytes[self.position..]
    }

    read_integer! {
        /// One byte.
        u8 -> u8;
        /// Two bytes.
        u16 -> u16;
        /// Four bytes.
        u32 -> u32;
        /// Eight bytes.
        u64 -> u64;
        /// Sixteen bytes.
        u128 -> u128;
        /// An IEEE-754 number of four bytes.
        f32 -> f32;
    }

    /// A presence byte that allows nothing but 0 and 1.
    pub fn presence(&mut self, field: &'static str) -> Result<bool, DecodeError> {
        match self.u8(field)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(DecodeError::value(field, other, "0 (absent) or 1 (present)")),
        }
    }

    /// UTF-8 text of exactly `count` bytes.
    pub fn text(&mut self, field: &'static str, count: usize) -> Result<&'a str, DecodeError> {
        let bytes = self.bytes(field, count)?;
        std::str::from_utf8(bytes).map_err(|_| DecodeError::new(field, Problem::Utf8))
    }

    /// A name: one length byte, then 1..=255 bytes of UTF-8.
    pub fn name(&mut self, field: &'static str) -> Result<Name, DecodeError> {
        Name::new(self.name_str(field)?).map_err(|error| error.into_decode_error(field))
    }

    /// The text of a name, without a copy.
    pub fn name_str(&mut self, field: &'static str) -> Result<&'a str, DecodeError> {
        let length = self.u8(field)?;
        if length == 0 {
            return Err(DecodeError::length(field, 0, "1..=255 bytes"));
        }
        self.text(field, usize::from(length))
    }

    /// Text after a four-byte length; it may be empty.
    pub fn str32(&mut self, field: &'static str) -> Result<&'a str, DecodeError> {
        let length = self.u32(field)? as usize;
        self.text(field, length)
    }

    /// A count of items that take at least `item_bytes` each, checked against what is left, so that it may size an allocation.
    pub fn count(&mut self, field: &'static str, item_bytes: usize) -> Result<usize, DecodeError> {
        let count = self.u32(field)? as usize;
        let needed = count.saturating_mul(item_bytes.max(1));
        let available = self.remaining();
        if needed > available {
            return Err(DecodeError::new(field, Problem::Truncated { needed, available }));
        }
        Ok(count)
    }

    /// Refuses bytes that follow the end.
    pub fn finish(&self) -> Result<(), DecodeError> {
        match self.remaining() {
            0 => Ok(()),
            count => Err(DecodeError::new("body", Problem::Trailing(count))),
        }
    }
}

/// Writing the primitives that `BufMut` does not have.
pub trait WriteWire {
    /// A name: one length byte, then its bytes.
    fn put_name(&mut self, name: &str);
    /// Text after a four-byte length.
    fn put_str32(&mut self, text: &str);
    /// One byte: 0 or 1.
    fn put_flag(&mut self, flag: bool);
    /// A value after its four-byte length.
    fn put_block32(&mut self, value: &impl Encode);
}

impl WriteWire for BytesMut {
    fn put_name(&mut self, name: &str) {
        debug_assert!((1..=255).contains(&name.len()), "names are checked when they are made");
        self.put_u8(name.len() as u8);
        self.put_slice(name.as_bytes());
    }

    fn put_str32(&mut self, text: &str) {
        self.put_u32_le(text.len() as u32);
        self.put_slice(text.as_bytes());
    }

    fn put_flag(&mut self, flag: bool) {
        self.put_u8(u8::from(flag));
    }

    fn put_block32(&mut self, value: &impl Encode) {
        let at = self.len();
        self.put_u32_le(0);
        value.encode(self);
        let length = (self.len() - at - 4) as u32;
        self[at..at + 4].copy_from_slice(&length.to_le_bytes());
    }
}
