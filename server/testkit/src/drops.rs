//! Calls that are dropped at each point at which they wait.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// How long one call may take to come through, with all its repetitions.
const PATIENCE: Duration = Duration::from_mins(1);

/// Polls a future as often as it is woken, at most so many times, then drops it.
pub async fn woken_at_most<T>(future: impl Future<Output = T>, polls: usize) -> Option<T> {
    let mut future = pin!(future);
    let mut left = polls;
    poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Calls again and again, dropped at its first point, its second, and so on, until it comes through.
///
/// # Panics
/// When it has not come through after a minute.
pub async fn insist<T, F: AsyncFnMut() -> T>(mut call: F) -> T {
    let all = async {
        for polls in 1.. {
            if let Some(done) = woken_at_most(call(), polls).await {
                return done;
            }
            // What was begun goes on meanwhile.
            tokio::task::yield_now().await;
        }
        unreachable!("every call comes through with enough polls")
    };
    tokio::time::timeout(PATIENCE, all)
        .await
        .expect("a call never came through")
}
