//! Failures.

use iggy::Outcome;
use iggy_ffi::{Class, Failure};

use crate::boundary::IggyText;

/// What a caller would do about a failure.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum IggyClass {
    /// The server cannot be reached, or the link broke: check the address, or wait.
    Connection = 0,
    /// Sign in, or sign in as somebody else.
    Authentication = 1,
    /// The user may not do this.
    Permission = 2,
    /// What was named does not exist.
    NotFound = 3,
    /// What was to be created exists.
    AlreadyExists = 4,
    /// The call itself is wrong: fix its arguments.
    InvalidInput = 5,
    /// A limit was reached: wait, or ask for less.
    LimitReached = 6,
    /// The server did not take the call this time: the same call may succeed later.
    Unavailable = 7,
    /// Nobody can say whether the write was applied: resolve or abandon its operation.
    Uncertain = 8,
    /// The position, owner or epoch belongs to the past: look it up again.
    Stale = 9,
    /// The server failed.
    Server = 10,
    /// The client, producer, consumer or reader was closed.
    Closed = 11,
    /// The call was given up; a write may have been applied all the same.
    Cancelled = 12,
    /// The object was made before the process forked: make a new client.
    Inherited = 13,
    /// The client failed inside; please report it.
    Internal = 14,
}

const CLASSES: &[IggyClass] = &[
    IggyClass::Connection,
    IggyClass::Authentication,
    IggyClass::Permission,
    IggyClass::NotFound,
    IggyClass::AlreadyExists,
    IggyClass::InvalidInput,
    IggyClass::LimitReached,
    IggyClass::Unavailable,
    IggyClass::Uncertain,
    IggyClass::Stale,
    IggyClass::Server,
    IggyClass::Closed,
    IggyClass::Cancelled,
    IggyClass::Inherited,
    IggyClass::Internal,
];

const _: () = assert!(CLASSES.len() == Class::ALL.len(), "a class of failures has no number");

/// A call that did not bring what was asked for.
pub struct IggyFailure(Failure);

impl IggyFailure {
    pub(crate) fn of(failure: Failure) -> Self {
        Self(failure)
    }
}

/// Frees a failure.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_failure_free(failure: Option<Box<IggyFailure>>) {
    drop(failure);
}

/// What a caller would do about it.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_failure_class(failure: Option<&IggyFailure>) -> IggyClass {
    let place = failure.and_then(|failure| Class::ALL.iter().position(|class| *class == failure.0.class));
    place.map_or(IggyClass::Internal, |place| CLASSES[place])
}

/// The name of a class, in `snake_case`; empty above the last one.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_class_name(class: u32) -> IggyText {
    let class = Class::ALL.get(class as usize);
    class.map_or(IggyText::NONE, |class| IggyText::of(class.name()))
}

/// The code on the wire; 0 for failures that have none.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_failure_code(failure: Option<&IggyFailure>) -> u32 {
    failure.map_or(0, |failure| failure.0.code)
}

/// The name of the code in `snake_case`, as `stream_name_not_found`; that of the class where there is no code.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_failure_name(failure: Option<&IggyFailure>) -> IggyText {
    failure.map_or(IggyText::NONE, |failure| IggyText::of(failure.0.name))
}

/// What was wrong and what is allowed, for people.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_failure_message(failure: Option<&IggyFailure>) -> IggyText {
    failure.map_or(IggyText::NONE, |failure| IggyText::of(&failure.0.message))
}

/// Whether the same call may succeed later.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_failure_retryable(failure: Option<&IggyFailure>) -> bool {
    failure.is_some_and(|failure| failure.0.retryable)
}

/// Whether a write took effect: 0 applied, 1 not applied, 2 unknown.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_failure_outcome(failure: Option<&IggyFailure>) -> u8 {
    match failure.map(|failure| failure.0.outcome) {
        Some(Outcome::Applied) => 0,
        Some(Outcome::NotApplied) | None => 1,
        Some(Outcome::Unknown) => 2,
    }
}

/// The operation to resolve or abandon when the outcome is unknown; 0 when there is none.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_failure_operation(failure: Option<&IggyFailure>) -> u64 {
    failure.and_then(|failure| failure.0.operation).unwrap_or(0)
}

/// The partition it concerns, when it is about reading one; -1 otherwise.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_failure_partition_id(failure: Option<&IggyFailure>) -> i64 {
    failure.and_then(|failure| failure.0.partition_id).map_or(-1, i64::from)
}
