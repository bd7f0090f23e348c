//! Every operation that carries small values, by the name it has in [`iggy::operations::OPERATIONS`], from and to JSON.
//!
//! Arguments are an object; unknown members and wrong kinds are refused by name. Results have the form of `iggy-view`.
//! Streams, topics, groups and users are named by a string, or by a number.

mod access;
mod arguments;
mod resources;
mod system;

use std::future::Future;

use iggy::{IggyClient, IggyError};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Failure;

/// Names of the operations served here, ascending within each group.
pub const NAMES: &[&[&str]] = &[resources::NAMES, access::NAMES, system::NAMES];

/// Whether [`invoke`] serves this operation.
pub fn is_served(operation: &str) -> bool {
    NAMES.iter().any(|names| names.contains(&operation))
}

/// Runs an operation.
///
/// # Errors
/// An operation that is not served here, arguments that do not fit it, and whatever the operation fails with.
pub async fn invoke(client: &IggyClient, operation: &str, arguments: Value) -> Result<Value, Failure> {
    if resources::NAMES.contains(&operation) {
        resources::invoke(client, operation, arguments).await
    } else if access::NAMES.contains(&operation) {
        access::invoke(client, operation, arguments).await
    } else if system::NAMES.contains(&operation) {
        system::invoke(client, operation, arguments).await
    } else {
        Err(Failure::invalid(format!("there is no operation '{operation}' here")))
    }
}

/// As [`invoke`], from and to JSON text.
///
/// # Errors
/// As [`invoke`], and text that is no JSON.
pub async fn invoke_text(client: &IggyClient, operation: &str, arguments: &str) -> Result<String, Failure> {
    let arguments = serde_json::from_str(arguments)
        .map_err(|error| Failure::invalid(format!("the arguments of {operation} are no JSON: {error}")))?;
    Ok(invoke(client, operation, arguments).await?.to_string())
}

/// Reads the arguments of an operation.
fn read<T: DeserializeOwned>(operation: &str, arguments: Value) -> Result<T, Failure> {
    serde_json::from_value(arguments).map_err(|error| Failure::invalid(format!("arguments of {operation}: {error}")))
}

/// A result that says nothing but that it was done.
async fn done(call: impl Future<Output = Result<(), IggyError>>) -> Result<Value, Failure> {
    call.await?;
    Ok(Value::Null)
}

/// A result that may be absent.
fn optional<T>(found: Option<T>, view: impl Fn(&T) -> Value) -> Value {
    found.map_or(Value::Null, |found| view(&found))
}

/// A list of results.
fn list<T>(found: &[T], view: impl Fn(&T) -> Value) -> Value {
    found.iter().map(view).collect()
}
