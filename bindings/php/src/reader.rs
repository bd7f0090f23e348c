//! The partition reader.

use std::sync::Arc;

use ext_php_rs::prelude::*;
use ext_php_rs::types::{ZendClassObject, Zval};
use ext_php_rs::zend::ce;
use iggy::PartitionReader;
use iggy_ffi::Owned;
use iggy_ffi::reading::SharedReader;

use crate::call::{Parallel, duration, nothing, run, run_read};
use crate::events::Events;
use crate::failure::OrThrow;
use crate::message::polled;
use crate::options::read_start;
use crate::position::Checkpoint;
use crate::value::{list, number32};

/// A reader of the core.
#[php_class]
#[php(name = "Iggy\\Reader")]
#[php(implements(ce = ce::iterator, stub = "\\Iterator"))]
pub struct Reader {
    core: Owned<Arc<SharedReader>>,
    /// Where a loop over it stands: the batch, and how many came before.
    current: Zval,
    passed: i64,
}

impl Reader {
    pub fn of(reader: PartitionReader) -> Self {
        Self {
            core: Owned::new(Arc::new(SharedReader::new(reader))),
            current: Zval::null(),
            passed: 0,
        }
    }

    fn shared(&self) -> PhpResult<Arc<SharedReader>> {
        self.core.get().cloned().or_throw()
    }

    fn read(&self, timeout: Option<i64>) -> PhpResult<Zval> {
        let shared = self.shared()?;
        let limit = duration("timeout", timeout)?;
        run_read(limit, async move { shared.read().await }, polled)
    }
}

#[php_impl]
impl Reader {
    pub fn next_batch(&self, timeout: Option<i64>) -> PhpResult<Zval> {
        self.read(timeout)
    }

    pub fn commit(&self, checkpoint: &Checkpoint) -> PhpResult<Zval> {
        let (shared, checkpoint) = (self.shared()?, checkpoint.0);
        run(async move { shared.state().commit(checkpoint).await }, nothing)
    }

    pub fn mark(&self, checkpoint: &Checkpoint) -> PhpResult<()> {
        self.shared()?.state().mark(checkpoint.0).or_throw()
    }

    pub fn seek(&self, partition_id: i64, to: &Zval) -> PhpResult<()> {
        let (partition_id, start) = (number32("the partition", partition_id)?, read_start(Some(to))?);
        self.shared()?.seek(partition_id, start).or_throw()
    }

    pub fn partitions(&self) -> PhpResult<Zval> {
        list(self.shared()?.state().partitions().map(i64::from))
    }

    pub fn stopped(&self) -> PhpResult<Zval> {
        list(self.shared()?.state().stopped().map(i64::from))
    }

    pub fn events(&self) -> PhpResult<Events> {
        Ok(Events::of(self.shared()?.subscribe_events()))
    }

    pub fn close(&self) -> PhpResult<Zval> {
        let shared = self.shared()?;
        run(async move { shared.close().await }, nothing)
    }

    pub fn parallel(self_: &mut ZendClassObject<Reader>) -> Parallel {
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
        self.current = self.read(None)?;
        Ok(())
    }

    pub fn rewind(&mut self) -> PhpResult<()> {
        self.current = self.read(None)?;
        Ok(())
    }

    pub fn valid(&self) -> bool {
        !self.current.is_null()
    }
}
