//! Typed values of user headers.

use iggy::{IggyError, TypedValue, UserHeaders, ValueKind};
use iggy_protocol::codec::Decode;
use napi::bindgen_prelude::{BigInt, BufferSlice, Either5, JsObjectValue, Object};
use napi_derive::napi;

use crate::failure::{OrThrow, invalid};
use crate::value::Js;

/// What a value of a header may be in JavaScript.
pub type Given<'a> = Either5<String, bool, f64, BigInt, BufferSlice<'a>>;

fn wrong(kind: ValueKind, expected: &str) -> napi::Error {
    invalid(format!(
        "a header of the kind {} is {expected}",
        kind.name().unwrap_or("unknown")
    ))
}

/// A number without its sign; nothing when it has more than 128 bits.
fn magnitude(number: &BigInt) -> Option<u128> {
    let (low, high) = match *number.words.as_slice() {
        [] => (0, 0),
        [low] => (low, 0),
        [low, high] => (low, high),
        _ => return None,
    };
    Some(u128::from(high) << 64 | u128::from(low))
}

/// A whole number of a kind, from a number or a `BigInt`.
fn integer<T>(kind: ValueKind, given: &Given<'_>, make: impl Fn(T) -> TypedValue) -> napi::Result<TypedValue>
where
    T: TryFrom<i128> + TryFrom<u128>,
{
    let out = || wrong(kind, "a whole number within its bounds, above 2^53 as a BigInt");
    let value = match given {
        #[allow(clippy::cast_precision_loss, reason = "the bound is exact")]
        Given::C(number) if number.fract() == 0.0 && number.abs() <= ((1_i64 << 53) - 1) as f64 => {
            T::try_from(*number as i128).ok()
        }
        Given::D(number) => magnitude(number).and_then(|magnitude| {
            if number.sign_bit {
                0_i128
                    .checked_sub_unsigned(magnitude)
                    .and_then(|value| T::try_from(value).ok())
            } else {
                T::try_from(magnitude).ok()
            }
        }),
        _ => None,
    };
    value.map(make).ok_or_else(out)
}

fn float(kind: ValueKind, given: &Given<'_>) -> napi::Result<f64> {
    match given {
        Given::C(number) => Ok(*number),
        _ => Err(wrong(kind, "a number")),
    }
}

/// A value of a kind.
pub fn typed(kind: &str, given: &Given<'_>) -> napi::Result<TypedValue> {
    let kind = ValueKind::from_name(kind).ok_or_else(|| {
        let known: Vec<_> = ValueKind::ALL.iter().filter_map(|kind| kind.name()).collect();
        invalid(format!("'{kind}' is no kind of header; known are {}", known.join(", ")))
    })?;
    match kind {
        ValueKind::Raw => match given {
            Given::E(bytes) => TypedValue::raw(bytes).map_err(IggyError::from).or_throw(),
            _ => Err(wrong(kind, "a Buffer or Uint8Array")),
        },
        ValueKind::String => match given {
            Given::A(text) => TypedValue::string(text).map_err(IggyError::from).or_throw(),
            _ => Err(wrong(kind, "a string")),
        },
        ValueKind::Bool => match given {
            Given::B(value) => Ok(TypedValue::bool(*value)),
            _ => Err(wrong(kind, "true or false")),
        },
        ValueKind::Int8 => integer(kind, given, TypedValue::int8),
        ValueKind::Int16 => integer(kind, given, TypedValue::int16),
        ValueKind::Int32 => integer(kind, given, TypedValue::int32),
        ValueKind::Int64 => integer(kind, given, TypedValue::int64),
        ValueKind::Int128 => integer(kind, given, TypedValue::int128),
        ValueKind::Uint8 => integer(kind, given, TypedValue::uint8),
        ValueKind::Uint16 => integer(kind, given, TypedValue::uint16),
        ValueKind::Uint32 => integer(kind, given, TypedValue::uint32),
        ValueKind::Uint64 => integer(kind, given, TypedValue::uint64),
        ValueKind::Uint128 => integer(kind, given, TypedValue::uint128),
        ValueKind::Float32 => float(kind, given).map(|number| TypedValue::float32(number as f32)),
        ValueKind::Float64 => float(kind, given).map(TypedValue::float64),
        ValueKind::Unknown(_) => Err(invalid("no kind of this version")),
    }
}

fn read(value: &TypedValue) -> Result<Js, IggyError> {
    Ok(match value.kind() {
        ValueKind::String => Js::Text(value.as_str()?.to_owned()),
        ValueKind::Bool => Js::Bool(value.as_bool()?),
        ValueKind::Int8 => Js::Number(value.as_int8()?.into()),
        ValueKind::Int16 => Js::Number(value.as_int16()?.into()),
        ValueKind::Int32 => Js::Number(value.as_int32()?.into()),
        ValueKind::Int64 => Js::Wide(value.as_int64()?.into()),
        ValueKind::Int128 => Js::Wide(value.as_int128()?),
        ValueKind::Uint8 => Js::Number(value.as_uint8()?.into()),
        ValueKind::Uint16 => Js::Number(value.as_uint16()?.into()),
        ValueKind::Uint32 => Js::Number(value.as_uint32()?.into()),
        ValueKind::Uint64 => Js::Big(value.as_uint64()?),
        ValueKind::Uint128 => Js::WideUnsigned(value.as_uint128()?),
        ValueKind::Float32 => Js::Number(value.as_float32()?.into()),
        ValueKind::Float64 => Js::Number(value.as_float64()?),
        ValueKind::Raw | ValueKind::Unknown(_) => Js::Bytes(bytes::Bytes::copy_from_slice(value.bytes())),
    })
}

/// The name of the kind, `null` for one this version does not know, and the value.
fn entry(value: &TypedValue) -> Result<[Js; 2], IggyError> {
    let kind = value.kind().name().map_or(Js::Null, |name| Js::Text(name.to_owned()));
    Ok([kind, read(value)?])
}

/// The headers in an encoded block: for each the kind and value of its key, and those of itself.
///
/// # Errors
/// The block is malformed.
#[napi]
#[allow(clippy::needless_pass_by_value, reason = "as values arrive")]
pub fn decode_headers(block: BufferSlice<'_>) -> napi::Result<Js> {
    let headers = UserHeaders::from_bytes(&block).map_err(IggyError::from).or_throw()?;
    let mut found = Vec::with_capacity(headers.len());
    for (key, value) in headers.iter() {
        let (key, value) = (entry(key).or_throw()?, entry(value).or_throw()?);
        found.push(Js::List(key.into_iter().chain(value).collect()));
    }
    Ok(Js::List(found))
}

/// Whether a header may have this value.
///
/// # Errors
/// It may not.
#[napi]
#[allow(clippy::needless_pass_by_value, reason = "as values arrive")]
pub fn check_header(kind: String, value: Given<'_>) -> napi::Result<()> {
    typed(&kind, &value).map(drop)
}

/// Headers as the package lists them: kind and value of the key, kind and value.
pub fn from_list(list: &Object<'_>) -> napi::Result<UserHeaders> {
    let mut headers = UserHeaders::new();
    for index in 0..list.get_array_length()? {
        let entry: Object<'_> = list.get_element(index)?;
        let key = typed(&entry.get_element::<String>(0)?, &entry.get_element(1)?)?;
        let value = typed(&entry.get_element::<String>(2)?, &entry.get_element(3)?)?;
        headers.insert(key, value);
    }
    Ok(headers)
}
