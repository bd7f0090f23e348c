//! Futures of the core as promises.

use std::future::Future;

use iggy_ffi::handout::{Delivery, Source};
use iggy_ffi::{Failure, call, runtime};
use napi::bindgen_prelude::Object;
use napi::{Env, JsDeferred};

use crate::cancel::CancelToken;
use crate::failure::{OrThrow, error};
use crate::value::Js;

/// Makes the value of a promise, on the thread of JavaScript.
type Settle = Box<dyn FnOnce(Env) -> napi::Result<Js> + Send>;

/// Runs `future`; `convert` makes the result, on the thread of JavaScript. A call that was given up before its result
/// arrived there is rejected, whatever became of it.
pub fn run<'env, T, E, F, C>(env: &'env Env, cancel: &CancelToken, future: F, convert: C) -> napi::Result<Object<'env>>
where
    T: Send + 'static,
    E: Into<Failure> + Send + 'static,
    F: Future<Output = Result<T, E>> + Send + 'static,
    C: FnOnce(T) -> Js + Send + 'static,
{
    // Asked for first: a promise that was made is always settled.
    runtime::handle().or_throw()?;
    let (deferred, promise): (JsDeferred<Js, Settle>, _) = env.create_deferred()?;
    let given_up = cancel.0.clone();
    call::start(future, cancel.0.clone(), move |ended| match ended {
        Ok(value) => deferred.resolve(Box::new(move |_| {
            if given_up.is_cancelled() {
                return Err(error(&Failure::cancelled()));
            }
            Ok(convert(value))
        })),
        Err(failure) => deferred.reject(error(&failure)),
    })
    .or_throw()?;
    Ok(promise)
}

/// As [`run`], for a read: what was given up on its way goes back and is read again.
pub fn run_read<'env, S, F, C>(env: &'env Env, cancel: &CancelToken, read: F, convert: C) -> napi::Result<Object<'env>>
where
    S: Source,
    F: Future<Output = Result<Delivery<S>, Failure>> + Send + 'static,
    C: FnOnce(S::Item) -> Js + Send + 'static,
{
    run(env, cancel, read, |delivery| {
        delivery.accept().map_or(Js::Null, convert)
    })
}

/// For calls that return nothing.
pub fn nothing((): ()) -> Js {
    Js::Undefined
}
