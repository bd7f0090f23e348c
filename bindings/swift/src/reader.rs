//! The partition reader.

use std::sync::Arc;

use iggy::PartitionReader;
use iggy_ffi::reading::SharedReader;
use iggy_ffi::{Failure, Owned, call};

use crate::call::{NativeCall, run};
use crate::events::NativeEvents;
use crate::failure::NativeError;
use crate::messages::NativeBatch;
use crate::position::{NativeCheckpoint, NativeStart};

/// Reads many partitions of one topic in batches.
#[derive(uniffi::Object)]
pub struct NativeReader(Owned<Arc<SharedReader>>);

impl NativeReader {
    pub fn of(reader: PartitionReader) -> Arc<Self> {
        Arc::new(Self(Owned::new(Arc::new(SharedReader::new(reader)))))
    }

    fn shared(&self) -> Result<Arc<SharedReader>, Failure> {
        self.0.get().cloned()
    }
}

#[uniffi::export]
impl NativeReader {
    /// The next batch, all of one partition; none from a read that brought nothing.
    pub async fn next(&self, call: Arc<NativeCall>) -> Result<Option<NativeBatch>, NativeError> {
        let shared = self.shared()?;
        let next = run(&call, async move { shared.read().await }).await?;
        // Swift awaits this future to its end, so from here on nothing is lost.
        Ok(next.accept().map(Into::into))
    }

    pub async fn commit(&self, call: Arc<NativeCall>, checkpoint: Arc<NativeCheckpoint>) -> Result<(), NativeError> {
        let (shared, checkpoint) = (self.shared()?, checkpoint.0);
        run(&call, async move { shared.state().commit(checkpoint).await }).await
    }

    pub fn mark(&self, checkpoint: Arc<NativeCheckpoint>) -> Result<(), NativeError> {
        let marked = call::enter(|| self.shared()?.state().mark(checkpoint.0).map_err(Failure::from));
        Ok(marked?)
    }

    pub fn seek(&self, partition_id: u32, to: NativeStart) -> Result<(), NativeError> {
        Ok(call::enter(|| self.shared()?.seek(partition_id, to))?)
    }

    pub fn is_current(&self, checkpoint: Arc<NativeCheckpoint>) -> Result<bool, NativeError> {
        Ok(self.shared()?.state().is_current(&checkpoint.0))
    }

    /// The partitions it reads, ascending.
    pub fn partitions(&self) -> Result<Vec<u32>, NativeError> {
        Ok(self.shared()?.state().partitions().collect())
    }

    /// The partitions that wait for a seek, ascending.
    pub fn stopped(&self) -> Result<Vec<u32>, NativeError> {
        Ok(self.shared()?.state().stopped().collect())
    }

    pub fn subscribe_events(&self) -> Result<Arc<NativeEvents>, NativeError> {
        Ok(NativeEvents::of(self.shared()?.subscribe_events()))
    }

    pub async fn close(&self, call: Arc<NativeCall>) -> Result<(), NativeError> {
        let shared = self.shared()?;
        run(&call, async move { shared.close().await }).await
    }
}
