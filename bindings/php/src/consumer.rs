//! The consumer: of its own, or a member of a group.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ext_php_rs::prelude::*;
use ext_php_rs::types::{ZendClassObject, Zval};
use ext_php_rs::zend::ce;
use iggy::IggyConsumer;
use iggy_ffi::reading::{Ask, Read, SharedConsumer};
use iggy_ffi::{Failure, Owned};

use crate::call::{Parallel, duration, nothing, run, run_read};
use crate::events::Events;
use crate::failure::OrThrow;
use crate::message::{ReceivedMessage, polled};
use crate::options::read_start;
use crate::position::Checkpoint;
use crate::value::{list, number32, number64, object, wide};

/// A consumer of the core.
#[php_class]
#[php(name = "Iggy\\Consumer")]
#[php(implements(ce = ce::iterator, stub = "\\Iterator"))]
pub struct Consumer {
    core: Owned<Arc<SharedConsumer>>,
    /// Nothing will come any more.
    ended: Arc<AtomicBool>,
    /// Where a loop over it stands: the message, and how many came before.
    current: Zval,
    passed: i64,
}

impl Consumer {
    pub fn of(consumer: IggyConsumer) -> Self {
        Self {
            core: Owned::new(Arc::new(SharedConsumer::new(consumer))),
            ended: Arc::default(),
            current: Zval::null(),
            passed: 0,
        }
    }

    fn shared(&self) -> PhpResult<Arc<SharedConsumer>> {
        self.core.get().cloned().or_throw()
    }

    fn read(&self, ask: Ask, timeout: Option<i64>) -> PhpResult<Zval> {
        let shared = self.shared()?;
        let limit = duration("timeout", timeout)?;
        let ended = Arc::clone(&self.ended);
        run_read(limit, async move { shared.read(ask).await }, move |read| {
            ended.store(matches!(read, Read::End), Ordering::Relaxed);
            match read {
                Read::Message(message) => object(ReceivedMessage(message)),
                Read::Batch(batch) => polled(batch),
                Read::End => Ok(Zval::null()),
            }
        })
    }
}

#[php_impl]
impl Consumer {
    pub fn init(&self) -> PhpResult<Zval> {
        let shared = self.shared()?;
        run(async move { shared.init().await }, nothing)
    }

    pub fn next_message(&self, timeout: Option<i64>) -> PhpResult<Zval> {
        self.read(Ask::Message, timeout)
    }

    pub fn next_batch(&self, timeout: Option<i64>) -> PhpResult<Zval> {
        self.read(Ask::Batch, timeout)
    }

    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    pub fn commit(&self, checkpoint: &Checkpoint) -> PhpResult<Zval> {
        let (shared, checkpoint) = (self.shared()?, checkpoint.0);
        run(
            async move { Ok::<_, Failure>(shared.state()?.commit(checkpoint).await?) },
            nothing,
        )
    }

    pub fn mark(&self, checkpoint: &Checkpoint) -> PhpResult<()> {
        self.shared()?.state().or_throw()?.mark(checkpoint.0).or_throw()
    }

    pub fn store_offset(&self, partition_id: i64, offset: &Zval) -> PhpResult<Zval> {
        let shared = self.shared()?;
        let (partition_id, offset) = (
            number32("the partition", partition_id)?,
            number64("the offset", offset)?,
        );
        run(
            async move { Ok::<_, Failure>(shared.state()?.store_offset(partition_id, offset).await?) },
            nothing,
        )
    }

    pub fn delete_offset(&self, partition_id: i64) -> PhpResult<Zval> {
        let (shared, partition_id) = (self.shared()?, number32("the partition", partition_id)?);
        run(
            async move { Ok::<_, Failure>(shared.state()?.delete_offset(partition_id).await?) },
            nothing,
        )
    }

    pub fn seek(&self, partition_id: i64, to: &Zval) -> PhpResult<()> {
        let (partition_id, start) = (number32("the partition", partition_id)?, read_start(Some(to))?);
        self.shared()?.seek(partition_id, start).or_throw()
    }

    pub fn partitions(&self) -> PhpResult<Zval> {
        let shared = self.shared()?;
        let state = shared.state_if_initialised();
        list(state.into_iter().flat_map(|state| state.partitions().map(i64::from)))
    }

    pub fn stopped(&self) -> PhpResult<Zval> {
        let shared = self.shared()?;
        let state = shared.state_if_initialised();
        list(state.into_iter().flat_map(|state| state.stopped().map(i64::from)))
    }

    pub fn last_consumed_offset(&self, partition_id: i64) -> PhpResult<Zval> {
        let (shared, partition_id) = (self.shared()?, number32("the partition", partition_id)?);
        let state = shared.state_if_initialised();
        let found = state.and_then(|state| state.get_last_consumed_offset(partition_id));
        found.map_or_else(|| Ok(Zval::null()), wide)
    }

    pub fn last_stored_offset(&self, partition_id: i64) -> PhpResult<Zval> {
        let (shared, partition_id) = (self.shared()?, number32("the partition", partition_id)?);
        let state = shared.state_if_initialised();
        let found = state.and_then(|state| state.get_last_stored_offset(partition_id));
        found.map_or_else(|| Ok(Zval::null()), wide)
    }

    pub fn events(&self) -> PhpResult<Events> {
        Ok(Events::of(self.shared()?.subscribe_events().or_throw()?))
    }

    pub fn shutdown(&self) -> PhpResult<Zval> {
        let shared = self.shared()?;
        self.ended.store(true, Ordering::Relaxed);
        run(async move { shared.shutdown().await }, nothing)
    }

    pub fn parallel(self_: &mut ZendClassObject<Consumer>) -> Parallel {
        Parallel::of(&mut self_.std)
    }

    pub fn current(&self) -> Zval {
        self.current.shallow_clone()
    }

    pub fn key(&self) -> i64 {
        self.passed
    }

    pub fn next(&mut self) -> PhpResult<()> {
        self.passed += 1;
        self.current = self.read(Ask::Message, None)?;
        Ok(())
    }

    pub fn rewind(&mut self) -> PhpResult<()> {
        if self.shared()?.state_if_initialised().is_none() {
            self.init()?;
        }
        self.current = self.read(Ask::Message, None)?;
        Ok(())
    }

    pub fn valid(&self) -> bool {
        !self.current.is_null()
    }
}
