//! The producer.

use std::sync::Arc;

use iggy::SendConfirmation;
use iggy_ffi::{Failure, Owned};

use crate::call::{NativeCall, run};
use crate::failure::NativeError;
use crate::messages::NativeOutgoing;
use crate::position::{NativeId, NativePartitioning};

/// Where sent messages are.
#[derive(uniffi::Record)]
pub struct NativeConfirmation {
    pub stream_id: u32,
    pub topic_id: u32,
    pub partition_id: u32,
    pub base_offset: u64,
}

pub fn confirmations(sent: &[SendConfirmation]) -> Vec<NativeConfirmation> {
    let confirmed = sent.iter().map(|sent| NativeConfirmation {
        stream_id: sent.stream_id,
        topic_id: sent.topic_id,
        partition_id: sent.partition_id,
        base_offset: sent.base_offset,
    });
    confirmed.collect()
}

/// Sends messages to one topic.
#[derive(uniffi::Object)]
pub struct NativeProducer(Owned<iggy::IggyProducer>);

impl NativeProducer {
    pub fn of(producer: iggy::IggyProducer) -> Arc<Self> {
        Arc::new(Self(Owned::new(producer)))
    }
}

#[uniffi::export]
impl NativeProducer {
    pub async fn init(&self, call: Arc<NativeCall>) -> Result<(), NativeError> {
        let producer = self.0.get()?.clone();
        run(&call, async move { producer.init().await }).await
    }

    /// Sends messages by the producer's partitioning or another.
    pub async fn send(
        &self,
        call: Arc<NativeCall>,
        messages: Arc<NativeOutgoing>,
        partitioning: Option<NativePartitioning>,
    ) -> Result<Vec<NativeConfirmation>, NativeError> {
        let (producer, messages) = (self.0.get()?.clone(), messages.take()?);
        let partitioning = partitioning.map(NativePartitioning::partitioning).transpose()?;
        let sending = async move {
            let sent = match partitioning {
                None => producer.send(messages).await?,
                Some(partitioning) => producer.send_with_partitioning(messages, partitioning).await?,
            };
            Ok::<_, Failure>(confirmations(&sent))
        };
        run(&call, sending).await
    }

    /// As `send`, to another topic.
    pub async fn send_to(
        &self,
        call: Arc<NativeCall>,
        stream: NativeId,
        topic: NativeId,
        messages: Arc<NativeOutgoing>,
        partitioning: Option<NativePartitioning>,
    ) -> Result<Vec<NativeConfirmation>, NativeError> {
        let (producer, messages) = (self.0.get()?.clone(), messages.take()?);
        let (stream, topic) = (stream.identifier()?, topic.identifier()?);
        let partitioning = partitioning.map(NativePartitioning::partitioning).transpose()?;
        let sending = async move {
            let sent = producer.send_to(stream, topic, messages, partitioning).await?;
            Ok::<_, Failure>(confirmations(&sent))
        };
        run(&call, sending).await
    }

    /// Sends what is buffered and waits for it, within a deadline.
    pub async fn shutdown(&self, call: Arc<NativeCall>) -> Result<(), NativeError> {
        let producer = self.0.get()?.clone();
        run(&call, async move { producer.shutdown().await }).await
    }
}
