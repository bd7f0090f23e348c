//! The native module `iggy._native` of the Python package: converts values, futures and errors, and nothing else.
//!
//! Every call that waits takes the running event loop first and returns an asyncio future; with `None` instead it waits
//! on the calling thread, with the interpreter released, and can be interrupted. The Python code in `foreign/python`
//! gives this its types and its two faces.

// What comes from Python is owned, and conversions have one form.
#![allow(clippy::needless_pass_by_value, clippy::unnecessary_wraps)]

mod bridge;
mod client;
mod consumer;
mod events;
mod failure;
mod gate;
mod headers;
mod message;
mod partitioner;
mod position;
mod producer;
mod reader;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    #[pymodule_export]
    use super::bridge::Delivered;
    #[pymodule_export]
    use super::client::Client;
    #[pymodule_export]
    use super::consumer::Consumer;
    #[pymodule_export]
    use super::events::Events;
    #[pymodule_export]
    use super::headers::HeaderValue;
    #[pymodule_export]
    use super::message::{Message, PolledMessages, ReceivedMessage};
    #[pymodule_export]
    use super::position::{Checkpoint, Continuation};
    #[pymodule_export]
    use super::producer::Producer;
    #[pymodule_export]
    use super::reader::Reader;
    #[pymodule_export]
    use super::{operation_names, stop_runtime};
}

/// Ends the runtime: called when the interpreter ends, so that no thread calls into it afterwards.
#[pyfunction]
fn stop_runtime(py: Python<'_>) {
    gate::shut(py);
    iggy_ffi::runtime::stop();
}

/// The operations of the core, for the test that none is missing here.
#[pyfunction]
fn operation_names() -> Vec<&'static str> {
    iggy::operations::OPERATIONS
        .iter()
        .map(|operation| operation.name)
        .collect()
}
