//! The client.

use std::sync::Arc;
use std::time::Duration;

use iggy::{IggyClient, ProducerSection};
use iggy_ffi::events::Subscription;
use iggy_ffi::settings::{self, ProducerHooks};
use iggy_ffi::{Failure, Owned, call, operations};
use serde_json::Value;

use crate::call::{NativeCall, run};
use crate::consumer::NativeConsumer;
use crate::events::NativeEvents;
use crate::failure::NativeError;
use crate::hooks::{NativeListener, NativePartitioner, listener, partitioner};
use crate::messages::{NativeBatch, NativeOutgoing};
use crate::position::{NativeCheckpoint, NativeConsumerId, NativeId, NativePartitioning, NativeStart};
use crate::producer::{NativeConfirmation, NativeProducer, confirmations};
use crate::reader::NativeReader;

/// Which batch of an idempotent producer is sent.
#[derive(uniffi::Record)]
pub struct NativeSection {
    pub producer_id: u64,
    pub epoch: u16,
    pub base_sequence: u32,
}

/// A client. One serves any number of calls at once.
#[derive(uniffi::Object)]
pub struct NativeClient(Owned<IggyClient>);

fn json(text: &str) -> Result<Value, Failure> {
    serde_json::from_str(text).map_err(|error| Failure::invalid(format!("this is no JSON: {error}")))
}

impl NativeClient {
    fn core(&self) -> Result<IggyClient, Failure> {
        self.0.get().cloned()
    }
}

#[uniffi::export]
impl NativeClient {
    /// From its settings as JSON.
    #[uniffi::constructor]
    pub fn new(settings: String, choose: Option<Box<dyn NativePartitioner>>) -> Result<Arc<Self>, NativeError> {
        let made = call::enter(|| settings::client(json(&settings)?, partitioner(choose)));
        Ok(Arc::new(Self(Owned::new(made?))))
    }

    /// Runs an operation by its name, from and to JSON.
    pub async fn invoke(
        &self,
        call: Arc<NativeCall>,
        operation: String,
        arguments: String,
    ) -> Result<String, NativeError> {
        let client = self.core()?;
        let invoking = async move { operations::invoke_text(&client, &operation, &arguments).await };
        run(&call, invoking).await
    }

    pub async fn send_messages(
        &self,
        call: Arc<NativeCall>,
        stream: NativeId,
        topic: NativeId,
        partitioning: NativePartitioning,
        messages: Arc<NativeOutgoing>,
    ) -> Result<Vec<NativeConfirmation>, NativeError> {
        let (client, messages) = (self.core()?, messages.take()?);
        let (stream, topic, partitioning) = (stream.identifier()?, topic.identifier()?, partitioning.partitioning()?);
        let sending = async move {
            let sent = client.send_messages(&stream, &topic, &partitioning, &messages).await?;
            Ok::<_, Failure>(confirmations(&sent))
        };
        run(&call, sending).await
    }

    pub async fn send_producer_messages(
        &self,
        call: Arc<NativeCall>,
        stream: NativeId,
        topic: NativeId,
        partition_id: u32,
        section: NativeSection,
        messages: Arc<NativeOutgoing>,
    ) -> Result<Vec<NativeConfirmation>, NativeError> {
        let (client, messages) = (self.core()?, messages.take()?);
        let (stream, topic) = (stream.identifier()?, topic.identifier()?);
        let section = ProducerSection {
            producer_id: section.producer_id,
            epoch: section.epoch,
            base_sequence: section.base_sequence,
        };
        let sending = async move {
            let sent = client.send_producer_messages(&stream, &topic, partition_id, section, &messages);
            Ok::<_, Failure>(confirmations(&sent.await?))
        };
        run(&call, sending).await
    }

    /// Reads messages of one partition; the options are JSON.
    pub async fn poll_messages(
        &self,
        call: Arc<NativeCall>,
        stream: NativeId,
        topic: NativeId,
        partition_id: u32,
        consumer: NativeConsumerId,
        start: NativeStart,
        options: String,
    ) -> Result<NativeBatch, NativeError> {
        let (client, consumer) = (self.core()?, consumer.consumer()?);
        let (stream, topic) = (stream.identifier()?, topic.identifier()?);
        let options = settings::poll_options(json(&options)?)?;
        let polling = async move {
            client
                .poll_messages(&stream, &topic, partition_id, &consumer, start, options)
                .await
        };
        Ok(Arc::new(run(&call, polling).await?).into())
    }

