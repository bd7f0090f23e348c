//! The client.

use std::ffi::c_void;
use std::sync::Arc;
use std::time::Duration;

use iggy::ProducerSection;
use iggy_ffi::events::Subscription;
use iggy_ffi::settings::{self, ProducerHooks};
use iggy_ffi::{Failure, Owned, call, operations};

use crate::boundary::{IggyBytes, IggyConsumerId, IggyId, IggyText, Place, given, guarded};
use crate::call::{Content, IggyCall, IggyDone, begin};
use crate::consumer::IggyConsumer;
use crate::events::IggyEvents;
use crate::failure::IggyFailure;
use crate::hooks::{IggyErrorListener, IggyPartitioner, listener, partitioner};
use crate::message::{IggyBatch, IggyMessages};
use crate::position::{IggyCheckpoint, IggyStart};
use crate::producer::{IggyProducer, confirmations};
use crate::reader::IggyReader;

/// A client. One serves any number of calls at once.
pub struct IggyClient(Owned<iggy::IggyClient>);

fn core(client: Option<&IggyClient>) -> Result<iggy::IggyClient, Failure> {
    given("the client", client)?.0.get().cloned()
}

/// A client from its settings as JSON; it connects with the operation `connect`. NULL, and why, when a setting is
/// unknown, malformed or contradicts another. The partitioner may be NULL; it is taken in any case.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_client_new(
    settings: IggyText,
    choose: Option<&IggyPartitioner>,
    failure: *mut *mut IggyFailure,
) -> Option<Box<IggyClient>> {
    let made = guarded(|| {
        let choose = partitioner(choose);
        let settings = settings.settings()?;
        let client = call::enter(|| settings::client(settings, choose))?;
        Ok(Box::new(IggyClient(Owned::new(client))))
    });
    Place::at(failure).settle(made)
}

/// Frees a client. Calls under way go on; producers, consumers and readers keep what they need.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_client_free(client: Option<Box<IggyClient>>) {
    let _ = guarded(|| {
        drop(client);
        Ok(())
    });
}

/// Runs an operation by its name. Its arguments and its result are JSON; the reply has a value.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_client_invoke(
    client: Option<&IggyClient>,
    operation: IggyText,
    arguments: IggyText,
    done: IggyDone,
    user: *mut c_void,
) -> Option<Box<IggyCall>> {
    begin(done, user, || {
        let client = core(client)?;
        let (operation, arguments) = (operation.read()?.to_owned(), arguments.settings()?);
        Ok(async move {
            let result = operations::invoke(&client, &operation, arguments).await?;
            Ok(Content::Value(result))
        })
    })
}

/// Sends one batch, which is taken in any case; the partitioning is JSON: `"balanced"`, `{"partition":3}` or
/// `{"key":BASE64}`. The value of the reply lists where the messages are.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_client_send_messages(
    client: Option<&IggyClient>,
    stream: IggyId,
    topic: IggyId,
    partitioning: IggyText,
    messages: Option<Box<IggyMessages>>,
    done: IggyDone,
    user: *mut c_void,
) -> Option<Box<IggyCall>> {
    begin(done, user, || {
        let client = core(client)?;
        let (stream, topic) = (stream.identifier()?, topic.identifier()?);
        let partitioning = settings::partitioning(partitioning.json()?)?;
        let messages = given("messages", messages)?.0;
        Ok(async move {
            let sent = client.send_messages(&stream, &topic, &partitioning, &messages).await?;
            Ok(confirmations(&sent))
        })
    })
}

/// Sends a batch of an idempotent producer, which is taken in any case: the partition writes it once, however often it
/// is sent.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_client_send_producer_messages(
    client: Option<&IggyClient>,
    stream: IggyId,
    topic: IggyId,
    partition_id: u32,
    producer_id: u64,
    epoch: u16,
    base_sequence: u32,
    messages: Option<Box<IggyMessages>>,
    done: IggyDone,
    user: *mut c_void,
) -> Option<Box<IggyCall>> {
    begin(done, user, || {
        let client = core(client)?;
        let (stream, topic) = (stream.identifier()?, topic.identifier()?);
        let section = ProducerSection {
            producer_id,
            epoch,
            base_sequence,
        };
        let messages = given("messages", messages)?.0;
        Ok(async move {
            let sent = client.send_producer_messages(&stream, &topic, partition_id, section, &messages);
            Ok(confirmations(&sent.await?))
        })
    })
}

/// Reads messages of one partition; the options are JSON. The reply has a batch.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_client_poll_messages(
    client: Option<&IggyClient>,
    stream: IggyId,
    topic: IggyId,
    partition_id: u32,
    consumer: IggyConsumerId,
    start: IggyStart,
    options: IggyText,
    done: IggyDone,
    user: *mut c_void,
) -> Option<Box<IggyCall>> {
    begin(done, user, || {
        let client = core(client)?;
        let (stream, topic) = (stream.identifier()?, topic.identifier()?);
        let (consumer, start) = (consumer.consumer()?, start.read()?);
        let options = settings::poll_options(options.settings()?)?;
        Ok(async move {
            let polled = client
                .poll_messages(&stream, &topic, partition_id, &consumer, start, options)
                .await?;
            Ok(Content::Batch(IggyBatch::Polled(Arc::new(polled))))
        })
    })
}

