//! Errors, flattened to what languages turn into exceptions.

use std::fmt;

use iggy::{ErrorClass, ErrorCode, IggyError, Outcome, ReadError};

/// What a caller would do about a failure; one exception class of a language each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// A class of the core.
    Core(ErrorClass),
    /// The caller gave the call up.
    Cancelled,
    /// The object belongs to the process this one was forked from.
    Inherited,
    /// The core is at fault: it panicked.
    Internal,
}

impl Class {
    /// Every class, in the order of the languages' documentation.
    pub const ALL: &'static [Self] = &[
        Self::Core(ErrorClass::Connection),
        Self::Core(ErrorClass::Authentication),
        Self::Core(ErrorClass::Permission),
        Self::Core(ErrorClass::NotFound),
        Self::Core(ErrorClass::AlreadyExists),
        Self::Core(ErrorClass::InvalidInput),
        Self::Core(ErrorClass::LimitReached),
        Self::Core(ErrorClass::Unavailable),
        Self::Core(ErrorClass::Uncertain),
        Self::Core(ErrorClass::Stale),
        Self::Core(ErrorClass::Server),
        Self::Core(ErrorClass::Closed),
        Self::Cancelled,
        Self::Inherited,
        Self::Internal,
    ];

    /// Its name in `snake_case`; languages derive their exception from it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Core(ErrorClass::Connection) => "connection",
            Self::Core(ErrorClass::Authentication) => "authentication",
            Self::Core(ErrorClass::Permission) => "permission",
            Self::Core(ErrorClass::NotFound) => "not_found",
            Self::Core(ErrorClass::AlreadyExists) => "already_exists",
            Self::Core(ErrorClass::InvalidInput) => "invalid_input",
            Self::Core(ErrorClass::LimitReached) => "limit_reached",
            Self::Core(ErrorClass::Unavailable) => "unavailable",
            Self::Core(ErrorClass::Uncertain) => "uncertain",
            Self::Core(ErrorClass::Stale) => "stale",
            Self::Core(ErrorClass::Server) => "server",
            Self::Core(ErrorClass::Closed) => "closed",
            Self::Cancelled => "cancelled",
            Self::Inherited => "inherited",
            Self::Internal => "internal",
        }
    }
}

/// A call that did not bring what was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What a caller would do about it.
    pub class: Class,
    /// The code on the wire; 0 for failures that have none: cancelled, inherited and internal ones.
    pub code: u32,
    /// The name of the code in `snake_case`; the name of the class where there is no code.
    pub name: &'static str,
    /// What was wrong and what is allowed, for people.
    pub message: String,
    /// Whether the same call may succeed later.
    pub retryable: bool,
    /// Whether a write took effect.
    pub outcome: Outcome,
    /// The operation to resolve or abandon, when the outcome is unknown.
    pub operation: Option<u64>,
    /// The partition it concerns, when it is about reading one.
    pub partition_id: Option<u32>,
}

impl Failure {
    fn without_code(class: Class, message: String, outcome: Outcome) -> Self {
        Self {
            class,
            code: 0,
            name: class.name(),
            message,
            retryable: false,
            outcome,
            operation: None,
            partition_id: None,
        }
    }

    /// The caller gave the call up. A write that was on its way may have been applied.
    pub fn cancelled() -> Self {
        let message = "the call was given up by its caller".to_owned();
        Self::without_code(Class::Cancelled, message, Outcome::Unknown)
    }

    /// The object was made by the process this one was forked from.
    pub fn inherited() -> Self {
        let message = "this object was made before the process forked; make a new client in the child".to_owned();
        Self::without_code(Class::Inherited, message, Outcome::NotApplied)
    }

    /// The core panicked.
    pub fn internal(panic: &(dyn std::any::Any + Send)) -> Self {
        let text = panic
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("no reason given");
        let message = format!("the client failed inside; please report this: {text}");
        Self::without_code(Class::Internal, message, Outcome::Unknown)
    }

    /// The arguments of a call cannot be used.
    pub fn invalid(message: impl Into<String>) -> Self {
        IggyError::new(ErrorCode::InvalidFormat, message).into()
    }

    /// The outcome as a word: `applied`, `not_applied` or `unknown`.
    pub const fn outcome_name(&self) -> &'static str {
        match self.outcome {
            Outcome::Applied => "applied",
            Outcome::NotApplied => "not_applied",
            Outcome::Unknown => "unknown",
        }
    }
}

impl From<IggyError> for Failure {
    fn from(error: IggyError) -> Self {
        Self {
            class: Class::Core(error.class()),
            code: error.code().code(),
            name: error.code().name(),
            message: error.to_string(),
            retryable: error.retryable(),
            outcome: error.outcome(),
            operation: error.operation().map(|operation| operation.0),
            partition_id: None,
        }
    }
}

impl From<ReadError> for Failure {
    fn from(read: ReadError) -> Self {
        Self {
            partition_id: read.partition_id,
            ..read.error.into()
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_every_class_when_named_should_have_a_name_of_its_own() {
        let names: std::collections::BTreeSet<_> = Class::ALL.iter().map(|class| class.name()).collect();
        assert_eq!(names.len(), Class::ALL.len());
    }

    #[test]
    fn given_an_error_of_the_core_when_flattened_should_keep_what_callers_act_on() {
        let error = IggyError::new(ErrorCode::DeferredPollCapacityExceeded, "too many");
        let failure = Failure::from(error);
        assert_eq!(failure.class, Class::Core(ErrorClass::Unavailable));
        assert_eq!((failure.code, failure.name), (90, "deferred_poll_capacity_exceeded"));
        assert!(failure.retryable);
        assert_eq!(failure.outcome_name(), "not_applied");
    }
}
