//! Typed values of user headers.

use iggy::{TypedValue, UserHeaders, ValueKind};
use iggy_ffi::Failure;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyString};

use crate::failure::exception;

/// A value of a header with its kind.
#[pyclass(frozen, eq, hash, module = "iggy")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct HeaderValue(pub TypedValue);

fn number<T>(value: &Bound<'_, PyAny>, make: impl Fn(T) -> TypedValue) -> PyResult<TypedValue>
where
    T: for<'a, 'py> FromPyObject<'a, 'py>,
{
    value.extract::<T>().map(make).map_err(Into::into)
}

#[pymethods]
impl HeaderValue {
    #[new]
    fn new(kind: &str, value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = value.py();
        let refused = |error: iggy::IggyError| exception(py, &error.into());
        let kind = ValueKind::from_name(kind).ok_or_else(|| {
            let known: Vec<_> = ValueKind::ALL.iter().filter_map(|kind| kind.name()).collect();
            PyValueError::new_err(format!("'{kind}' is no kind of header; known are {}", known.join(", ")))
        })?;
        let made = match kind {
            ValueKind::Raw => TypedValue::raw(value.extract::<&[u8]>()?).map_err(|error| refused(error.into()))?,
            ValueKind::String => TypedValue::string(value.extract::<&str>()?).map_err(|error| refused(error.into()))?,
            ValueKind::Bool => TypedValue::bool(value.extract()?),
            ValueKind::Int8 => number(value, TypedValue::int8)?,
            ValueKind::Int16 => number(value, TypedValue::int16)?,
            ValueKind::Int32 => number(value, TypedValue::int32)?,
            ValueKind::Int64 => number(value, TypedValue::int64)?,
            ValueKind::Int128 => number(value, TypedValue::int128)?,
            ValueKind::Uint8 => number(value, TypedValue::uint8)?,
            ValueKind::Uint16 => number(value, TypedValue::uint16)?,
            ValueKind::Uint32 => number(value, TypedValue::uint32)?,
            ValueKind::Uint64 => number(value, TypedValue::uint64)?,
            ValueKind::Uint128 => number(value, TypedValue::uint128)?,
            ValueKind::Float32 => number(value, TypedValue::float32)?,
            ValueKind::Float64 => number(value, TypedValue::float64)?,
            ValueKind::Unknown(_) => return Err(PyValueError::new_err("no kind of this version")),
        };
        Ok(Self(made))
    }

    /// The name of the kind; `None` for one this version does not know.
    #[getter]
    fn kind(&self) -> Option<&'static str> {
        self.0.kind().name()
    }

    /// The value; the bytes as they are for a kind this version does not know.
    #[getter]
    fn value(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let value = &self.0;
        macro_rules! read {
            ($read:ident) => {
                match value.$read() {
                    Ok(read) => read.into_pyobject(py)?.to_owned().into_any().unbind(),
                    Err(error) => return Err(exception(py, &Failure::from(iggy::IggyError::from(error)))),
                }
            };
        }
        Ok(match value.kind() {
            ValueKind::String => read!(as_str),
            ValueKind::Bool => read!(as_bool),
            ValueKind::Int8 => read!(as_int8),
            ValueKind::Int16 => read!(as_int16),
            ValueKind::Int32 => read!(as_int32),
            ValueKind::Int64 => read!(as_int64),
            ValueKind::Int128 => read!(as_int128),
            ValueKind::Uint8 => read!(as_uint8),
            ValueKind::Uint16 => read!(as_uint16),
            ValueKind::Uint32 => read!(as_uint32),
            ValueKind::Uint64 => read!(as_uint64),
            ValueKind::Uint128 => read!(as_uint128),
            ValueKind::Float32 => read!(as_float32),
            ValueKind::Float64 => read!(as_float64),
            ValueKind::Raw | ValueKind::Unknown(_) => PyBytes::new(py, value.bytes()).into_any().unbind(),
        })
    }

    fn __repr__(&self) -> String {
        format!(
            "HeaderValue({:?}, {})",
            self.0.kind().name().unwrap_or("unknown"),
            self.0
        )
    }
}

/// A value of Python as the kind it has by itself: text, bytes, truth values, `int64` and `float64`.
fn typed(value: &Bound<'_, PyAny>) -> PyResult<TypedValue> {
    let py = value.py();
    let refused = |error: iggy::IggyError| exception(py, &error.into());
    if let Ok(value) = value.cast::<HeaderValue>() {
        return Ok(value.get().0.clone());
    }
    if value.is_instance_of::<PyBool>() {
        return Ok(TypedValue::bool(value.extract()?));
    }
    if value.is_instance_of::<PyInt>() {
        return number(value, TypedValue::int64);
    }
    if value.is_instance_of::<PyFloat>() {
        return number(value, TypedValue::float64);
    }
    if let Ok(text) = value.cast::<PyString>() {
        return TypedValue::string(text.to_cow()?).map_err(|error| refused(error.into()));
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return TypedValue::raw(bytes.as_bytes()).map_err(|error| refused(error.into()));
    }
    let name = value.get_type().name()?;
    Err(PyTypeError::new_err(format!(
        "a header is a str, bytes, bool, int, float or HeaderValue, not {name}"
    )))
}

/// Headers from a mapping.
pub fn from_dict(given: &Bound<'_, PyDict>) -> PyResult<UserHeaders> {
    let mut headers = UserHeaders::new();
    for (key, value) in given {
        headers.insert(typed(&key)?, typed(&value)?);
    }
    Ok(headers)
}

/// Headers as a mapping: text keys as `str`, other keys as [`HeaderValue`].
pub fn to_dict<'py>(py: Python<'py>, headers: &UserHeaders) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (key, value) in headers.iter() {
        let value = HeaderValue(value.clone());
        match key.as_str() {
            Ok(text) => dict.set_item(text, value)?,
            Err(_) => dict.set_item(HeaderValue(key.clone()), value)?,
        }
    }
    Ok(dict)
}
