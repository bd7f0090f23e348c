//! The native module of the Node.js package: converts values, promises and errors, and nothing else.
//!
//! Every call that waits takes a [`cancel::CancelToken`] and returns a promise, which the runtime of the core settles
//! from its own threads. The JavaScript in `foreign/node` gives this its classes, its types and its habits.
//!
//! A settled call reaches JavaScript through the queue of its own environment, so that worker threads have the runtime
//! in common and nothing else; an environment that ends drops what was on its way to it.
#![allow(
    unsafe_code,
    reason = "what exports a native module is generated, and values cross by pointer"
)]
#![cfg_attr(
    test,
    allow(dead_code, reason = "what is exported is registered in other builds alone")
)]

mod callback;
mod cancel;
mod client;
mod consumer;
mod events;
mod failure;
mod headers;
mod message;
mod position;
mod producer;
mod promise;
mod reader;
mod value;

use napi_derive::napi;

/// The operations of the core, for the test that none is missing here.
#[napi]
pub fn operation_names() -> Vec<&'static str> {
    let names = iggy::operations::OPERATIONS.iter();
    names.map(|operation| operation.name).collect()
}

/// The classes of failures, for the test that each has its error.
#[napi]
pub fn class_names() -> Vec<&'static str> {
    iggy_ffi::Class::ALL.iter().map(|class| class.name()).collect()
}

/// A call that panics inside the core, for the test that it ends with an error.
///
/// # Errors
/// The environment is ending.
#[napi]
pub fn panics<'env>(
    env: &'env napi::Env,
    cancel: &cancel::CancelToken,
) -> napi::Result<napi::bindgen_prelude::Object<'env>> {
    let panic = async { Ok::<(), iggy_ffi::Failure>(()).map(|()| panic!("on purpose")) };
    promise::run(env, cancel, panic, |(): ()| value::Js::Undefined)
}
