//! The client.

use std::sync::Arc;
use std::time::Duration;

use iggy::{IggyClient, ProducerSection};
use iggy_ffi::events::Subscription;
use iggy_ffi::settings::{self, ProducerHooks};
use iggy_ffi::{Owned, call, operations};
use napi::Env;
use napi::bindgen_prelude::{Array, BigInt, BufferSlice, Object};
use napi_derive::napi;

use crate::callback::{Choose, Hear, Partitioner, error_callback};
use crate::cancel::CancelToken;
use crate::consumer::Consumer;
use crate::events::Events;
use crate::failure::{OrThrow, invalid};
use crate::message::{messages_of, polled};
use crate::position::{Checkpoint, Continuation, read_start};
use crate::producer::{Producer, confirmations};
use crate::promise::{nothing, run};
use crate::reader::Reader;
use crate::value::{Id, Js, consumer, id_text, identifier, json, shown, whole, wide};

fn partitioner(choose: Option<&Choose<'_>>) -> napi::Result<Option<Arc<dyn iggy::Partitioner>>> {
    let made = choose.map(Partitioner::new).transpose()?;
    Ok(made.map(|made| Arc::new(made) as Arc<dyn iggy::Partitioner>))
}

/// A client of the core.
#[napi]
pub struct Client(Owned<IggyClient>);

impl Client {
    fn core(&self) -> napi::Result<IggyClient> {
        self.0.get().cloned().or_throw()
    }
}

#[napi]
#[allow(clippy::needless_pass_by_value, reason = "as values arrive")]
impl Client {
    /// From its settings.
    ///
    /// # Errors
    /// Settings that are unknown, malformed or contradict each other.
    #[napi(constructor)]
    pub fn new(settings: String, choose: Option<Choose<'_>>) -> napi::Result<Self> {
        let (settings, partitioner) = (json(&settings)?, partitioner(choose.as_ref())?);
        let client = call::enter(|| settings::client(settings, partitioner)).or_throw()?;
        Ok(Self(Owned::new(client)))
    }

