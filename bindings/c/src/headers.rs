//! User headers: typed keys and typed values, each the bytes of its kind, lowest first.

use bytes::Bytes;
use iggy::{IggyError, TypedValue, UserHeaders, ValueKind};
use iggy_ffi::Failure;
use iggy_protocol::codec::Decode;

use crate::boundary::{IggyBytes, IggyText, Place, given, guarded};
use crate::failure::IggyFailure;

/// A typed value. Kinds: 1 raw, 2 string, 3 bool, 4 int8, 5 int16, 6 int32, 7 int64, 8 int128, 9 uint8, 10 uint16,
/// 11 uint32, 12 uint64, 13 uint128, 14 float32, 15 float64; what a later version defines is passed on.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct IggyTyped {
    kind: u8,
    /// 1 to 255 bytes.
    bytes: IggyBytes,
}

impl IggyTyped {
    fn read(&self) -> Result<TypedValue, Failure> {
        let kind = ValueKind::from_u8(self.kind);
        let kind = kind.ok_or_else(|| Failure::invalid("a header has a kind of 1 to 255"))?;
        let value = TypedValue::new(kind, Bytes::copy_from_slice(self.bytes.read()));
        value.map_err(|error| IggyError::from(error).into())
    }

    fn of(value: &TypedValue) -> Self {
        Self {
            kind: value.kind().code(),
            bytes: IggyBytes::of(value.bytes()),
        }
    }
}

/// Headers of a message, or of several.
pub struct IggyHeaders(pub(crate) UserHeaders);

/// No headers.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_headers_new() -> Box<IggyHeaders> {
    Box::new(IggyHeaders(UserHeaders::new()))
}

/// Frees headers.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_headers_free(headers: Option<Box<IggyHeaders>>) {
    drop(headers);
}

/// Sets a header, in place of one with the same key. Returns false, and why, when a kind and its bytes do not fit.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_headers_set(
    headers: Option<&mut IggyHeaders>,
    key: IggyTyped,
    value: IggyTyped,
    failure: *mut *mut IggyFailure,
) -> bool {
    let set = guarded(|| {
        given("headers", headers)?.0.insert(key.read()?, value.read()?);
        Ok(())
    });
    Place::at(failure).settle(set).is_some()
}

/// Sets a header whose key is text, in place of one with the same key.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_headers_set_text(
    headers: Option<&mut IggyHeaders>,
    key: IggyText,
    value: IggyTyped,
    failure: *mut *mut IggyFailure,
) -> bool {
    let set = guarded(|| {
        let key = TypedValue::string(key.read()?).map_err(IggyError::from)?;
        given("headers", headers)?.0.insert(key, value.read()?);
        Ok(())
    });
    Place::at(failure).settle(set).is_some()
}

/// The headers in the block of a message that was read. NULL, and why, when it is malformed.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_headers_decode(block: IggyBytes, failure: *mut *mut IggyFailure) -> Option<Box<IggyHeaders>> {
    let decoded = guarded(|| {
        let headers = UserHeaders::from_bytes(block.read()).map_err(IggyError::from)?;
        Ok(Box::new(IggyHeaders(headers)))
    });
    Place::at(failure).settle(decoded)
}

/// How many headers there are.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_headers_count(headers: Option<&IggyHeaders>) -> usize {
    headers.map_or(0, |headers| headers.0.len())
}

/// A header by its place, in the order of keys; false beyond the end.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_headers_at(
    headers: Option<&IggyHeaders>,
    index: usize,
    key: *mut IggyTyped,
    value: *mut IggyTyped,
) -> bool {
    let Some((found_key, found)) = headers.and_then(|headers| headers.0.iter().nth(index)) else {
        return false;
    };
    Place::at(key).put(IggyTyped::of(found_key));
    Place::at(value).put(IggyTyped::of(found));
    true
}
