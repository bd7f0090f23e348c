//! The native library of the Swift package: objects and calls for the hand-written layer in `foreign/swift`, which is what
//! an application sees. Small values cross as JSON or records, each batch of messages as one block of memory.
#![allow(
    unsafe_code,
    reason = "exported names are unsafe by nature; nothing here dereferences memory of Swift"
)]
#![allow(missing_docs, reason = "what uniffi generates has none")]
#![allow(
    clippy::needless_pass_by_value,
    clippy::result_large_err,
    clippy::too_many_arguments,
    clippy::unused_async,
    reason = "calls have the shape that crosses: values, and one error"
)]

mod call;
mod client;
mod consumer;
mod events;
mod failure;
mod headers;
mod hooks;
mod messages;
mod position;
mod producer;
mod reader;
mod table;

uniffi::setup_scaffolding!();