    pub async fn store_consumer_position(
        &self,
        call: Arc<NativeCall>,
        consumer: NativeConsumerId,
        stream: NativeId,
        topic: NativeId,
        checkpoint: Arc<NativeCheckpoint>,
    ) -> Result<(), NativeError> {
        let (client, consumer) = (self.core()?, consumer.consumer()?);
        let (stream, topic) = (stream.identifier()?, topic.identifier()?);
        let storing = async move {
            client
                .store_consumer_position(&consumer, &stream, &topic, &checkpoint.0)
                .await
        };
        run(&call, storing).await
    }

    pub async fn delete_consumer_position(
        &self,
        call: Arc<NativeCall>,
        consumer: NativeConsumerId,
        stream: NativeId,
        topic: NativeId,
        checkpoint: Arc<NativeCheckpoint>,
    ) -> Result<(), NativeError> {
        let (client, consumer) = (self.core()?, consumer.consumer()?);
        let (stream, topic) = (stream.identifier()?, topic.identifier()?);
        let deleting = async move {
            client
                .delete_consumer_position(&consumer, &stream, &topic, &checkpoint.0)
                .await
        };
        run(&call, deleting).await
    }

    /// A raw request: to whoever must answer it or to one replica, within the client's deadline or another, in
    /// microseconds.
    pub async fn send_binary_request(
        &self,
        call: Arc<NativeCall>,
        code: u32,
        payload: Vec<u8>,
        replica_id: Option<u8>,
        deadline: Option<u64>,
    ) -> Result<Vec<u8>, NativeError> {
        let (client, limit) = (self.core()?, deadline.map(Duration::from_micros));
        let asking = async move {
            let answer = match (replica_id, limit) {
                (None, None) => client.send_binary_request(code, &payload).await,
                (None, Some(limit)) => client.send_binary_request_with_deadline(code, &payload, limit).await,
                (Some(id), None) => client.send_binary_request_to_replica(code, &payload, id).await,
                (Some(id), Some(limit)) => {
                    client
                        .send_binary_request_to_replica_with_deadline(code, &payload, id, limit)
                        .await
                }
            };
            answer.map(Vec::from)
        };
        run(&call, asking).await
    }

    pub fn subscribe_events(&self) -> Result<Arc<NativeEvents>, NativeError> {
        Ok(NativeEvents::of(Subscription::Client(self.core()?.subscribe_events())))
    }

    /// A producer of a topic from its settings as JSON.
    pub fn producer(
        &self,
        stream: NativeId,
        topic: NativeId,
        settings: String,
        choose: Option<Box<dyn NativePartitioner>>,
        hear: Option<Box<dyn NativeListener>>,
    ) -> Result<Arc<NativeProducer>, NativeError> {
        let hooks = ProducerHooks {
            partitioner: partitioner(choose),
            error_callback: listener(hear),
        };
        let client = self.core()?;
        let made = call::enter(|| settings::producer(&client, &stream.text(), &topic.text(), json(&settings)?, hooks));
        Ok(NativeProducer::of(made?))
    }

    /// A consumer of its own, or a member of a group, from its settings as JSON.
    pub fn consumer(
        &self,
        name: NativeId,
        stream: NativeId,
        topic: NativeId,
        is_group: bool,
        settings: String,
    ) -> Result<Arc<NativeConsumer>, NativeError> {
        let (client, name) = (self.core()?, name.text());
        let (stream, topic) = (stream.text(), topic.text());
        let made = call::enter(|| settings::consumer(&client, &name, &stream, &topic, is_group, json(&settings)?));
        Ok(NativeConsumer::of(made?))
    }

    /// A reader of many partitions from its settings as JSON.
    pub async fn reader(
        &self,
        call: Arc<NativeCall>,
        stream: NativeId,
        topic: NativeId,
        consumer: NativeConsumerId,
        settings: String,
    ) -> Result<Arc<NativeReader>, NativeError> {
        let (client, consumer) = (self.core()?, consumer.consumer()?);
        let (stream, topic) = (stream.identifier()?, topic.identifier()?);
        let builder = settings::reader(&client, &stream, &topic, &consumer, json(&settings)?)?;
        let reader = run(&call, async move { builder.build().await }).await?;
        Ok(NativeReader::of(reader))
    }
}