    /// An operation by its name; its arguments are JSON.
    ///
    /// # Errors
    /// The process forked.
    #[napi]
    pub fn invoke<'env>(
        &self,
        env: &'env Env,
        cancel: &CancelToken,
        operation: String,
        arguments: String,
    ) -> napi::Result<Object<'env>> {
        let client = self.core()?;
        let arguments = json(&arguments)?;
        let name = operation.clone();
        let call = async move { operations::invoke(&client, &operation, arguments).await };
        run(env, cancel, call, move |result| shown(&name, result))
    }

    /// Sends one batch.
    ///
    /// # Errors
    /// Arguments that cannot be used.
    #[napi]
    pub fn send_messages<'env>(
        &self,
        env: &'env Env,
        cancel: &CancelToken,
        stream: Id,
        topic: Id,
        partitioning: String,
        messages: Array<'_>,
    ) -> napi::Result<Object<'env>> {
        let client = self.core()?;
        let (stream, topic) = (identifier(&stream)?, identifier(&topic)?);
        let partitioning = settings::partitioning(json(&partitioning)?).or_throw()?;
        let messages = messages_of(&messages)?;
        let call = async move { client.send_messages(&stream, &topic, &partitioning, &messages).await };
        run(env, cancel, call, confirmations)
    }

    /// Sends a batch of an idempotent producer.
    ///
    /// # Errors
    /// Arguments that cannot be used.
    #[napi]
    #[allow(clippy::too_many_arguments, reason = "as the core has it")]
    pub fn send_producer_messages<'env>(
        &self,
        env: &'env Env,
        cancel: &CancelToken,
        stream: Id,
        topic: Id,
        partition_id: f64,
        producer_id: BigInt,
        epoch: f64,
        base_sequence: f64,
        messages: Array<'_>,
    ) -> napi::Result<Object<'env>> {
        let client = self.core()?;
        let (stream, topic) = (identifier(&stream)?, identifier(&topic)?);
        let partition_id = whole("the partition", partition_id)?;
        let epoch = u16::try_from(whole("the epoch", epoch)?);
        let section = ProducerSection {
            producer_id: wide("the producer id", &producer_id)?,
            epoch: epoch.map_err(|_| invalid("the epoch is outside 0..=65535"))?,
            base_sequence: whole("the base sequence", base_sequence)?,
        };
        let messages = messages_of(&messages)?;
        let call = async move {
            client
                .send_producer_messages(&stream, &topic, partition_id, section, &messages)
                .await
        };
        run(env, cancel, call, confirmations)
    }

    /// Reads messages of one partition.
    ///
    /// # Errors
    /// Arguments that cannot be used.
    #[napi]
    #[allow(clippy::too_many_arguments, reason = "as the core has it")]
    pub fn poll_messages<'env>(
        &self,
        env: &'env Env,
        cancel: &CancelToken,
        stream: Id,
        topic: Id,
        partition_id: f64,
        consumer_kind: String,
        consumer_id: Id,
        continuation: Option<&Continuation>,
        strategy: Option<String>,
        options: String,
    ) -> napi::Result<Object<'env>> {
        let client = self.core()?;
        let (stream, topic) = (identifier(&stream)?, identifier(&topic)?);
        let partition_id = whole("the partition", partition_id)?;
        let consumer = consumer(&consumer_kind, &consumer_id)?;
        let start = read_start(continuation, strategy.as_deref())?;
        let options = settings::poll_options(json(&options)?).or_throw()?;
        let call = async move {
            client
                .poll_messages(&stream, &topic, partition_id, &consumer, start, options)
                .await
        };
        run(env, cancel, call, |found| polled(&found))
    }

    /// Stores the position of messages that were read.
    ///
    /// # Errors
    /// Arguments that cannot be used.
    #[napi]
    #[allow(clippy::too_many_arguments, reason = "as the core has it")]
    pub fn store_consumer_position<'env>(
        &self,
        env: &'env Env,
        cancel: &CancelToken,
        consumer_kind: String,
        consumer_id: Id,
        stream: Id,
        topic: Id,
        checkpoint: &Checkpoint,
    ) -> napi::Result<Object<'env>> {
        let client = self.core()?;
        let (stream, topic) = (identifier(&stream)?, identifier(&topic)?);
        let (consumer, checkpoint) = (consumer(&consumer_kind, &consumer_id)?, checkpoint.0);
        let call = async move {
            client
                .store_consumer_position(&consumer, &stream, &topic, &checkpoint)
                .await
        };
        run(env, cancel, call, nothing)
    }

    /// Forgets the stored offset of the partition and history of a position.
    ///
    /// # Errors
    /// Arguments that cannot be used.
    #[napi]
    #[allow(clippy::too_many_arguments, reason = "as the core has it")]
    pub fn delete_consumer_position<'env>(
        &self,
        env: &'env Env,
        cancel: &CancelToken,
        consumer_kind: String,
        consumer_id: Id,
        stream: Id,
        topic: Id,
        checkpoint: &Checkpoint,
    ) -> napi::Result<Object<'env>> {
        let client = self.core()?;
        let (stream, topic) = (identifier(&stream)?, identifier(&topic)?);
        let (consumer, checkpoint) = (consumer(&consumer_kind, &consumer_id)?, checkpoint.0);
        let call = async move {
            client
                .delete_consumer_position(&consumer, &stream, &topic, &checkpoint)
                .await
        };
        run(env, cancel, call, nothing)
    }

    /// A raw request: to whoever must answer it, or to one node; with a deadline in microseconds or the client's own.
    ///
    /// # Errors
    /// Arguments that cannot be used.
    #[napi]
    pub fn send_binary_request<'env>(
        &self,
        env: &'env Env,
        cancel: &CancelToken,
        code: f64,
        payload: BufferSlice<'_>,
        replica_id: Option<f64>,
        deadline: Option<BigInt>,
    ) -> napi::Result<Object<'env>> {
        let client = self.core()?;
        let code = whole("the code", code)?;
        let payload = payload.to_vec();
        let replica_id = replica_id.map(|number| {
            let id = u8::try_from(whole("the replica", number)?);
            id.map_err(|_| invalid("the replica is outside 0..=255"))
        });
        let deadline = deadline.map(|micros| wide("the deadline", &micros).map(Duration::from_micros));
        let (replica_id, deadline) = (replica_id.transpose()?, deadline.transpose()?);
        let call = async move {
            match (replica_id, deadline) {
                (None, None) => client.send_binary_request(code, &payload).await,
                (None, Some(limit)) => client.send_binary_request_with_deadline(code, &payload, limit).await,
                (Some(id), None) => client.send_binary_request_to_replica(code, &payload, id).await,
                (Some(id), Some(limit)) => {
                    client
                        .send_binary_request_to_replica_with_deadline(code, &payload, id, limit)
                        .await
                }
            }
        };
        run(env, cancel, call, Js::Bytes)
    }

    /// Subscribes to what happens to the client.
    ///
    /// # Errors
    /// The process forked.
    #[napi]
    pub fn subscribe_events(&self) -> napi::Result<Events> {
        Ok(Events::of(Subscription::Client(self.core()?.subscribe_events())))
    }

    /// A producer of a topic.
    ///
    /// # Errors
    /// Settings that are unknown, malformed or contradict each other.
    #[napi]
    pub fn producer(
        &self,
        stream: Id,
        topic: Id,
        settings: String,
        choose: Option<Choose<'_>>,
        hear: Option<Hear<'_>>,
    ) -> napi::Result<Producer> {
        let client = self.core()?;
        let settings = json(&settings)?;
        let hooks = ProducerHooks {
            partitioner: partitioner(choose.as_ref())?,
            error_callback: hear.as_ref().map(error_callback).transpose()?,
        };
        let (stream, topic) = (id_text(stream)?, id_text(topic)?);
        let made = call::enter(|| settings::producer(&client, &stream, &topic, settings, hooks));
        made.or_throw().map(Producer::of)
    }

    /// A consumer of its own, or a member of a group.
    ///
    /// # Errors
    /// Settings that are unknown or malformed.
    #[napi]
    pub fn consumer(
        &self,
        name: Id,
        stream: Id,
        topic: Id,
        is_group: bool,
        settings: String,
    ) -> napi::Result<Consumer> {
        let client = self.core()?;
        let settings = json(&settings)?;
        let (name, stream, topic) = (id_text(name)?, id_text(stream)?, id_text(topic)?);
        let made = call::enter(|| settings::consumer(&client, &name, &stream, &topic, is_group, settings));
        made.or_throw().map(Consumer::of)
    }

    /// A reader of many partitions.
    ///
    /// # Errors
    /// Settings that are unknown or malformed.
    #[napi]
    #[allow(clippy::too_many_arguments, reason = "as the core has it")]
    pub fn reader<'env>(
        &self,
        env: &'env Env,
        cancel: &CancelToken,
        stream: Id,
        topic: Id,
        consumer_kind: String,
        consumer_id: Id,
        settings: String,
    ) -> napi::Result<Object<'env>> {
        let client = self.core()?;
        let (stream, topic) = (identifier(&stream)?, identifier(&topic)?);
        let consumer = consumer(&consumer_kind, &consumer_id)?;
        let builder = settings::reader(&client, &stream, &topic, &consumer, json(&settings)?).or_throw()?;
        run(env, cancel, builder.build(), |reader| Js::Reader(Reader::of(reader)))
    }
}
