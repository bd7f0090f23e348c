//! Values on their way to PHP and from it: arrays and scalars as JSON, as the operations of `iggy-ffi` take and return it.

use ext_php_rs::boxed::ZBox;
use ext_php_rs::convert::IntoZval;
use ext_php_rs::exception::PhpException;
use ext_php_rs::prelude::PhpResult;
use ext_php_rs::types::{ArrayKey, ZendHashTable, ZendStr, Zval};
use iggy::{Identifier, IggyError};
use serde_json::{Map, Number, Value};

use crate::failure::{OrThrow, invalid};
use crate::options;

/// Deeper arrays are refused: nothing here needs more than permissions do.
const DEEPEST: usize = 8;

/// Members that are lists; PHP writes an empty one as it writes an empty mapping.
const LISTS: &[&str] = &["partitions", "global", "granted", "types", "groups", "reset"];

/// Members that are mappings with numbers as keys; PHP writes those from 0 on as a list.
const NUMBERED: &[&str] = &["streams", "topics"];

/// Bytes as a string of PHP: the one copy of a payload.
pub fn bytes(bytes: &[u8]) -> Zval {
    let mut made = Zval::new();
    made.set_zend_string(ZendStr::new(bytes, false));
    made
}

/// The bytes of a string of PHP.
pub fn bytes_of<'a>(what: &str, given: &'a Zval) -> PhpResult<&'a [u8]> {
    let text = given.zend_str();
    text.map(ZendStr::as_bytes)
        .ok_or_else(|| invalid(format!("{what} is a string")))
}

/// A number that may be above what an `int` of PHP holds: then it is the text of its digits.
pub fn wide(number: impl Into<u128>) -> PhpResult<Zval> {
    let number = number.into();
    Ok(match i64::try_from(number) {
        Ok(number) => number.into_zval(false)?,
        Err(_) => number.to_string().into_zval(false)?,
    })
}

/// A number from an `int`, or from the text of its digits.
pub fn number<T: std::str::FromStr + TryFrom<i64>>(what: &str, bounds: &str, given: &Zval) -> PhpResult<T> {
    let read = match (given.long(), given.str()) {
        (Some(number), _) => T::try_from(number).ok(),
        (None, Some(text)) if text.bytes().all(|digit| digit.is_ascii_digit()) => text.parse().ok(),
        _ => None,
    };
    read.ok_or_else(|| invalid(format!("{what} is {bounds}, as an int or as the text of its digits")))
}

/// A number of 64 bits.
pub fn number64(what: &str, given: &Zval) -> PhpResult<u64> {
    number(what, "a number of 0..=18446744073709551615", given)
}

/// A number of 32 bits.
pub fn number32(what: &str, given: i64) -> PhpResult<u32> {
    u32::try_from(given).map_err(|_| invalid(format!("{what} is {given}, expected 0..=4294967295")))
}

/// A stream, topic, group or user: its number, or its name.
pub fn identifier(what: &str, given: &Zval) -> PhpResult<Identifier> {
    match (given.long(), given.str()) {
        (Some(number), _) => number32(what, number).map(Identifier::numeric),
        (None, Some(name)) => Identifier::named(name).map_err(IggyError::from).or_throw(),
        _ => Err(invalid(format!("{what} is a name or a number"))),
    }
}

/// As the builders of the core take it.
pub fn id_text(what: &str, given: &Zval) -> PhpResult<String> {
    match (given.long(), given.str()) {
        (Some(number), _) => number32(what, number).map(|number| number.to_string()),
        (None, Some(name)) => Ok(name.to_owned()),
        _ => Err(invalid(format!("{what} is a name or a number"))),
    }
}

/// A value as JSON; `name` is the member it is.
pub fn to_json(name: &str, given: &Zval) -> PhpResult<Value> {
    nested(name, given, 0)
}

