//! Options blocks: settings of streams, topics and users as string keys and typed values (wire 5.8).

use std::collections::BTreeMap;

use bytes::BytesMut;
use serde::{Deserialize, Serialize};

use crate::codec::{Decode, DecodeError, Encode, Problem, Reader};
use crate::error_code::ErrorCode;
use crate::limits::{MAX_OPTIONS, MAX_OPTIONS_BYTES};
use crate::name::Name;
use crate::typed_value::{TypedValue, ValueKind};

/// Settings by key, in wire order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Options {
    entries: BTreeMap<Name, TypedValue>,
}

impl Options {
    /// No settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a key and returns the value it had.
    pub fn insert(&mut self, key: Name, value: TypedValue) -> Option<TypedValue> {
        self.entries.insert(key, value)
    }

    /// Removes a key.
    pub fn remove(&mut self, key: &str) -> Option<TypedValue> {
        self.entries.remove(key)
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&TypedValue> {
        self.entries.get(key)
    }

    /// Whether a key is set.
    pub fn contains(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    /// Keys and values, keys ascending.
    pub fn iter(&self) -> impl Iterator<Item = (&Name, &TypedValue)> {
        self.entries.iter()
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes the block takes on the wire.
    pub fn encoded_len(&self) -> usize {
        self.entries
            .iter()
            .map(|(key, value)| 5 + key.len() + value.encoded_len())
            .sum()
    }

    /// Checks the limits of a block: at most 1024 entries and 100000 bytes.
    pub fn check_limits(&self) -> Result<(), DecodeError> {
        if self.len() > MAX_OPTIONS {
            let error = DecodeError::length("options", self.len(), "at most 1024 entries");
            return Err(error.with_code(ErrorCode::OptionsBlockTooLarge));
        }
        check_size(self.encoded_len())
    }
}

impl FromIterator<(Name, TypedValue)> for Options {
    fn from_iter<I: IntoIterator<Item = (Name, TypedValue)>>(entries: I) -> Self {
        Self {
            entries: entries.into_iter().collect(),
        }
    }
}

fn check_size(length: usize) -> Result<(), DecodeError> {
    if length > MAX_OPTIONS_BYTES {
        let error = DecodeError::length("options", length, "at most 100000 bytes");
        return Err(error.with_code(ErrorCode::OptionsBlockTooLarge));
    }
    Ok(())
}

impl Encode for Options {
    fn encode(&self, out: &mut BytesMut) {
        for (key, value) in &self.entries {
            write_key(key, out);
            value.write(out);
        }
    }
}

fn write_key(key: &Name, out: &mut BytesMut) {
    use bytes::BufMut;
    out.put_u8(ValueKind::String.code());
    out.put_u32_le(key.len() as u32);
    out.put_slice(key.as_bytes());
}

impl<'a> Decode<'a> for Options {
    /// Reads to the end of the bytes.
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        check_size(reader.remaining())?;
        let mut entries = BTreeMap::new();
        while !reader.is_empty() {
            if entries.len() == MAX_OPTIONS {
                let error = DecodeError::length("options", MAX_OPTIONS + 1, "at most 1024 entries");
                return Err(error.with_code(ErrorCode::OptionsBlockTooLarge));
            }
            let (kind, key) = TypedValue::read_parts(reader, "option key")?;
            if kind != ValueKind::String {
                return Err(DecodeError::value("option key kind", kind.code(), "2 (string)"));
            }
            let text = std::str::from_utf8(key).map_err(|_| DecodeError::new("option key", Problem::Utf8))?;
            let key = Name::new(text).map_err(|error| error.into_decode_error("option key"))?;
            let value = TypedValue::read(reader, "option value")?;
            if entries.contains_key(&key) {
                return Err(DecodeError::new("options", Problem::Duplicate(format!("key '{key}'"))));
            }
            entries.insert(key, value);
        }
        Ok(Self { entries })
    }
}
