//! What the core can do, for tests that nothing is missing in what is built on this.

use iggy::operations::{OBJECTS, OPERATIONS};

use crate::boundary::{IggyText, Place};

/// The name of an operation of the client by its place; empty beyond the end.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_operation_name(index: usize) -> IggyText {
    let operation = OPERATIONS.get(index);
    operation.map_or(IggyText::NONE, |operation| IggyText::of(operation.name))
}

/// The object and the name of a method by its place among those of all objects; false beyond the end.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_method_name(index: usize, object: *mut IggyText, method: *mut IggyText) -> bool {
    let all = OBJECTS
        .iter()
        .flat_map(|object| object.methods.iter().map(move |method| (object.name, method)));
    let Some((of, name)) = all.into_iter().nth(index) else {
        return false;
    };
    Place::at(object).put(IggyText::of(of));
    Place::at(method).put(IggyText::of(name));
    true
}
