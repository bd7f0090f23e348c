//! Failures, as Swift turns them into its error.

use iggy_ffi::Failure;

/// A call that did not bring what was asked for.
#[derive(Debug, Clone, uniffi::Record)]
pub struct NativeFailure {
    /// The name of its class.
    pub class: String,
    pub code: u32,
    pub name: String,
    pub message: String,
    pub retryable: bool,
    /// `applied`, `not_applied` or `unknown`.
    pub outcome: String,
    pub operation: Option<u64>,
    pub partition_id: Option<u32>,
}

impl From<Failure> for NativeFailure {
    fn from(failure: Failure) -> Self {
        Self {
            class: failure.class.name().to_owned(),
            code: failure.code,
            name: failure.name.to_owned(),
            outcome: failure.outcome_name().to_owned(),
            message: failure.message,
            retryable: failure.retryable,
            operation: failure.operation,
            partition_id: failure.partition_id,
        }
    }
}

/// What calls throw.
#[derive(Debug, uniffi::Error)]
pub enum NativeError {
    Failed { failure: NativeFailure },
}

impl std::fmt::Display for NativeError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self::Failed { failure } = self;
        out.write_str(&failure.message)
    }
}

impl std::error::Error for NativeError {}

impl From<Failure> for NativeError {
    fn from(failure: Failure) -> Self {
        let failure = failure.into();
        Self::Failed { failure }
    }
}

/// The names of all classes.
#[uniffi::export]
pub fn native_class_names() -> Vec<String> {
    iggy_ffi::Class::ALL
        .iter()
        .map(|class| class.name().to_owned())
        .collect()
}
