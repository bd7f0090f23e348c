//! User headers as one run of bytes: for each the kind, the length in two bytes, lowest first, and the
//! bytes of its key, and the same of its value.

use bytes::Bytes;
use iggy::{IggyError, TypedValue, UserHeaders, ValueKind};
use iggy_ffi::Failure;
use iggy_protocol::codec::Decode;

fn take(bytes: &mut &[u8]) -> Result<TypedValue, Failure> {
    let cut = || Failure::invalid("the headers are cut off");
    let [kind, low, high, rest @ ..] = *bytes else {
        return Err(cut());
    };
    let (value, rest) = rest
        .split_at_checked(usize::from(u16::from_le_bytes([*low, *high])))
        .ok_or_else(cut)?;
    *bytes = rest;
    let kind = ValueKind::from_u8(*kind).ok_or_else(|| Failure::invalid("a header has a kind of 1 to 255"))?;
    let value = TypedValue::new(kind, Bytes::copy_from_slice(value));
    value.map_err(|error| IggyError::from(error).into())
}

/// Headers that Swift wrote.
pub fn read(mut bytes: &[u8]) -> Result<UserHeaders, Failure> {
    let mut headers = UserHeaders::new();
    while !bytes.is_empty() {
        let key = take(&mut bytes)?;
        headers.insert(key, take(&mut bytes)?);
    }
    Ok(headers)
}

fn put(value: &TypedValue, out: &mut Vec<u8>) {
    let bytes = value.bytes();
    out.push(value.kind().code());
    // Values are 1 to 255 bytes long.
    out.extend_from_slice(&u16::try_from(bytes.len()).unwrap_or(u16::MAX).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Headers of a message that came, for Swift.
pub fn write(block: &[u8]) -> Result<Vec<u8>, Failure> {
    let headers = UserHeaders::from_bytes(block).map_err(IggyError::from)?;
    let mut out = Vec::with_capacity(block.len());
    for (key, value) in headers.iter() {
        put(key, &mut out);
        put(value, &mut out);
    }
    Ok(out)
}