fn nested(name: &str, given: &Zval, depth: usize) -> PhpResult<Value> {
    let given = given.dereference();
    if given.is_null() {
        return Ok(Value::Null);
    }
    if let Some(flag) = given.bool() {
        return Ok(flag.into());
    }
    if let Some(number) = given.long() {
        return Ok(number.into());
    }
    if let Some(number) = given.double() {
        let finite = Number::from_f64(number);
        return finite
            .map(Value::Number)
            .ok_or_else(|| invalid(format!("{name} is {number}")));
    }
    if let Some(text) = given.zend_str() {
        let text = std::str::from_utf8(text.as_bytes());
        return text
            .map(Value::from)
            .map_err(|_| invalid(format!("{name} is no text in UTF-8")));
    }
    if let Some(array) = given.array() {
        if depth == DEEPEST {
            return Err(invalid(format!("{name} lies deeper than {DEEPEST} arrays")));
        }
        return array_to_json(name, array, depth + 1);
    }
    options::json_of(given).ok_or_else(|| invalid(format!("{name} is of a type that is not known here")))
}

fn array_to_json(name: &str, array: &ZendHashTable, depth: usize) -> PhpResult<Value> {
    let empty_list = array.is_empty() && LISTS.contains(&name);
    let list = !array.is_empty() && array.has_sequential_keys() && !NUMBERED.contains(&name);
    if empty_list || list {
        let values = array.values().map(|each| nested(name, each, depth));
        return values.collect();
    }
    let mut members = Map::new();
    for (key, each) in array {
        let key = match key {
            ArrayKey::Long(number) => number.to_string(),
            other => other.to_string(),
        };
        let value = nested(&key, each, depth)?;
        members.insert(key, value);
    }
    Ok(Value::Object(members))
}

/// Settings as JSON: an array by name. What is `null` counts as left out.
pub fn settings(what: &str, given: Option<&ZendHashTable>) -> PhpResult<Value> {
    let Some(array) = given else {
        return Ok(Value::Object(Map::new()));
    };
    match array_to_json("", array, 1)? {
        Value::Object(mut members) => {
            members.retain(|_, value| !value.is_null());
            Ok(Value::Object(members))
        }
        _ => Err(invalid(format!("{what} are an array by name"))),
    }
}

/// Adds an argument to others.
pub fn with(mut arguments: Value, name: &str, value: impl Into<Value>) -> Value {
    if let Some(members) = arguments.as_object_mut() {
        members.insert(name.to_owned(), value.into());
    }
    arguments
}

/// JSON as a value of PHP.
pub fn from_json(value: &Value) -> PhpResult<Zval> {
    Ok(match value {
        Value::Null => Zval::null(),
        Value::Bool(flag) => flag.into_zval(false)?,
        Value::String(text) => bytes(text.as_bytes()),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => number.into_zval(false)?,
            (None, Some(number)) => wide(number)?,
            _ => number.as_f64().unwrap_or(f64::NAN).into_zval(false)?,
        },
        Value::Array(values) => {
            let mut list = ZendHashTable::with_capacity(capacity(values.len()));
            for each in values {
                list.push(from_json(each)?)?;
            }
            array(list)
        }
        Value::Object(members) => {
            let mut made = ZendHashTable::with_capacity(capacity(members.len()));
            for (key, each) in members {
                made.insert(key.as_str(), from_json(each)?)?;
            }
            array(made)
        }
    })
}

fn capacity(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX).min(1 << 20)
}

/// An array as a value.
pub fn array(made: ZBox<ZendHashTable>) -> Zval {
    let mut value = Zval::new();
    value.set_hashtable(made);
    value
}

/// A list of objects.
pub fn list<T: IntoZval>(values: impl IntoIterator<Item = T>) -> PhpResult<Zval> {
    let mut made = ZendHashTable::new();
    for each in values {
        made.push(each)?;
    }
    Ok(array(made))
}

/// An object as a value.
pub fn object<T: IntoZval>(made: T) -> PhpResult<Zval> {
    made.into_zval(false).map_err(PhpException::from)
}
