//! Typed values of user headers.

use ext_php_rs::convert::{FromZval, IntoZval};
use ext_php_rs::prelude::*;
use ext_php_rs::types::{ArrayKey, ZendHashTable, Zval};
use iggy::{IggyError, TypedValue, UserHeaders, ValueKind};

use crate::failure::{OrThrow, invalid};
use crate::value::{array, bytes, bytes_of, list, object, wide};

/// A value of a header with its kind.
#[php_class]
#[php(name = "Iggy\\HeaderValue")]
pub struct HeaderValue(pub TypedValue);

/// A whole number from an `int`, or from the text of its digits with a sign.
fn integer<T: std::str::FromStr + TryFrom<i64>>(
    kind: ValueKind,
    given: &Zval,
    make: impl Fn(T) -> TypedValue,
) -> PhpResult<TypedValue> {
    let read = match (given.long(), given.str()) {
        (Some(number), _) => T::try_from(number).ok(),
        (None, Some(text)) => text.parse().ok(),
        _ => None,
    };
    let name = kind.name().unwrap_or("unknown");
    let message = || format!("a header of the kind {name} is a whole number within its bounds, as an int or as text");
    read.map(make).ok_or_else(|| invalid(message()))
}

fn float(kind: ValueKind, given: &Zval) -> PhpResult<f64> {
    let name = kind.name().unwrap_or("unknown");
    f64::from_zval(given).ok_or_else(|| invalid(format!("a header of the kind {name} is a float")))
}

fn typed(kind: ValueKind, given: &Zval) -> PhpResult<TypedValue> {
    match kind {
        ValueKind::Raw => TypedValue::raw(bytes_of("a raw header", given)?)
            .map_err(IggyError::from)
            .or_throw(),
        ValueKind::String => {
            let text = given
                .str()
                .ok_or_else(|| invalid("a header of the kind string is text in UTF-8"))?;
            TypedValue::string(text).map_err(IggyError::from).or_throw()
        }
        ValueKind::Bool => {
            let flag = given
                .bool()
                .ok_or_else(|| invalid("a header of the kind bool is true or false"))?;
            Ok(TypedValue::bool(flag))
        }
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

fn read(value: &TypedValue) -> Result<PhpResult<Zval>, IggyError> {
    let int = |number: i64| object(number);
    Ok(match value.kind() {
        ValueKind::String => Ok(bytes(value.as_str()?.as_bytes())),
        ValueKind::Bool => object(value.as_bool()?),
        ValueKind::Int8 => int(value.as_int8()?.into()),
        ValueKind::Int16 => int(value.as_int16()?.into()),
        ValueKind::Int32 => int(value.as_int32()?.into()),
        ValueKind::Int64 => int(value.as_int64()?),
        ValueKind::Int128 => {
            let number = value.as_int128()?;
            i64::try_from(number).map_or_else(|_| object(number.to_string()), int)
        }
        ValueKind::Uint8 => int(value.as_uint8()?.into()),
        ValueKind::Uint16 => int(value.as_uint16()?.into()),
        ValueKind::Uint32 => int(value.as_uint32()?.into()),
        ValueKind::Uint64 => wide(value.as_uint64()?),
        ValueKind::Uint128 => wide(value.as_uint128()?),
        ValueKind::Float32 => object(f64::from(value.as_float32()?)),
        ValueKind::Float64 => object(value.as_float64()?),
        ValueKind::Raw | ValueKind::Unknown(_) => Ok(bytes(value.bytes())),
    })
}

#[php_impl]
impl HeaderValue {
    pub fn __construct(kind: String, value: &Zval) -> PhpResult<Self> {
        let kind = ValueKind::from_name(&kind).ok_or_else(|| {
            let known: Vec<_> = ValueKind::ALL.iter().filter_map(|kind| kind.name()).collect();
            invalid(format!("'{kind}' is no kind of header; known are {}", known.join(", ")))
        })?;
        typed(kind, value).map(Self)
    }

    #[php(getter)]
    pub fn get_kind(&self) -> Option<String> {
        self.0.kind().name().map(str::to_owned)
    }

    #[php(getter)]
    pub fn get_value(&self) -> PhpResult<Zval> {
        read(&self.0).or_throw()?
    }

    pub fn equals(&self, other: &HeaderValue) -> bool {
        self.0 == other.0
    }
}

/// A value of PHP as the kind it has by itself: text or bytes, truth values, `int64` and `float64`.
fn by_itself(given: &Zval) -> PhpResult<TypedValue> {
    if let Some(value) = <&HeaderValue>::from_zval(given) {
        return Ok(value.0.clone());
    }
    if let Some(flag) = given.bool() {
        return Ok(TypedValue::bool(flag));
    }
    if let Some(number) = given.long() {
        return Ok(TypedValue::int64(number));
    }
    if let Some(number) = given.double() {
        return Ok(TypedValue::float64(number));
    }
    let bytes =
        bytes_of("a header", given).map_err(|_| invalid("a header is a string, bool, int, float or HeaderValue"))?;
    let made = match std::str::from_utf8(bytes) {
        Ok(text) => TypedValue::string(text),
        Err(_) => TypedValue::raw(bytes),
    };
    made.map_err(IggyError::from).or_throw()
}

/// Headers from an array by key, or from a list of pairs of key and value.
pub fn from_array(given: &ZendHashTable) -> PhpResult<UserHeaders> {
    let mut headers = UserHeaders::new();
    for (key, value) in given {
        let pair = value.array().filter(|pair| pair.len() == 2);
        let (key, value) = match (key, pair) {
            (ArrayKey::Long(_), Some(pair)) => {
                let (Some(key), Some(value)) = (pair.get_index(0), pair.get_index(1)) else {
                    return Err(invalid("headers in a list are pairs of key and value"));
                };
                (by_itself(key)?, by_itself(value)?)
            }
            (key, _) => {
                // PHP turns a key of digits into a number; what was meant is the text.
                let key = TypedValue::string(key.to_string())
                    .map_err(IggyError::from)
                    .or_throw()?;
                (key, by_itself(value)?)
            }
        };
        headers.insert(key, value);
    }
    Ok(headers)
}

/// Headers with text as keys, by key.
pub fn by_key(headers: &UserHeaders) -> PhpResult<Zval> {
    let mut made = ZendHashTable::new();
    for (key, value) in headers.iter() {
        if let Ok(key) = key.as_str() {
            made.insert(key, HeaderValue(value.clone()))?;
        }
    }
    Ok(array(made))
}

/// All headers, as pairs of key and value.
pub fn pairs(headers: &UserHeaders) -> PhpResult<Zval> {
    let pair = |(key, value): (&TypedValue, &TypedValue)| list([HeaderValue(key.clone()), HeaderValue(value.clone())]);
    let made: PhpResult<Vec<Zval>> = headers.iter().map(pair).collect();
    let mut found = ZendHashTable::new();
    for each in made? {
        found.push(each)?;
    }
    Ok(array(found).into_zval(false)?)
}
