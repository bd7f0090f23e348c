//! The partition reader.

use std::sync::Arc;

use iggy::PartitionReader;
use iggy_ffi::Owned;
use iggy_ffi::reading::SharedReader;
use napi::Env;
use napi::bindgen_prelude::Object;
use napi_derive::napi;

use crate::cancel::CancelToken;
use crate::events::Events;
use crate::failure::OrThrow;
use crate::message::polled;
use crate::position::{Checkpoint, Continuation, read_start};
use crate::promise::{nothing, run, run_read};
use crate::value::whole;

/// A reader of the core. Reads wait for each other; everything else waits for nobody.
#[napi]
pub struct Reader(Owned<Arc<SharedReader>>);

impl Reader {
    pub(crate) fn of(reader: PartitionReader) -> Self {
        Self(Owned::new(Arc::new(SharedReader::new(reader))))
    }

    fn shared(&self) -> napi::Result<Arc<SharedReader>> {
        self.0.get().cloned().or_throw()
    }
}

#[napi]
impl Reader {
    /// The next batch, all of one partition.
    ///
    /// # Errors
    /// The process forked.
    #[napi]
    pub fn next<'env>(&self, env: &'env Env, cancel: &CancelToken) -> napi::Result<Object<'env>> {
        let shared = self.shared()?;
        run_read(env, cancel, async move { shared.read().await }, |batch| polled(&batch))
    }

    /// Stores a position.
    ///
    /// # Errors
    /// The process forked.
    #[napi]
    pub fn commit<'env>(
        &self,
        env: &'env Env,
        cancel: &CancelToken,
        checkpoint: &Checkpoint,
    ) -> napi::Result<Object<'env>> {
        let (shared, checkpoint) = (self.shared()?, checkpoint.0);
        run(
            env,
            cancel,
            async move { shared.state().commit(checkpoint).await },
            nothing,
        )
    }

    /// Notes that the application is done up to a position.
    ///
    /// # Errors
    /// As the core says.
    #[napi]
    pub fn mark(&self, checkpoint: &Checkpoint) -> napi::Result<()> {
        self.shared()?.state().mark(checkpoint.0).or_throw()
    }

    /// Goes on somewhere else in a partition.
    ///
    /// # Errors
    /// As the core says.
    #[napi]
    #[allow(clippy::needless_pass_by_value, reason = "as values arrive")]
    pub fn seek(
        &self,
        partition_id: f64,
        continuation: Option<&Continuation>,
        strategy: Option<String>,
    ) -> napi::Result<()> {
        let start = read_start(continuation, strategy.as_deref())?;
        let partition_id = whole("the partition", partition_id)?;
        self.shared()?.seek(partition_id, start).or_throw()
    }

    /// The partitions it reads.
    ///
    /// # Errors
    /// The process forked.
    #[napi]
    pub fn partitions(&self) -> napi::Result<Vec<u32>> {
        Ok(self.shared()?.state().partitions().collect())
    }

    /// The partitions that wait for a seek.
    ///
    /// # Errors
    /// The process forked.
    #[napi]
    pub fn stopped(&self) -> napi::Result<Vec<u32>> {
        Ok(self.shared()?.state().stopped().collect())
    }

    /// Subscribes to what happens from now on.
    ///
    /// # Errors
    /// The process forked.
    #[napi]
    pub fn subscribe_events(&self) -> napi::Result<Events> {
        Ok(Events::of(self.shared()?.subscribe_events()))
    }

    /// Ends the reads and stores what automatic commits still owe.
    ///
    /// # Errors
    /// The process forked.
    #[napi]
    pub fn close<'env>(&self, env: &'env Env, cancel: &CancelToken) -> napi::Result<Object<'env>> {
        let shared = self.shared()?;
        run(env, cancel, async move { shared.close().await }, nothing)
    }
}
