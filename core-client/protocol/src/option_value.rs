//! Values of options: from what a client sent (canonical or text) to the canonical kind, within the allowed range.

use crate::byte_size::IggyByteSize;
use crate::duration::IggyDuration;
use crate::error_code::ErrorCode;
use crate::limits::{MAX_REPLICAS, MAX_USERNAME_BYTES, MIN_USERNAME_BYTES, NEVER, UNLIMITED};
use crate::option_catalog::{OptionError, OptionSpec, Scope};
use crate::typed_value::{TypedValue, ValueKind};

const SEGMENT_SIZES: std::ops::RangeInclusive<u64> = 1_048_576..=1_073_741_824;

/// Converts a value to the canonical kind of its option and checks its range. `None` means "server default": the key is
/// dropped.
pub(crate) fn canonical(
    scope: Scope,
    spec: &OptionSpec,
    value: &TypedValue,
) -> Result<Option<TypedValue>, OptionError> {
    let refuse = |code, reason: String| OptionError::new(scope, spec.key, code, reason);
    let invalid = |allowed: &str| {
        refuse(
            ErrorCode::InvalidOptionValue,
            format!("value '{value}' is not allowed, expected {allowed}"),
        )
    };
    match spec.key {
        "name" => column_text(scope, spec, value, 1..=255, name_error(scope)).map(Some),
        "username" => {
            let range = MIN_USERNAME_BYTES..=MAX_USERNAME_BYTES;
            column_text(scope, spec, value, range, ErrorCode::InvalidUsername).map(Some)
        }
        "status" => match value.as_str() {
            Ok("active" | "inactive") => Ok(Some(value.clone())),
            _ => Err(refuse(
                ErrorCode::InvalidUserStatus,
                format!("value '{value}' is not allowed, expected active or inactive"),
            )),
        },
        "compression_algorithm" => match (value.as_str(), value.as_uint8()) {
            (Ok("none"), _) | (_, Ok(1)) => Ok(TypedValue::string("none").ok()),
            (Ok("gzip"), _) | (_, Ok(2)) => Ok(TypedValue::string("gzip").ok()),
            _ => Err(invalid("none or gzip")),
        },
        "durability" | "consumer_offset_durability" => one_of(value, &["replicated", "persisted"])
            .map(Some)
            .ok_or_else(|| invalid("replicated or persisted")),
        "partition_resize_policy" => one_of(value, &["mutable", "fixed"])
            .map(Some)
            .ok_or_else(|| invalid("mutable or fixed")),
        "message_expiry" => {
            let micros = wide(value, expiry_text)
                .ok_or_else(|| invalid("microseconds, a duration such as '7 days', never or server_default"))?;
            Ok((micros != 0).then(|| TypedValue::uint64(micros)))
        }
        "max_topic_size" => {
            let bytes = wide(value, size_text)
                .ok_or_else(|| invalid("bytes, a size such as '10 GiB', unlimited or server_default"))?;
            Ok((bytes != 0).then(|| TypedValue::uint64(bytes)))
        }
        "segment_size" => match wide(value, size_text) {
            Some(0) => Ok(None),
            Some(bytes) if SEGMENT_SIZES.contains(&bytes) && bytes % 512 == 0 => Ok(Some(TypedValue::uint64(bytes))),
            _ => Err(invalid("a multiple of 512 in 1048576..=1073741824 bytes")),
        },
        "size_of_messages_required_to_save" => match wide(value, size_text) {
            Some(0) => Ok(None),
            Some(bytes) if bytes <= 1_073_741_824 => Ok(Some(TypedValue::uint64(bytes))),
            _ => Err(invalid("at most 1073741824 bytes")),
        },
        "messages_required_to_save" => match narrow(value) {
            Some(count) if (1..=16_777_216).contains(&count) => Ok(Some(TypedValue::uint32(count))),
            _ => Err(invalid("1..=16777216")),
        },
        "replication_factor" => match narrow(value) {
            Some(count) if (1..=MAX_REPLICAS as u32).contains(&count) => Ok(Some(TypedValue::uint32(count))),
            _ => Err(refuse(
                ErrorCode::InvalidReplicationFactor,
                format!("value '{value}' is not allowed, expected 1..=32"),
            )),
        },
        "preallocate_segments" => truth(value)
            .map(|flag| Some(TypedValue::bool(flag)))
            .ok_or_else(|| invalid("true or false")),
        "encryption_key" => encryption_key(value).map(Some).ok_or_else(|| {
            refuse(
                ErrorCode::InvalidEncryptionKey,
                "must be 32 bytes, raw or as base64 text".to_owned(),
            )
        }),
        _ => Err(refuse(
            ErrorCode::ReadOnlyOption,
            "is set by the server alone".to_owned(),
        )),
    }
}

