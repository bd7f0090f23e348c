//! Small results as values to look into.

use std::ffi::{CString, c_char};

use serde_json::Value;

use crate::boundary::{IggyText, guarded};

/// What a value is.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum IggyValueKind {
    /// Nothing, or no value at all.
    Null = 0,
    /// true or false.
    Bool = 1,
    /// A whole number of 0 or more.
    Unsigned = 2,
    /// A whole number below 0.
    Signed = 3,
    /// A number with a fraction.
    Float = 4,
    /// Text.
    Text = 5,
    /// A list of values.
    List = 6,
    /// Values by name.
    Object = 7,
}

/// A value, borrowed from the reply it is in.
#[repr(transparent)]
pub struct IggyValue(Value);

impl IggyValue {
    pub(crate) fn of(value: &Value) -> &Self {
        // SAFETY: `IggyValue` is transparent over `Value`.
        unsafe { &*std::ptr::from_ref(value).cast::<Self>() }
    }
}

/// What a value is.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_value_kind(value: Option<&IggyValue>) -> IggyValueKind {
    match value.map(|value| &value.0) {
        None | Some(Value::Null) => IggyValueKind::Null,
        Some(Value::Bool(_)) => IggyValueKind::Bool,
        Some(Value::Number(number)) if number.is_u64() => IggyValueKind::Unsigned,
        Some(Value::Number(number)) if number.is_i64() => IggyValueKind::Signed,
        Some(Value::Number(_)) => IggyValueKind::Float,
        Some(Value::String(_)) => IggyValueKind::Text,
        Some(Value::Array(_)) => IggyValueKind::List,
        Some(Value::Object(_)) => IggyValueKind::Object,
    }
}

/// A truth value; false for everything else.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_value_bool(value: Option<&IggyValue>) -> bool {
    value.and_then(|value| value.0.as_bool()).unwrap_or(false)
}

/// A whole number of 0 or more; 0 for everything else.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_value_unsigned(value: Option<&IggyValue>) -> u64 {
    value.and_then(|value| value.0.as_u64()).unwrap_or(0)
}

/// A whole number; 0 for everything else.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_value_signed(value: Option<&IggyValue>) -> i64 {
    value.and_then(|value| value.0.as_i64()).unwrap_or(0)
}

/// Any number; 0 for everything else.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_value_float(value: Option<&IggyValue>) -> f64 {
    value.and_then(|value| value.0.as_f64()).unwrap_or(0.0)
}

/// Text; empty for everything else.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_value_text(value: Option<&IggyValue>) -> IggyText {
    let text = value.and_then(|value| value.0.as_str());
    text.map_or(IggyText::NONE, IggyText::of)
}

/// How many values are in a list or an object; 0 for everything else.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_value_length(value: Option<&IggyValue>) -> usize {
    match value.map(|value| &value.0) {
        Some(Value::Array(values)) => values.len(),
        Some(Value::Object(members)) => members.len(),
        _ => 0,
    }
}

/// A value of a list or an object by its place; NULL beyond the end.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_value_at(value: Option<&IggyValue>, index: usize) -> Option<&IggyValue> {
    let found = match &value?.0 {
        Value::Array(values) => values.get(index),
        Value::Object(members) => members.values().nth(index),
        _ => None,
    };
    found.map(IggyValue::of)
}

/// The name of a value of an object by its place; empty beyond the end.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_value_name_at(value: Option<&IggyValue>, index: usize) -> IggyText {
    let name = match value.map(|value| &value.0) {
        Some(Value::Object(members)) => members.keys().nth(index),
        _ => None,
    };
    name.map_or(IggyText::NONE, |name| IggyText::of(name))
}

/// A value of an object by its name; NULL when there is none.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_value_get(value: Option<&IggyValue>, name: IggyText) -> Option<&IggyValue> {
    let name = name.read().ok()?;
    value?.0.get(name).map(IggyValue::of)
}

/// A value as JSON with an end mark; free it with `iggy_json_free`. NULL when there is none.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_value_json(value: Option<&IggyValue>) -> *mut c_char {
    let text = guarded(|| Ok(value.map(|value| value.0.to_string())));
    let text = text.ok().flatten().and_then(|text| CString::new(text).ok());
    text.map_or(std::ptr::null_mut(), CString::into_raw)
}

/// Frees what `iggy_value_json` returned.
///
/// # Safety
/// It was returned by that function and not freed since.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn iggy_json_free(json: *mut c_char) {
    if !json.is_null() {
        // SAFETY: it was made by `CString::into_raw`, as promised.
        drop(unsafe { CString::from_raw(json) });
    }
}
