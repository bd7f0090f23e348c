//! Reads whose result must not be lost between the core and the language.
//!
//! A future of the core may be dropped at any time without losing anything. But once it has ended, its result travels to
//! another thread and another runtime, and the caller there may have given up meanwhile. So a result is a [`Delivery`]:
//! until the language accepted it, no other read begins; one that is dropped instead is what the next read returns.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;

use tokio::sync::{Mutex, MutexGuard, OwnedMutexGuard};
use tokio_util::sync::CancellationToken;

use crate::Failure;

/// What is read from.
pub trait Source: Send + 'static {
    /// What may be asked for.
    type Ask: Send;
    /// What a read brings.
    type Item: Send + 'static;

    /// One read. Dropping it loses nothing.
    fn read(&mut self, ask: Self::Ask) -> impl Future<Output = Result<Self::Item, Failure>> + Send;

    /// What a read brings that the end of the source cuts short.
    ///
    /// # Errors
    /// Mostly that it is closed.
    fn ended() -> Result<Self::Item, Failure>;
}

struct Inner<S: Source> {
    source: S,
    returned: VecDeque<S::Item>,
}

/// A source that many callers share. Reads wait for each other.
pub struct Handout<S: Source> {
    inner: Arc<Mutex<Inner<S>>>,
    closing: CancellationToken,
}

impl<S: Source> Handout<S> {
    /// Takes the source.
    pub fn new(source: S) -> Self {
        let returned = VecDeque::new();
        Self {
            inner: Arc::new(Mutex::new(Inner { source, returned })),
            closing: CancellationToken::new(),
        }
    }

    /// Reads; what an earlier read brought and nobody accepted comes first.
    ///
    /// # Errors
    /// Whatever the source fails with.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn read(&self, ask: S::Ask) -> Result<Delivery<S>, Failure> {
        let mut inner = tokio::select! {
            biased;
            () = self.closing.cancelled() => return Self::end(Arc::clone(&self.inner).lock_owned().await),
            inner = Arc::clone(&self.inner).lock_owned() => inner,
        };
        if let Some(item) = inner.returned.pop_front() {
            return Ok(Delivery::new(inner, item));
        }
        let read = tokio::select! {
            biased;
            () = self.closing.cancelled() => S::ended(),
            read = inner.source.read(ask) => read,
        };
        read.map(|item| Delivery::new(inner, item))
    }

    fn end(inner: OwnedMutexGuard<Inner<S>>) -> Result<Delivery<S>, Failure> {
        S::ended().map(|item| Delivery::new(inner, item))
    }

    /// Uses the source when no read does: before the first one, and after [`close`](Self::close).
    pub async fn with<T>(&self, then: impl AsyncFnOnce(&mut S) -> T) -> T {
        let mut inner: MutexGuard<'_, _> = self.inner.lock().await;
        then(&mut inner.source).await
    }

    /// Ends the read under way and all later ones, so that what comes now does not wait for them.
    pub fn close(&self) {
        self.closing.cancel();
    }
}

/// Something that was read. No other read begins before it is accepted or dropped; dropped, it is read again.
pub struct Delivery<S: Source> {
    inner: OwnedMutexGuard<Inner<S>>,
    item: Option<S::Item>,
}

impl<S: Source> Delivery<S> {
    fn new(inner: OwnedMutexGuard<Inner<S>>, item: S::Item) -> Self {
        Self {
            inner,
            item: Some(item),
        }
    }

    /// What was read.
    pub fn item(&self) -> Option<&S::Item> {
        self.item.as_ref()
    }

    /// It arrived.
    pub fn accept(mut self) -> Option<S::Item> {
        self.item.take()
    }
}

impl<S: Source> Drop for Delivery<S> {
    fn drop(&mut self) {
        if let Some(item) = self.item.take() {
            self.inner.returned.push_front(item);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Numbers(u32);

    impl Source for Numbers {
        type Ask = ();
        type Item = u32;

        async fn read(&mut self, (): ()) -> Result<u32, Failure> {
            if self.0 == 3 {
                std::future::pending::<()>().await;
            }
            self.0 += 1;
            Ok(self.0)
        }

        fn ended() -> Result<u32, Failure> {
            Err(Failure::cancelled())
        }
    }

    #[tokio::test]
    async fn given_a_delivery_that_nobody_accepts_when_read_again_should_come_again_and_in_order() {
        let numbers = Handout::new(Numbers(0));
        assert_eq!(numbers.read(()).await.unwrap().accept(), Some(1));
        drop(numbers.read(()).await.unwrap());
        assert_eq!(numbers.read(()).await.unwrap().accept(), Some(2));
        assert_eq!(numbers.read(()).await.unwrap().accept(), Some(3));
    }

    #[tokio::test]
    async fn given_a_delivery_on_its_way_when_another_read_begins_should_wait_for_it() {
        let numbers = Handout::new(Numbers(0));
        let on_its_way = numbers.read(()).await.unwrap();
        let mut next = Box::pin(numbers.read(()));
        assert!(futures::poll!(&mut next).is_pending());
        drop(on_its_way);
        assert_eq!(next.await.unwrap().accept(), Some(1));
    }

    #[tokio::test]
    async fn given_a_read_that_waits_when_closed_should_end_at_once() {
        let numbers = Handout::new(Numbers(3));
        let mut next = Box::pin(numbers.read(()));
        assert!(futures::poll!(&mut next).is_pending());
        numbers.close();
        assert!(next.await.is_err());
        assert_eq!(numbers.with(async |numbers| numbers.0).await, 3);
    }
}