const fn name_error(scope: Scope) -> ErrorCode {
    match scope {
        Scope::Stream => ErrorCode::InvalidStreamName,
        Scope::Topic => ErrorCode::InvalidTopicName,
        Scope::User => ErrorCode::InvalidUsername,
    }
}

fn column_text(
    scope: Scope,
    spec: &OptionSpec,
    value: &TypedValue,
    range: std::ops::RangeInclusive<usize>,
    code: ErrorCode,
) -> Result<TypedValue, OptionError> {
    match value.as_str() {
        Ok(text) if range.contains(&text.len()) => Ok(value.clone()),
        _ => {
            let reason = format!("must be text of {}..={} bytes", range.start(), range.end());
            Err(OptionError::new(scope, spec.key, code, reason))
        }
    }
}

fn one_of(value: &TypedValue, allowed: &[&str]) -> Option<TypedValue> {
    value
        .as_str()
        .ok()
        .filter(|text| allowed.contains(text))
        .map(|_| value.clone())
}

/// A `uint64`, or what a text form of it means.
fn wide(value: &TypedValue, parse: fn(&str) -> Option<u64>) -> Option<u64> {
    match value.kind() {
        ValueKind::Uint64 => value.as_uint64().ok(),
        ValueKind::String => parse(value.as_str().ok()?),
        _ => None,
    }
}

fn narrow(value: &TypedValue) -> Option<u32> {
    match value.kind() {
        ValueKind::Uint32 => value.as_uint32().ok(),
        ValueKind::String => value.as_str().ok()?.trim().parse().ok(),
        _ => None,
    }
}

fn truth(value: &TypedValue) -> Option<bool> {
    match value.kind() {
        ValueKind::Bool => value.as_bool().ok(),
        ValueKind::String => value.as_str().ok()?.trim().parse().ok(),
        _ => None,
    }
}

/// The text forms of an expiry: microseconds, a duration, `never` or `server_default`.
pub fn expiry_text(text: &str) -> Option<u64> {
    let text = text.trim();
    match text.to_ascii_lowercase().as_str() {
        "never" | "none" | "unlimited" => Some(NEVER),
        "server_default" | "default" => Some(0),
        _ => text
            .parse()
            .ok()
            .or_else(|| text.parse::<IggyDuration>().ok().map(IggyDuration::as_micros)),
    }
}

/// The text forms of a size: bytes, a size with a unit, `unlimited` or `server_default`.
pub fn size_text(text: &str) -> Option<u64> {
    let text = text.trim();
    match text.to_ascii_lowercase().as_str() {
        "unlimited" | "none" => Some(UNLIMITED),
        "server_default" | "default" => Some(0),
        _ => text
            .parse()
            .ok()
            .or_else(|| text.parse::<IggyByteSize>().ok().map(IggyByteSize::as_bytes_u64)),
    }
}

fn encryption_key(value: &TypedValue) -> Option<TypedValue> {
    match value.kind() {
        ValueKind::Raw if value.bytes().len() == 32 => Some(value.clone()),
        ValueKind::String => {
            let key = decode_base64(value.as_str().ok()?.trim().as_bytes())?;
            (key.len() == 32).then(|| TypedValue::raw(&key).ok())?
        }
        _ => None,
    }
}

/// Standard base64 with padding; `None` for anything else.
fn decode_base64(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| -> Option<u32> {
        Some(u32::from(match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        }))
    };
    if text.is_empty() || !text.len().is_multiple_of(4) {
        return None;
    }
    let padding = text.iter().rev().take_while(|byte| **byte == b'=').count();
    if padding > 2 {
        return None;
    }
    let digits = &text[..text.len() - padding];
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for group in digits.chunks(4) {
        let mut bits = 0;
        for byte in group {
            bits = bits << 6 | digit(*byte)?;
        }
        bits <<= 6 * (4 - group.len());
        if group.len() < 4 && bits & ((1 << (8 * (4 - group.len()))) - 1) != 0 {
            return None;
        }
        bytes.extend_from_slice(&bits.to_be_bytes()[1..group.len()]);
    }
    Some(bytes)
}
