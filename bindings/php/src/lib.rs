//! The PHP extension: the whole client as classes of the namespace `Iggy`.
//!
//! PHP runs a request on one thread, and calls of the client wait on that thread, with a deadline; [`call`] says how.
//! What a runtime thread of the client holds is never a value of PHP. Nothing starts before the first use, so that a
//! master process may load the extension and fork: see [`iggy_ffi::runtime`].
//!
//! Everything is behind the feature `extension`, because building it takes the headers of PHP.
#![cfg(feature = "extension")]
#![allow(unsafe_code, reason = "what exports classes to PHP is generated")]
#![allow(missing_docs, reason = "foreign/php/stubs/iggy.php documents what PHP sees")]
#![allow(
    clippy::needless_pass_by_value,
    clippy::trivially_copy_pass_by_ref,
    clippy::unused_self,
    reason = "methods have the form that PHP calls"
)]

mod arguments;
mod call;
mod client;
mod consumer;
mod events;
mod failure;
mod headers;
mod lifetime;
mod message;
mod options;
mod partitioner;
mod position;
mod producer;
mod reader;
mod value;

use ext_php_rs::prelude::*;
use ext_php_rs::types::Zval;
use iggy_ffi::Failure;

/// The operations of the core, for the test that none is missing here.
#[php_function]
#[php(name = "Iggy\\Internal\\operation_names")]
fn operation_names() -> Vec<String> {
    let names = iggy::operations::OPERATIONS.iter();
    names.map(|operation| operation.name.to_owned()).collect()
}

/// The names of exceptions, one for each class of failures, for the test that none is missing.
#[php_function]
#[php(name = "Iggy\\Internal\\exception_names")]
fn exception_names() -> Vec<String> {
    iggy_ffi::Class::ALL
        .iter()
        .map(|class| failure::class_name(*class))
        .collect()
}

/// A call that panics inside the core, for the test that it ends with an exception.
#[php_function]
#[php(name = "Iggy\\Internal\\panics")]
fn panics() -> PhpResult<Zval> {
    call::run(
        async { Ok::<(), Failure>(()).map(|()| panic!("on purpose")) },
        call::nothing,
    )
}

/// What the extension consists of.
#[php_module]
pub fn get_module(module: ModuleBuilder) -> ModuleBuilder {
    module
        .name("iggy")
        .startup_function(lifetime::process_starts)
        .shutdown_function(lifetime::process_ends)
        .request_shutdown_function(lifetime::request_ends)
        // Each after those that its methods name.
        .class::<options::CommitPolicy>()
        .class::<options::PollOptions>()
        .class::<options::Partitioning>()
        .class::<options::PollingStrategy>()
        .class::<options::Encryption>()
        .class::<options::ConsumerId>()
        .class::<headers::HeaderValue>()
        .class::<position::Continuation>()
        .class::<position::Checkpoint>()
        .class::<message::Message>()
        .class::<message::MessageIterator>()
        .class::<message::PolledMessages>()
        .class::<message::ReceivedMessage>()
        .class::<call::Pending>()
        .class::<call::Parallel>()
        .class::<events::Events>()
        .class::<reader::Reader>()
        .class::<consumer::Consumer>()
        .class::<producer::Producer>()
        .class::<client::Client>()
        .function(wrap_function!(operation_names))
        .function(wrap_function!(exception_names))
        .function(wrap_function!(panics))
}
