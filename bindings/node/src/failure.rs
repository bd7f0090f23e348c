//! Failures on their way to JavaScript: as JSON in the message of an error, of which the package makes its classes.

use iggy::IggyError;
use iggy_ffi::Failure;
use serde_json::json;

/// A failure as JSON. `operation` is text, because it may be above what a number of JavaScript holds.
pub fn text(failure: &Failure) -> String {
    json!({
        "class": failure.class.name(),
        "code": failure.code,
        "message": failure.message,
        "name": failure.name,
        "operation": failure.operation.map(|operation| operation.to_string()),
        "outcome": failure.outcome_name(),
        "partitionId": failure.partition_id,
        "retryable": failure.retryable,
    })
    .to_string()
}

/// The error of a failure.
pub fn error(failure: &Failure) -> napi::Error {
    napi::Error::from_reason(text(failure))
}

/// An argument that cannot be used.
pub fn invalid(message: impl Into<String>) -> napi::Error {
    error(&Failure::invalid(message))
}

/// Turns failures into errors.
pub trait OrThrow<T> {
    /// The value, or the error.
    fn or_throw(self) -> napi::Result<T>;
}

impl<T> OrThrow<T> for Result<T, Failure> {
    fn or_throw(self) -> napi::Result<T> {
        self.map_err(|failure| error(&failure))
    }
}

impl<T> OrThrow<T> for Result<T, IggyError> {
    fn or_throw(self) -> napi::Result<T> {
        self.map_err(|failure| error(&failure.into()))
    }
}
