//! What the core can do, for the test that nothing is missing in Swift.

use iggy::operations::{OBJECTS, OPERATIONS};

/// The names of the client's operations.
#[uniffi::export]
pub fn native_operation_names() -> Vec<String> {
    OPERATIONS.iter().map(|operation| operation.name.to_owned()).collect()
}

/// The methods of all other objects, as `Object.method`.
#[uniffi::export]
pub fn native_method_names() -> Vec<String> {
    let all = OBJECTS
        .iter()
        .flat_map(|object| object.methods.iter().map(|method| format!("{}.{method}", object.name)));
    all.collect()
}
