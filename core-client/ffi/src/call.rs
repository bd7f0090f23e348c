//! Calls: a future of the core, run to its end, to its deadline or to its cancellation.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use futures::FutureExt;
use iggy::{ErrorCode, IggyError};
pub use tokio_util::sync::CancellationToken;

use crate::{Failure, runtime};

/// Runs `future`; a panic in it is a failure, and so is a cancellation of `token`.
///
/// The future is dropped when the token is cancelled: every future of the core allows that and says what it means.
pub async fn guarded<T, E: Into<Failure>>(
    future: impl Future<Output = Result<T, E>>,
    token: &CancellationToken,
) -> Result<T, Failure> {
    let caught = AssertUnwindSafe(future).catch_unwind();
    tokio::select! {
        biased;
        () = token.cancelled() => Err(Failure::cancelled()),
        ended = caught => match ended {
            Ok(result) => result.map_err(Into::into),
            Err(panic) => Err(Failure::internal(&*panic)),
        },
    }
}

/// Starts `future` on the runtime; `done` gets its end, exactly once, on a thread of the runtime. Cancel it by `token`.
///
/// # Errors
/// There is no runtime; `done` is not called then.
pub fn start<T, E, F, D>(future: F, token: CancellationToken, done: D) -> Result<(), Failure>
where
    T: Send + 'static,
    E: Into<Failure> + Send + 'static,
    F: Future<Output = Result<T, E>> + Send + 'static,
    D: FnOnce(Result<T, Failure>) + Send + 'static,
{
    runtime::handle()?.spawn(async move {
        let ended = guarded(future, &token).await;
        // A callback that panics must not take a worker's other tasks with it; there is nobody to tell.
        let _ = catch_unwind(AssertUnwindSafe(|| done(ended)));
    });
    Ok(())
}

/// Waits for `future` on this thread, which must not be one of the runtime's.
///
/// # Errors
/// What the call failed with, `TaskTimeout` after `limit`, or a thread that is the runtime's own.
pub fn wait<T, E, F>(future: F, limit: Option<Duration>, token: &CancellationToken) -> Result<T, Failure>
where
    E: Into<Failure>,
    F: Future<Output = Result<T, E>>,
{
    if tokio::runtime::Handle::try_current().is_ok() {
        return Err(Failure::invalid(
            "a blocking call was made on a thread of the client; use the asynchronous call there",
        ));
    }
    runtime::handle()?.block_on(async {
        let call = guarded(future, token);
        match limit {
            None => call.await,
            Some(limit) => tokio::time::timeout(limit, call).await.unwrap_or_else(|_| {
                let message = format!("the call was not over within {limit:?}");
                Err(IggyError::new(ErrorCode::TaskTimeout, message).into())
            }),
        }
    })
}

/// Runs a synchronous call inside the runtime, because the core may start tasks; a panic in it is a failure.
///
/// # Errors
/// What the call failed with.
pub fn enter<T, E: Into<Failure>>(call: impl FnOnce() -> Result<T, E>) -> Result<T, Failure> {
    let handle = runtime::handle()?;
    let _guard = handle.enter();
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result.map_err(Into::into),
        Err(panic) => Err(Failure::internal(&*panic)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::Class;

    fn panics() -> impl Future<Output = Result<(), Failure>> + Send {
        std::future::ready(()).map(|()| panic!("on purpose"))
    }

    #[test]
    fn given_a_panic_in_the_core_when_called_in_any_way_should_be_a_failure() {
        let token = CancellationToken::new();
        let waited = wait(panics(), None, &token).unwrap_err();
        assert_eq!(waited.class, Class::Internal);
        assert!(waited.message.contains("on purpose"), "{waited}");
        let entered = enter(|| -> Result<(), Failure> { panic!("on purpose") }).unwrap_err();
        assert_eq!(entered.class, Class::Internal);
        let (sender, ended) = mpsc::channel();
        start(panics(), token, move |result| sender.send(result).unwrap()).unwrap();
        assert_eq!(ended.recv().unwrap().unwrap_err().class, Class::Internal);
    }

    #[test]
    fn given_a_callback_that_panics_when_a_call_ends_should_leave_the_runtime_alive() {
        let token = CancellationToken::new();
        let ok = || async { Ok::<_, Failure>(7) };
        start(ok(), token.clone(), |_| panic!("in the callback")).unwrap();
        let (sender, ended) = mpsc::channel();
        start(ok(), token, move |result| sender.send(result).unwrap()).unwrap();
        assert_eq!(ended.recv().unwrap(), Ok(7));
    }

    #[test]
    fn given_a_cancelled_token_when_waited_should_end_at_once_though_the_call_never_would() {
        let token = CancellationToken::new();
        token.cancel();
        let never = std::future::pending::<Result<(), Failure>>();
        assert_eq!(wait(never, None, &token).unwrap_err().class, Class::Cancelled);
    }

    #[test]
    fn given_a_limit_when_a_call_takes_longer_should_fail_with_a_timeout() {
        let never = std::future::pending::<Result<(), Failure>>();
        let failure = wait(never, Some(Duration::from_millis(1)), &CancellationToken::new()).unwrap_err();
        assert_eq!(failure.name, "task_timeout");
    }

    #[test]
    fn given_a_thread_of_the_runtime_when_it_would_block_should_be_refused_instead_of_hanging() {
        let token = CancellationToken::new();
        let nested = async { wait(async { Ok::<_, Failure>(()) }, None, &CancellationToken::new()) };
        let failure = wait(nested, None, &token).unwrap_err();
        assert_eq!(failure.name, "invalid_format");
    }
}
