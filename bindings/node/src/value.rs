//! Values on their way to JavaScript, and arguments on their way in.

use std::ptr;

use bytes::Bytes;
use iggy::{Consumer, Identifier, IggyError};
use napi::bindgen_prelude::{BigInt, BigUint64Array, BufferSlice, Either, Null, ToNapiValue, TypeName};
use napi::{Env, Status, ValueType, sys};
use serde_json::Value;

use crate::failure::{OrThrow, invalid};
use crate::position::{Checkpoint, Continuation};

/// A value that waits for the thread of JavaScript to become one of its own.
pub enum Js {
    Undefined,
    Null,
    Bool(bool),
    Number(f64),
    Big(u64),
    Wide(i128),
    WideUnsigned(u128),
    Text(String),
    /// Copied when it becomes a `Buffer`: the one copy of a payload.
    Bytes(Bytes),
    Numbers(Vec<u64>),
    List(Vec<Js>),
    Record(Vec<(String, Js)>),
    Checkpoint(Checkpoint),
    Continuation(Continuation),
    Reader(crate::reader::Reader),
}

impl TypeName for Js {
    fn type_name() -> &'static str {
        "value"
    }

    fn value_type() -> ValueType {
        ValueType::Unknown
    }
}

fn check(status: sys::napi_status, what: &str) -> napi::Result<()> {
    match Status::from(status) {
        Status::Ok => Ok(()),
        other => Err(napi::Error::new(other, format!("{what} cannot be made"))),
    }
}

impl ToNapiValue for Js {
    unsafe fn to_napi_value(env: sys::napi_env, value: Self) -> napi::Result<sys::napi_value> {
        // SAFETY: `env` is the environment of the current thread, as the caller promises; all values are of it.
        unsafe {
            match value {
                Self::Undefined => ToNapiValue::to_napi_value(env, ()),
                Self::Null => ToNapiValue::to_napi_value(env, Null),
                Self::Bool(value) => ToNapiValue::to_napi_value(env, value),
                Self::Number(value) => ToNapiValue::to_napi_value(env, value),
                Self::Big(value) => ToNapiValue::to_napi_value(env, BigInt::from(value)),
                Self::Wide(value) => ToNapiValue::to_napi_value(env, BigInt::from(value)),
                Self::WideUnsigned(value) => ToNapiValue::to_napi_value(env, BigInt::from(value)),
                Self::Text(value) => ToNapiValue::to_napi_value(env, value),
                Self::Bytes(bytes) => {
                    let copied = BufferSlice::copy_from(&Env::from_raw(env), &bytes)?;
                    ToNapiValue::to_napi_value(env, &copied)
                }
                Self::Numbers(numbers) => ToNapiValue::to_napi_value(env, BigUint64Array::new(numbers)),
                Self::List(values) => list(env, values),
                Self::Record(members) => record(env, members),
                Self::Checkpoint(value) => ToNapiValue::to_napi_value(env, value),
                Self::Continuation(value) => ToNapiValue::to_napi_value(env, value),
                Self::Reader(value) => ToNapiValue::to_napi_value(env, value),
            }
        }
    }
}

/// # Safety
/// `env` is the environment of the current thread.
unsafe fn list(env: sys::napi_env, values: Vec<Js>) -> napi::Result<sys::napi_value> {
    let mut made = ptr::null_mut();
    // SAFETY: as promised for `env`; `made` was made by the call before.
    unsafe {
        check(
            sys::napi_create_array_with_length(env, values.len(), &raw mut made),
            "an array",
        )?;
        for (index, value) in (0..).zip(values) {
            let value = Js::to_napi_value(env, value)?;
            check(sys::napi_set_element(env, made, index, value), "an array")?;
        }
    }
    Ok(made)
}

/// # Safety
/// `env` is the environment of the current thread.
unsafe fn record(env: sys::napi_env, members: Vec<(String, Js)>) -> napi::Result<sys::napi_value> {
    let mut made = ptr::null_mut();
    // SAFETY: as promised for `env`; `made` was made by the call before.
    unsafe {
        check(sys::napi_create_object(env, &raw mut made), "an object")?;
        for (name, value) in members {
            let name = ToNapiValue::to_napi_value(env, name)?;
            let value = Js::to_napi_value(env, value)?;
            check(sys::napi_set_property(env, made, name, value), "an object")?;
        }
    }
    Ok(made)
}

