//! Reads whose result must not be lost between the core and the language.
//!
//! A future of the core may be dropped at any time without losing anything. But once it has ended, its result travels to
//! another thread and another runtime, and the caller there may have given up meanwhile. So a result is a [`Delivery`]:
//! until the language accepted it, no other read begins; one that is dropped instead is what the next read returns,
//! unless the application sought meanwhile and it lies before that seek.

use std::collections::{BTreeSet, VecDeque};
use std::future::Future;
use std::sync::{Arc, Mutex as Lock, PoisonError};

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

    /// Whether something that nobody accepted was read before the last seek of its partition; `sought` are those that
    /// were sought.
    fn is_before_seek(&self, _item: &Self::Item, _sought: &BTreeSet<u32>) -> bool {
        false
    }

    /// Partitions were sought: what the source itself still holds of before is dropped.
    fn sought(&mut self, _sought: &BTreeSet<u32>) {}

    /// Makes what nobody accepted into what is asked for now. It may keep the rest for the next read.
    fn fit(&mut self, item: Self::Item, _ask: &Self::Ask) -> Self::Item {
        item
    }

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
    /// Partitions that were sought since the last read began: what comes back until the next one may be of before.
    sought: Lock<BTreeSet<u32>>,
    closing: CancellationToken,
}

impl<S: Source> Handout<S> {
    /// Takes the source.
    pub fn new(source: S) -> Self {
        let returned = VecDeque::new();
        Self {
            inner: Arc::new(Mutex::new(Inner { source, returned })),
            sought: Lock::default(),
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
        let sought = std::mem::take(&mut *self.sought());
        if !sought.is_empty() {
            inner.source.sought(&sought);
        }
        while let Some(item) = inner.returned.pop_front() {
            if !inner.source.is_before_seek(&item, &sought) {
                let item = inner.source.fit(item, &ask);
                return Ok(Delivery::new(inner, item));
            }
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

    /// The application sought a partition, and its source was told: what was read before that does not come any more.
    /// A read that is under way may still end with it, because it began before the seek. Waits for nobody.
    pub fn seek(&self, partition_id: u32) {
        self.sought().insert(partition_id);
    }

    fn sought(&self) -> std::sync::MutexGuard<'_, BTreeSet<u32>> {
        self.sought.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Counts up; a seek of partition n makes everything up to n one of before.
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

        fn is_before_seek(&self, item: &u32, sought: &BTreeSet<u32>) -> bool {
            sought.iter().any(|limit| item <= limit)
        }

        fn ended() -> Result<u32, Failure> {
            Err(Failure::cancelled())
        }
    }

    #[tokio::test]
    async fn given_a_delivery_that_nobody_accepts_when_sought_before_or_after_it_comes_back_should_not_come_again() {
        let numbers = Handout::new(Numbers(0));
        drop(numbers.read(()).await.unwrap());
        numbers.seek(1);
        let on_its_way = numbers.read(()).await.unwrap();
        assert_eq!(on_its_way.item(), Some(&2));
        numbers.seek(2);
        drop(on_its_way);
        assert_eq!(numbers.read(()).await.unwrap().accept(), Some(3));
    }

    #[tokio::test]
    async fn given_a_delivery_of_after_the_seek_when_nobody_accepts_it_should_come_again() {
        let numbers = Handout::new(Numbers(0));
        numbers.seek(0);
        drop(numbers.read(()).await.unwrap());
        numbers.seek(0);
        assert_eq!(numbers.read(()).await.unwrap().accept(), Some(1));
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
