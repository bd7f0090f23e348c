//! Failures as exceptions of `iggy.errors`.

use iggy_ffi::Failure;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The exception of a failure.
pub fn exception(py: Python<'_>, failure: &Failure) -> PyErr {
    match build(py, failure) {
        Ok(exception) => PyErr::from_value(exception),
        // The package itself is broken: that is what should be seen.
        Err(error) => error,
    }
}

fn build<'py>(py: Python<'py>, failure: &Failure) -> PyResult<Bound<'py, PyAny>> {
    let given = PyDict::new(py);
    given.set_item("code", failure.code)?;
    given.set_item("name", failure.name)?;
    given.set_item("retryable", failure.retryable)?;
    given.set_item("outcome", failure.outcome_name())?;
    given.set_item("operation", failure.operation)?;
    given.set_item("partition_id", failure.partition_id)?;
    let make = py.import("iggy.errors")?.getattr("from_failure")?;
    make.call((failure.class.name(), &failure.message), Some(&given))
}

/// Turns failures into exceptions.
pub trait OrRaise<T> {
    /// The value, or the exception.
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for Result<T, Failure> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|failure| exception(py, &failure))
    }
}

impl<T> OrRaise<T> for Result<T, iggy::IggyError> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| exception(py, &error.into()))
    }
}