/// Members that may be above 2^53, besides those that end in `_at` or `_op`.
const BIG: &[&str] = &[
    "available_memory",
    "base_offset",
    "current_offset",
    "expiry",
    "free_disk_space",
    "generation",
    "hits",
    "incarnation",
    "memory_usage",
    "messages_count",
    "messages_size_bytes",
    "misses",
    "next_producer_id",
    "op",
    "read_bytes",
    "retained_since",
    "run_time",
    "session",
    "size_bytes",
    "start_time",
    "stored_offset",
    "timestamp",
    "total_disk_space",
    "total_memory",
    "uncertain_operations",
    "written_bytes",
];

/// Members whose own members have names of the application or the server, which stay as they are.
const AS_THEY_ARE: &[&str] = &["derived_options", "options", "set", "default"];

fn camel(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut raise = false;
    for letter in name.chars() {
        if letter == '_' && !out.is_empty() {
            raise = true;
        } else if raise {
            out.extend(letter.to_uppercase());
            raise = false;
        } else {
            out.push(letter);
        }
    }
    out
}

/// A result of an operation; `name` is the member it is, or the operation.
pub fn shown(name: &str, value: Value) -> Js {
    match value {
        Value::Null => Js::Null,
        Value::Bool(value) => Js::Bool(value),
        Value::String(text) => Js::Text(text),
        Value::Number(number) => {
            let big = BIG.contains(&name) || name.ends_with("_at") || name.ends_with("_op");
            match number.as_u64().filter(|_| big) {
                Some(value) => Js::Big(value),
                None => Js::Number(number.as_f64().unwrap_or(f64::NAN)),
            }
        }
        Value::Array(values) => Js::List(values.into_iter().map(|value| shown(name, value)).collect()),
        Value::Object(members) => {
            let keep = AS_THEY_ARE.contains(&name);
            let member = |(key, value): (String, Value)| {
                let shown = shown(if keep { "" } else { &key }, value);
                (if keep { key } else { camel(&key) }, shown)
            };
            Js::Record(members.into_iter().map(member).collect())
        }
    }
}

/// Reads JSON that the package wrote.
pub fn json(text: &str) -> napi::Result<Value> {
    serde_json::from_str(text).map_err(|error| invalid(error.to_string()))
}

/// A number of 32 bits.
#[allow(clippy::cast_sign_loss, reason = "checked")]
pub fn whole(what: &str, number: f64) -> napi::Result<u32> {
    if number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number) {
        Ok(number as u32)
    } else {
        Err(invalid(format!(
            "{what} is {number}, expected a whole number of 0..=4294967295"
        )))
    }
}

/// A number of 64 bits.
pub fn wide(what: &str, number: &BigInt) -> napi::Result<u64> {
    match number.get_u64() {
        (false, value, true) => Ok(value),
        _ => Err(invalid(format!("{what} is outside 0..=18446744073709551615"))),
    }
}

/// A stream, topic, group or consumer: its number, or its name.
pub type Id = Either<String, f64>;

/// The identifier of something.
pub fn identifier(id: &Id) -> napi::Result<Identifier> {
    match id {
        Either::A(name) => Identifier::named(name).map_err(IggyError::from).or_throw(),
        Either::B(number) => whole("a number of something", *number).map(Identifier::numeric),
    }
}

/// As the builders of the core take it.
pub fn id_text(id: Id) -> napi::Result<String> {
    match id {
        Either::A(name) => Ok(name),
        Either::B(number) => whole("a number of something", number).map(|number| number.to_string()),
    }
}

/// Who reads.
pub fn consumer(kind: &str, id: &Id) -> napi::Result<Consumer> {
    let id = identifier(id)?;
    match kind {
        "consumer" => Ok(Consumer::new(id)),
        "group" => Ok(Consumer::group(id)),
        "external" => Ok(Consumer::external(id)),
        other => Err(invalid(format!(
            "'{other}' is no kind of consumer; known are consumer, group and external"
        ))),
    }
}
