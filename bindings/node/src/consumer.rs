//! The consumer: of its own, or a member of a group.

use std::sync::Arc;

use iggy::IggyConsumer;
use iggy_ffi::reading::{Ask, Read, SharedConsumer};
use iggy_ffi::{Failure, Owned};
use napi::Env;
use napi::bindgen_prelude::{BigInt, Object};
use napi_derive::napi;

use crate::cancel::CancelToken;
use crate::events::Events;
use crate::failure::OrThrow;
use crate::message::{polled, received};
use crate::position::{Checkpoint, Continuation, read_start};
use crate::promise::{nothing, run, run_read};
use crate::value::{Js, whole, wide};

fn shown(read: Read) -> Js {
    match read {
        Read::Message(message) => received(message),
        Read::Batch(batch) => polled(&batch),
        Read::End => Js::Null,
    }
}

/// A consumer of the core. Calls that read wait for each other; commits and seeks wait for nobody.
#[napi]
pub struct Consumer(Owned<Arc<SharedConsumer>>);

impl Consumer {
    pub(crate) fn of(consumer: IggyConsumer) -> Self {
        Self(Owned::new(Arc::new(SharedConsumer::new(consumer))))
    }

    fn shared(&self) -> napi::Result<Arc<SharedConsumer>> {
        self.0.get().cloned().or_throw()
    }

    fn read<'env>(&self, env: &'env Env, cancel: &CancelToken, ask: Ask) -> napi::Result<Object<'env>> {
        let shared = self.shared()?;
        run_read(env, cancel, async move { shared.read(ask).await }, shown)
    }
}

#[napi]
impl Consumer {
    /// Joins the group, or looks the partitions up.
    ///
    /// # Errors
    /// The process forked.
    #[napi]
    pub fn init<'env>(&self, env: &'env Env, cancel: &CancelToken) -> napi::Result<Object<'env>> {
        let shared = self.shared()?;
        run(env, cancel, async move { shared.init().await }, nothing)
    }

    /// The next message; `null` when the consumer was shut down.
    ///
    /// # Errors
    /// The process forked.
    #[napi]
    pub fn next<'env>(&self, env: &'env Env, cancel: &CancelToken) -> napi::Result<Object<'env>> {
        self.read(env, cancel, Ask::Message)
    }

    /// The next batch; `null` when the consumer was shut down.
    ///
    /// # Errors
    /// The process forked.
    #[napi]
    pub fn next_batch<'env>(&self, env: &'env Env, cancel: &CancelToken) -> napi::Result<Object<'env>> {
        self.read(env, cancel, Ask::Batch)
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
        let call = async move { Ok::<_, Failure>(shared.state()?.commit(checkpoint).await?) };
        run(env, cancel, call, nothing)
    }

    /// Notes that the application is done up to a position.
    ///
    /// # Errors
    /// As the core says.
    #[napi]
    pub fn mark(&self, checkpoint: &Checkpoint) -> napi::Result<()> {
        self.shared()?.state().or_throw()?.mark(checkpoint.0).or_throw()
    }

    /// Stores an offset, whatever was read.
    ///
    /// # Errors
    /// Numbers out of range.
    #[napi]
    #[allow(clippy::needless_pass_by_value, reason = "as values arrive")]
    pub fn store_offset<'env>(
        &self,
        env: &'env Env,
        cancel: &CancelToken,
        partition_id: f64,
        offset: BigInt,
    ) -> napi::Result<Object<'env>> {
        let shared = self.shared()?;
        let (partition_id, offset) = (whole("the partition", partition_id)?, wide("the offset", &offset)?);
        let call = async move { Ok::<_, Failure>(shared.state()?.store_offset(partition_id, offset).await?) };
        run(env, cancel, call, nothing)
    }

    /// Forgets the stored offset of a partition.
    ///
    /// # Errors
    /// Numbers out of range.
    #[napi]
    pub fn delete_offset<'env>(
        &self,
        env: &'env Env,
        cancel: &CancelToken,
        partition_id: f64,
    ) -> napi::Result<Object<'env>> {
        let shared = self.shared()?;
        let partition_id = whole("the partition", partition_id)?;
        let call = async move { Ok::<_, Failure>(shared.state()?.delete_offset(partition_id).await?) };
        run(env, cancel, call, nothing)
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
        let shared = self.shared()?;
        let state = shared.state_if_initialised();
        Ok(state.map_or_else(Vec::new, |state| state.partitions().collect()))
    }

    /// The partitions that wait for a seek.
    ///
    /// # Errors
    /// The process forked.
    #[napi]
    pub fn stopped(&self) -> napi::Result<Vec<u32>> {
        let shared = self.shared()?;
        let state = shared.state_if_initialised();
        Ok(state.map_or_else(Vec::new, |state| state.stopped().collect()))
    }

    /// The offset of the last message of a partition that was handed out.
    ///
    /// # Errors
    /// Numbers out of range.
    #[napi]
    pub fn last_consumed_offset(&self, partition_id: f64) -> napi::Result<Option<BigInt>> {
        let (shared, partition_id) = (self.shared()?, whole("the partition", partition_id)?);
        let state = shared.state_if_initialised();
        let found = state.and_then(|state| state.get_last_consumed_offset(partition_id));
        Ok(found.map(BigInt::from))
    }

    /// The last offset of a partition that this consumer stored.
    ///
    /// # Errors
    /// Numbers out of range.
    #[napi]
    pub fn last_stored_offset(&self, partition_id: f64) -> napi::Result<Option<BigInt>> {
        let (shared, partition_id) = (self.shared()?, whole("the partition", partition_id)?);
        let state = shared.state_if_initialised();
        let found = state.and_then(|state| state.get_last_stored_offset(partition_id));
        Ok(found.map(BigInt::from))
    }

    /// Subscribes to what happens from now on.
    ///
    /// # Errors
    /// It was not initialised.
    #[napi]
    pub fn subscribe_events(&self) -> napi::Result<Events> {
        Ok(Events::of(self.shared()?.subscribe_events().or_throw()?))
    }

    /// Ends the reads, stores what automatic commits still owe, leaves the group.
    ///
    /// # Errors
    /// The process forked.
    #[napi]
    pub fn shutdown<'env>(&self, env: &'env Env, cancel: &CancelToken) -> napi::Result<Object<'env>> {
        let shared = self.shared()?;
        run(env, cancel, async move { shared.shutdown().await }, nothing)
    }
}
