//! User headers of a message: typed keys and typed values (wire 5.7).

use std::collections::BTreeMap;

use bytes::BytesMut;

use crate::codec::{Decode, DecodeError, Encode, Problem, Reader};
use crate::error_code::ErrorCode;
use crate::limits::MAX_USER_HEADERS_BYTES;
use crate::typed_value::{TypedValue, TypedValueError, ValueKind};

/// The headers of one message, in wire order. Keys and values may be of any kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserHeaders {
    entries: BTreeMap<TypedValue, TypedValue>,
}

impl UserHeaders {
    /// No headers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a header and returns the value it had.
    pub fn insert(&mut self, key: TypedValue, value: TypedValue) -> Option<TypedValue> {
        self.entries.insert(key, value)
    }

    /// Sets a header whose key is text of 1..=255 bytes.
    pub fn set(&mut self, key: &str, value: TypedValue) -> Result<(), TypedValueError> {
        self.entries.insert(TypedValue::string(key)?, value);
        Ok(())
    }

    /// The value of a key.
    pub fn get(&self, key: &TypedValue) -> Option<&TypedValue> {
        self.entries.get(key)
    }

    /// The value of a text key.
    pub fn get_str(&self, key: &str) -> Option<&TypedValue> {
        self.entries.get(&TypedValue::string(key).ok()?)
    }

    /// Keys and values in wire order.
    pub fn iter(&self) -> impl Iterator<Item = (&TypedValue, &TypedValue)> {
        self.entries.iter()
    }

    /// Number of headers.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes they take on the wire; at most 100000 are allowed.
    pub fn encoded_len(&self) -> usize {
        self.entries
            .iter()
            .map(|(key, value)| key.encoded_len() + value.encoded_len())
            .sum()
    }
}

impl FromIterator<(TypedValue, TypedValue)> for UserHeaders {
    fn from_iter<I: IntoIterator<Item = (TypedValue, TypedValue)>>(entries: I) -> Self {
        Self {
            entries: entries.into_iter().collect(),
        }
    }
}

impl Encode for UserHeaders {
    fn encode(&self, out: &mut BytesMut) {
        for (key, value) in &self.entries {
            key.write(out);
            value.write(out);
        }
    }
}

impl<'a> Decode<'a> for UserHeaders {
    /// Reads to the end of the bytes.
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        check_size(reader.remaining())?;
        let mut entries = BTreeMap::new();
        while !reader.is_empty() {
            let key = TypedValue::read(reader, "user header key")?;
            let value = TypedValue::read(reader, "user header value")?;
            if entries.contains_key(&key) {
                let problem = Problem::Duplicate(format!("key '{key}'"));
                return Err(DecodeError::new("user headers", problem).with_code(ErrorCode::InvalidHeaderKey));
            }
            entries.insert(key, value);
        }
        Ok(Self { entries })
    }
}

/// Walks a header block in place and checks its structure, keeping nothing.
pub fn validate_user_headers(block: &[u8]) -> Result<(), DecodeError> {
    for entry in UserHeadersView::new(block)? {
        entry?;
    }
    Ok(())
}

fn check_size(length: usize) -> Result<(), DecodeError> {
    if length > MAX_USER_HEADERS_BYTES {
        let error = DecodeError::length("user headers", length, "at most 100000 bytes");
        return Err(error.with_code(ErrorCode::TooBigUserHeaders));
    }
    Ok(())
}

/// A key or value in place.
pub type ValueView<'a> = (ValueKind, &'a [u8]);

/// The entries of a header block in place. Ends after the first error.
#[derive(Debug, Clone)]
pub struct UserHeadersView<'a> {
    reader: Reader<'a>,
}

impl<'a> UserHeadersView<'a> {
    /// Views a block of at most 100000 bytes.
    pub fn new(block: &'a [u8]) -> Result<Self, DecodeError> {
        check_size(block.len())?;
        Ok(Self {
            reader: Reader::new(block),
        })
    }
}

impl<'a> Iterator for UserHeadersView<'a> {
    type Item = Result<(ValueView<'a>, ValueView<'a>), DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.is_empty() {
            return None;
        }
        let key = TypedValue::read_parts(&mut self.reader, "user header key");
        let entry = key.and_then(|key| Ok((key, TypedValue::read_parts(&mut self.reader, "user header value")?)));
        if entry.is_err() {
            self.reader = Reader::new(&[]);
        }
        Some(entry)
    }
}