/// Stores the position of messages that were read. One of an older history is refused.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_client_store_consumer_position(
    client: Option<&IggyClient>,
    consumer: IggyConsumerId,
    stream: IggyId,
    topic: IggyId,
    checkpoint: Option<&IggyCheckpoint>,
    done: IggyDone,
    user: *mut c_void,
) -> Option<Box<IggyCall>> {
    begin(done, user, || {
        let client = core(client)?;
        let (stream, topic) = (stream.identifier()?, topic.identifier()?);
        let (consumer, checkpoint) = (consumer.consumer()?, given("the position", checkpoint)?.0);
        Ok(async move {
            let stored = client.store_consumer_position(&consumer, &stream, &topic, &checkpoint);
            stored.await?;
            Ok(Content::Nothing)
        })
    })
}

/// Forgets the stored offset of the partition and history of a position.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_client_delete_consumer_position(
    client: Option<&IggyClient>,
    consumer: IggyConsumerId,
    stream: IggyId,
    topic: IggyId,
    checkpoint: Option<&IggyCheckpoint>,
    done: IggyDone,
    user: *mut c_void,
) -> Option<Box<IggyCall>> {
    begin(done, user, || {
        let client = core(client)?;
        let (stream, topic) = (stream.identifier()?, topic.identifier()?);
        let (consumer, checkpoint) = (consumer.consumer()?, given("the position", checkpoint)?.0);
        Ok(async move {
            let deleted = client.delete_consumer_position(&consumer, &stream, &topic, &checkpoint);
            deleted.await?;
            Ok(Content::Nothing)
        })
    })
}

/// A raw request: to whoever must answer it, or to one node when the replica is not -1; with a deadline in
/// microseconds, or the client's own when that is 0. The reply has bytes.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_client_send_binary_request(
    client: Option<&IggyClient>,
    code: u32,
    payload: IggyBytes,
    replica_id: i16,
    deadline: u64,
    done: IggyDone,
    user: *mut c_void,
) -> Option<Box<IggyCall>> {
    begin(done, user, || {
        let client = core(client)?;
        let payload = payload.read().to_vec();
        let replica = match replica_id {
            -1 => None,
            id => Some(u8::try_from(id).map_err(|_| Failure::invalid(format!("the replica is {id}, not -1..=255")))?),
        };
        let limit = (deadline != 0).then(|| Duration::from_micros(deadline));
        Ok(async move {
            let answer = match (replica, limit) {
                (None, None) => client.send_binary_request(code, &payload).await,
                (None, Some(limit)) => client.send_binary_request_with_deadline(code, &payload, limit).await,
                (Some(id), None) => client.send_binary_request_to_replica(code, &payload, id).await,
                (Some(id), Some(limit)) => {
                    client
                        .send_binary_request_to_replica_with_deadline(code, &payload, id, limit)
                        .await
                }
            };
            Ok(Content::Bytes(answer?))
        })
    })
}

/// Subscribes to what happens to the client.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_client_subscribe_events(
    client: Option<&IggyClient>,
    failure: *mut *mut IggyFailure,
) -> Option<Box<IggyEvents>> {
    let made = guarded(|| Ok(IggyEvents::of(Subscription::Client(core(client)?.subscribe_events()))));
    Place::at(failure).settle(made)
}

/// A producer of a topic from its settings as JSON; it starts with `iggy_producer_init`. The partitioner and the listener
/// may be NULL; they are taken in any case.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_client_producer(
    client: Option<&IggyClient>,
    stream: IggyId,
    topic: IggyId,
    settings: IggyText,
    choose: Option<&IggyPartitioner>,
    hear: Option<&IggyErrorListener>,
    failure: *mut *mut IggyFailure,
) -> Option<Box<IggyProducer>> {
    let made = guarded(|| {
        let hooks = ProducerHooks {
            partitioner: partitioner(choose),
            error_callback: listener(hear),
        };
        let (client, settings) = (core(client)?, settings.settings()?);
        let (stream, topic) = (stream.text()?, topic.text()?);
        let made = call::enter(|| settings::producer(&client, &stream, &topic, settings, hooks))?;
        Ok(IggyProducer::of(made))
    });
    Place::at(failure).settle(made)
}

/// A consumer of its own, or a member of a group, from its settings as JSON; it starts with `iggy_consumer_init`.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_client_consumer(
    client: Option<&IggyClient>,
    name: IggyId,
    stream: IggyId,
    topic: IggyId,
    is_group: bool,
    settings: IggyText,
    failure: *mut *mut IggyFailure,
) -> Option<Box<IggyConsumer>> {
    let made = guarded(|| {
        let (client, settings) = (core(client)?, settings.settings()?);
        let (name, stream, topic) = (name.text()?, stream.text()?, topic.text()?);
        let made = call::enter(|| settings::consumer(&client, &name, &stream, &topic, is_group, settings))?;
        Ok(IggyConsumer::of(made))
    });
    Place::at(failure).settle(made)
}

/// A reader of many partitions from its settings as JSON. The reply has a reader.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_client_reader(
    client: Option<&IggyClient>,
    stream: IggyId,
    topic: IggyId,
    consumer: IggyConsumerId,
    settings: IggyText,
    done: IggyDone,
    user: *mut c_void,
) -> Option<Box<IggyCall>> {
    begin(done, user, || {
        let client = core(client)?;
        let (stream, topic) = (stream.identifier()?, topic.identifier()?);
        let consumer = consumer.consumer()?;
        let builder = settings::reader(&client, &stream, &topic, &consumer, settings.settings()?)?;
        Ok(async move { Ok(Content::Reader(IggyReader::of(builder.build().await?))) })
    })
}
