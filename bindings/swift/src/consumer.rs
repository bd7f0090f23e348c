//! The consumer: of its own, or a member of a group.

use std::sync::Arc;

use iggy::IggyConsumerState;
use iggy_ffi::reading::{Ask, SharedConsumer};
use iggy_ffi::{Failure, Owned, call};

use crate::call::{NativeCall, run};
use crate::events::NativeEvents;
use crate::failure::NativeError;
use crate::messages::NativeBatch;
use crate::position::{NativeCheckpoint, NativeStart};

/// Reads named partitions, or those a group assigns to this member.
#[derive(uniffi::Object)]
pub struct NativeConsumer(Owned<Arc<SharedConsumer>>);

impl NativeConsumer {
    pub fn of(consumer: iggy::IggyConsumer) -> Arc<Self> {
        Arc::new(Self(Owned::new(Arc::new(SharedConsumer::new(consumer)))))
    }

    fn shared(&self) -> Result<Arc<SharedConsumer>, Failure> {
        self.0.get().cloned()
    }

    async fn read(&self, call: &NativeCall, ask: Ask) -> Result<Option<NativeBatch>, NativeError> {
        let shared = self.shared()?;
        let next = run(call, async move { shared.read(ask).await }).await?;
        // Swift awaits this future to its end, so from here on nothing is lost.
        Ok(next.accept().and_then(NativeBatch::of_read))
    }
}

#[uniffi::export]
impl NativeConsumer {
    pub async fn init(&self, call: Arc<NativeCall>) -> Result<(), NativeError> {
        let shared = self.shared()?;
        run(&call, async move { shared.init().await }).await
    }

    /// The next message as a batch of one; none once the consumer was shut down, or every named partition stopped.
    pub async fn next(&self, call: Arc<NativeCall>) -> Result<Option<NativeBatch>, NativeError> {
        self.read(&call, Ask::Message).await
    }

    /// The next messages of one partition at once.
    pub async fn next_batch(&self, call: Arc<NativeCall>) -> Result<Option<NativeBatch>, NativeError> {
        self.read(&call, Ask::Batch).await
    }

    pub async fn commit(&self, call: Arc<NativeCall>, checkpoint: Arc<NativeCheckpoint>) -> Result<(), NativeError> {
        let (shared, checkpoint) = (self.shared()?, checkpoint.0);
        run(&call, async move {
            Ok::<_, Failure>(shared.state()?.commit(checkpoint).await?)
        })
        .await
    }

    pub fn mark(&self, checkpoint: Arc<NativeCheckpoint>) -> Result<(), NativeError> {
        let marked = call::enter(|| self.shared()?.state()?.mark(checkpoint.0).map_err(Failure::from));
        Ok(marked?)
    }

    pub async fn store_offset(&self, call: Arc<NativeCall>, partition_id: u32, offset: u64) -> Result<(), NativeError> {
        let shared = self.shared()?;
        let storing = async move { Ok::<_, Failure>(shared.state()?.store_offset(partition_id, offset).await?) };
        run(&call, storing).await
    }

    pub async fn delete_offset(&self, call: Arc<NativeCall>, partition_id: u32) -> Result<(), NativeError> {
        let shared = self.shared()?;
        run(&call, async move {
            Ok::<_, Failure>(shared.state()?.delete_offset(partition_id).await?)
        })
        .await
    }

    pub fn seek(&self, partition_id: u32, to: NativeStart) -> Result<(), NativeError> {
        Ok(call::enter(|| self.shared()?.seek(partition_id, to))?)
    }

    pub fn is_current(&self, checkpoint: Arc<NativeCheckpoint>) -> Result<bool, NativeError> {
        Ok(self.shared()?.state()?.is_current(&checkpoint.0))
    }

    /// The partitions it reads now, ascending; none before `init`.
    pub fn partitions(&self) -> Result<Vec<u32>, NativeError> {
        let shared = self.shared()?;
        let state = shared.state_if_initialised();
        Ok(state.into_iter().flat_map(IggyConsumerState::partitions).collect())
    }

    /// The partitions that wait for a seek, ascending; none before `init`.
    pub fn stopped(&self) -> Result<Vec<u32>, NativeError> {
        let shared = self.shared()?;
        let state = shared.state_if_initialised();
        Ok(state.into_iter().flat_map(IggyConsumerState::stopped).collect())
    }

    pub fn last_consumed_offset(&self, partition_id: u32) -> Result<Option<u64>, NativeError> {
        let shared = self.shared()?;
        let state = shared.state_if_initialised();
        Ok(state.and_then(|state| state.get_last_consumed_offset(partition_id)))
    }

    pub fn last_stored_offset(&self, partition_id: u32) -> Result<Option<u64>, NativeError> {
        let shared = self.shared()?;
        let state = shared.state_if_initialised();
        Ok(state.and_then(|state| state.get_last_stored_offset(partition_id)))
    }

    /// The partition of the message handed out last.
    pub fn partition_id(&self) -> Result<Option<u32>, NativeError> {
        let shared = self.shared()?;
        Ok(shared.state_if_initialised().and_then(IggyConsumerState::partition_id))
    }

    pub fn subscribe_events(&self) -> Result<Arc<NativeEvents>, NativeError> {
        Ok(NativeEvents::of(self.shared()?.subscribe_events()?))
    }

    pub async fn shutdown(&self, call: Arc<NativeCall>) -> Result<(), NativeError> {
        let shared = self.shared()?;
        run(&call, async move { shared.shutdown().await }).await
    }
}
