//! The client: every operation of the core, under its name there. All in one block, because a class of PHP is exported
//! from one.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ext_php_rs::prelude::*;
use ext_php_rs::types::{ZendClassObject, ZendHashTable, Zval};
use iggy::{IggyClient, ProducerSection};
use iggy_ffi::events::Subscription;
use iggy_ffi::settings::{self, ProducerHooks};
use iggy_ffi::{Failure, Owned, call, operations};
use serde_json::{Value, json};

use crate::arguments::{
    change, client_settings, new_resource, of_group, of_offset, of_stream, of_topic, of_user, permissions_of,
    with_given, with_start,
};
use crate::call::{Parallel, duration, nothing, run};
use crate::consumer::Consumer;
use crate::events::Events;
use crate::failure::{OrThrow, invalid};
use crate::lifetime::{self, Failures};
use crate::message::{messages_of, polled};
use crate::options::{Partitioning, PollOptions, read_start, who_reads};
use crate::partitioner::{self, Kept};
use crate::position::Checkpoint;
use crate::producer::{Producer, confirmations};
use crate::reader::Reader;
use crate::value::{
    bytes, bytes_of, from_json, id_text, identifier, number32, number64, object, settings as settings_of, to_json, with,
};

/// A client of the core.
#[php_class]
#[php(name = "Iggy\\Client")]
pub struct Client {
    core: Owned<IggyClient>,
    /// The name it has among the persistent ones.
    persistent: Option<String>,
    _partitioner: Option<Kept>,
}

impl Client {
    fn core(&self) -> PhpResult<IggyClient> {
        self.core.get().cloned().or_throw()
    }

    /// An operation by its name.
    fn invoke(&self, operation: &'static str, arguments: Value) -> PhpResult<Zval> {
        self.invoke_then(operation, arguments, |found| from_json(&found))
    }

    fn invoke_then(
        &self,
        operation: &'static str,
        arguments: Value,
        convert: impl FnOnce(Value) -> PhpResult<Zval> + 'static,
    ) -> PhpResult<Zval> {
        let client = self.core()?;
        let call = async move { operations::invoke(&client, operation, arguments).await };
        run(call, convert)
    }
}

#[php_impl]
impl Client {
    pub fn __construct(
        connection_string: Option<String>,
        options: Option<&ZendHashTable>,
        partitioner: Option<&Zval>,
    ) -> PhpResult<Self> {
        let settings = client_settings(connection_string, options)?;
        let (kept, partitioner) = partitioner::keep(partitioner)?;
        let client = call::enter(|| settings::client(settings, partitioner)).or_throw()?;
        Ok(Self {
            core: Owned::new(client),
            persistent: None,
            _partitioner: kept,
        })
    }

    pub fn persistent(connection_string: Option<String>, options: Option<&ZendHashTable>) -> PhpResult<Self> {
        let settings = client_settings(connection_string, options)?;
        let name = settings.to_string();
        let client = lifetime::persistent(&name, || call::enter(|| settings::client(settings, None)))?;
        Ok(Self {
            core: Owned::new(client),
            persistent: Some(name),
            _partitioner: None,
        })
    }

    pub fn is_persistent(&self) -> bool {
        self.persistent.is_some()
    }

    pub fn parallel(self_: &mut ZendClassObject<Client>) -> Parallel {
        Parallel::of(&mut self_.std)
    }

    pub fn shutdown(&self) -> PhpResult<Zval> {
        if let Some(name) = &self.persistent {
            lifetime::forget(name);
        }
        self.invoke("shutdown", json!({}))
    }

    pub fn events(&self) -> PhpResult<Events> {
        Ok(Events::of(Subscription::Client(self.core()?.subscribe_events())))
    }

    pub fn send_messages(
        &self,
        stream: &Zval,
        topic: &Zval,
        partitioning: &Partitioning,
        messages: &ZendHashTable,
    ) -> PhpResult<Zval> {
        let client = self.core()?;
        let (stream, topic) = (identifier("a stream", stream)?, identifier("a topic", topic)?);
        let (partitioning, messages) = (Partitioning::core(Some(partitioning))?, messages_of(messages)?);
        let call = async move { client.send_messages(&stream, &topic, &partitioning, &messages).await };
        run(call, confirmations)
    }

    #[allow(clippy::too_many_arguments, reason = "as the core has it")]
    pub fn send_producer_messages(
        &self,
        stream: &Zval,
        topic: &Zval,
        partition_id: i64,
        producer_id: &Zval,
        epoch: i64,
        base_sequence: i64,
        messages: &ZendHashTable,
    ) -> PhpResult<Zval> {
        let client = self.core()?;
        let (stream, topic) = (identifier("a stream", stream)?, identifier("a topic", topic)?);
        let partition_id = number32("the partition", partition_id)?;
        let epoch = u16::try_from(epoch).map_err(|_| invalid("the epoch is outside 0..=65535"))?;
        let section = ProducerSection {
            producer_id: number64("the producer id", producer_id)?,
            epoch,
            base_sequence: number32("the base sequence", base_sequence)?,
        };
        let messages = messages_of(messages)?;
        let call = async move {
            let sent = client.send_producer_messages(&stream, &topic, partition_id, section, &messages);
            sent.await
        };
        run(call, confirmations)
    }

    #[allow(clippy::too_many_arguments, reason = "as the core has it")]
    pub fn poll_messages(
        &self,
        stream: &Zval,
        topic: &Zval,
        partition_id: i64,
        consumer: &Zval,
        strategy: Option<&Zval>,
        options: Option<&PollOptions>,
    ) -> PhpResult<Zval> {
        let client = self.core()?;
        let (stream, topic) = (identifier("a stream", stream)?, identifier("a topic", topic)?);
        let partition_id = number32("the partition", partition_id)?;
        let (consumer, start) = (who_reads(consumer)?, read_start(strategy)?);
        let options = options.map_or_else(|| json!({}), |options| options.0.clone());
        let options = settings::poll_options(options).or_throw()?;
        let call = async move {
            let found = client.poll_messages(&stream, &topic, partition_id, &consumer, start, options);
            found.await.map(Arc::new)
        };
        run(call, polled)
    }

    pub fn store_consumer_position(
        &self,
        consumer: &Zval,
        stream: &Zval,
        topic: &Zval,
        checkpoint: &Checkpoint,
    ) -> PhpResult<Zval> {
        let client = self.core()?;
        let (stream, topic) = (identifier("a stream", stream)?, identifier("a topic", topic)?);
        let (consumer, checkpoint) = (who_reads(consumer)?, checkpoint.0);
        let call = async move {
            let stored = client.store_consumer_position(&consumer, &stream, &topic, &checkpoint);
            stored.await
        };
        run(call, nothing)
    }

    pub fn delete_consumer_position(
        &self,
        consumer: &Zval,
        stream: &Zval,
        topic: &Zval,
        checkpoint: &Checkpoint,
    ) -> PhpResult<Zval> {
        let client = self.core()?;
        let (stream, topic) = (identifier("a stream", stream)?, identifier("a topic", topic)?);
        let (consumer, checkpoint) = (who_reads(consumer)?, checkpoint.0);
        let call = async move {
            let deleted = client.delete_consumer_position(&consumer, &stream, &topic, &checkpoint);
            deleted.await
        };
        run(call, nothing)
    }

    pub fn send_binary_request(
        &self,
        code: i64,
        payload: Option<&Zval>,
        replica_id: Option<i64>,
        deadline: Option<i64>,
    ) -> PhpResult<Zval> {
        let client = self.core()?;
        let code = number32("the code", code)?;
        let payload = payload.filter(|payload| !payload.is_null());
        let payload = payload
            .map_or(Ok(&[][..]), |payload| bytes_of("a payload", payload))?
            .to_vec();
        let replica_id = replica_id.map(u8::try_from).transpose();
        let replica_id = replica_id.map_err(|_| invalid("the replica is outside 0..=255"))?;
        let deadline = duration("the deadline", deadline)?;
        let call = async move {
            match (replica_id, deadline) {
                (None, None) => client.send_binary_request(code, &payload).await,
                (None, Some(limit)) => client.send_binary_request_with_deadline(code, &payload, limit).await,
                (Some(id), None) => client.send_binary_request_to_replica(code, &payload, id).await,
                (Some(id), Some(limit)) => {
                    let sent = client.send_binary_request_to_replica_with_deadline(code, &payload, id, limit);
                    sent.await
                }
            }
        };
        run(call, |answer| Ok(bytes(&answer)))
    }

    pub fn producer(
        &self,
        stream: &Zval,
        topic: &Zval,
        options: Option<&ZendHashTable>,
        partitioner: Option<&Zval>,
    ) -> PhpResult<Producer> {
        let client = self.core()?;
        let settings = settings_of("options of a producer", options)?;
        let buffers = settings.get("background").is_some();
        let (kept, partitioner) = partitioner::keep(partitioner)?;
        if buffers && partitioner.is_some() {
            return Err(invalid(
                "a background producer sends beside PHP, where no callable can be called: \
                 use a key, or a producer that sends directly",
            ));
        }
        let failures = Arc::new(Failures::default());
        let heard = Arc::clone(&failures);
        let hooks = ProducerHooks {
            partitioner,
            error_callback: Some(Arc::new(move |error| heard.add(Failure::from(error)))),
        };
        let (stream, topic) = (id_text("a stream", stream)?, id_text("a topic", topic)?);
        let made = call::enter(|| settings::producer(&client, &stream, &topic, settings, hooks)).or_throw()?;
        Ok(Producer::of(made, failures, buffers, kept))
    }

    pub fn consumer(
        &self,
        name: &Zval,
        stream: &Zval,
        topic: &Zval,
        options: Option<&ZendHashTable>,
    ) -> PhpResult<Consumer> {
        self.consumer_of(name, stream, topic, false, options)
    }

    pub fn consumer_group(
        &self,
        name: &Zval,
        stream: &Zval,
        topic: &Zval,
        options: Option<&ZendHashTable>,
    ) -> PhpResult<Consumer> {
        self.consumer_of(name, stream, topic, true, options)
    }

    pub fn reader(
        &self,
        stream: &Zval,
        topic: &Zval,
        consumer: &Zval,
        options: Option<&ZendHashTable>,
    ) -> PhpResult<Zval> {
        let client = self.core()?;
        let settings = settings_of("options of a reader", options)?;
        let (stream, topic) = (identifier("a stream", stream)?, identifier("a topic", topic)?);
        let builder = settings::reader(&client, &stream, &topic, &who_reads(consumer)?, settings).or_throw()?;
        run(builder.build(), |reader| object(Reader::of(reader)))
    }

    pub fn connect(&self) -> PhpResult<Zval> {
        self.invoke("connect", json!({}))
    }

    pub fn disconnect(&self) -> PhpResult<Zval> {
        self.invoke("disconnect", json!({}))
    }

    pub fn ping(&self) -> PhpResult<Zval> {
        self.invoke("ping", json!({}))
    }

    pub fn get_streams(&self) -> PhpResult<Zval> {
        self.invoke("get_streams", json!({}))
    }

    pub fn get_stream(&self, stream: &Zval) -> PhpResult<Zval> {
        self.invoke("get_stream", of_stream(stream)?)
    }

    pub fn update_stream(
        &self,
        stream: &Zval,
        options: Option<&ZendHashTable>,
        reset: Option<&ZendHashTable>,
    ) -> PhpResult<Zval> {
        self.invoke("update_stream", change(of_stream(stream)?, options, reset)?)
    }

    pub fn delete_stream(&self, stream: &Zval) -> PhpResult<Zval> {
        self.invoke("delete_stream", of_stream(stream)?)
    }

    pub fn get_topics(&self, stream: &Zval) -> PhpResult<Zval> {
        self.invoke("get_topics", of_stream(stream)?)
    }

    pub fn get_topic(&self, stream: &Zval, topic: &Zval) -> PhpResult<Zval> {
        self.invoke("get_topic", of_topic(stream, topic)?)
    }

    pub fn create_topic(
        &self,
        stream: &Zval,
        name: String,
        partitions_count: Option<i64>,
        options: Option<&ZendHashTable>,
    ) -> PhpResult<Zval> {
        let arguments = with_given(
            with(new_resource(of_stream(stream)?, options)?, "name", name),
            "partitions_count",
            partitions_count,
        );
        self.invoke("create_topic", arguments)
    }

    pub fn update_topic(
        &self,
        stream: &Zval,
        topic: &Zval,
        options: Option<&ZendHashTable>,
        reset: Option<&ZendHashTable>,
    ) -> PhpResult<Zval> {
        self.invoke("update_topic", change(of_topic(stream, topic)?, options, reset)?)
    }

    pub fn delete_topic(&self, stream: &Zval, topic: &Zval) -> PhpResult<Zval> {
        self.invoke("delete_topic", of_topic(stream, topic)?)
    }

    pub fn create_partitions(&self, stream: &Zval, topic: &Zval, count: i64) -> PhpResult<Zval> {
        self.invoke("create_partitions", with(of_topic(stream, topic)?, "count", count))
    }

    pub fn delete_partitions(&self, stream: &Zval, topic: &Zval, count: i64) -> PhpResult<Zval> {
        self.invoke("delete_partitions", with(of_topic(stream, topic)?, "count", count))
    }

    pub fn delete_segments(&self, stream: &Zval, topic: &Zval, partition_id: i64, count: i64) -> PhpResult<Zval> {
        let arguments = with(
            with(of_topic(stream, topic)?, "partition_id", partition_id),
            "count",
            count,
        );
        self.invoke("delete_segments", arguments)
    }

    pub fn get_consumer_groups(&self, stream: &Zval, topic: &Zval) -> PhpResult<Zval> {
        self.invoke("get_consumer_groups", of_topic(stream, topic)?)
    }

    pub fn get_consumer_group(&self, stream: &Zval, topic: &Zval, group: &Zval) -> PhpResult<Zval> {
        self.invoke("get_consumer_group", of_group(stream, topic, group)?)
    }

    pub fn create_consumer_group(&self, stream: &Zval, topic: &Zval, name: String) -> PhpResult<Zval> {
        self.invoke("create_consumer_group", with(of_topic(stream, topic)?, "name", name))
    }

    pub fn delete_consumer_group(&self, stream: &Zval, topic: &Zval, group: &Zval) -> PhpResult<Zval> {
        self.invoke("delete_consumer_group", of_group(stream, topic, group)?)
    }

    pub fn join_consumer_group(&self, stream: &Zval, topic: &Zval, group: &Zval) -> PhpResult<Zval> {
        self.invoke("join_consumer_group", of_group(stream, topic, group)?)
    }

    pub fn leave_consumer_group(&self, stream: &Zval, topic: &Zval, group: &Zval) -> PhpResult<Zval> {
        self.invoke("leave_consumer_group", of_group(stream, topic, group)?)
    }

    pub fn sync_consumer_group(&self, stream: &Zval, topic: &Zval, group: &Zval) -> PhpResult<Zval> {
        self.invoke("sync_consumer_group", of_group(stream, topic, group)?)
    }

    pub fn get_consumer_offset(
        &self,
        consumer: &Zval,
        stream: &Zval,
        topic: &Zval,
        partition_id: i64,
    ) -> PhpResult<Zval> {
        self.invoke("get_consumer_offset", of_offset(consumer, stream, topic, partition_id)?)
    }

    pub fn store_consumer_offset(
        &self,
        consumer: &Zval,
        stream: &Zval,
        topic: &Zval,
        partition_id: i64,
        offset: &Zval,
    ) -> PhpResult<Zval> {
        let arguments = with(
            of_offset(consumer, stream, topic, partition_id)?,
            "offset",
            number64("an offset", offset)?,
        );
        self.invoke("store_consumer_offset", arguments)
    }

    pub fn delete_consumer_offset(
        &self,
        consumer: &Zval,
        stream: &Zval,
        topic: &Zval,
        partition_id: i64,
    ) -> PhpResult<Zval> {
        self.invoke(
            "delete_consumer_offset",
            of_offset(consumer, stream, topic, partition_id)?,
        )
    }

    pub fn get_users(&self) -> PhpResult<Zval> {
        self.invoke("get_users", json!({}))
    }

    pub fn get_user(&self, user: &Zval) -> PhpResult<Zval> {
        self.invoke("get_user", of_user(user)?)
    }

    pub fn update_user(
        &self,
        user: &Zval,
        username: Option<String>,
        status: Option<String>,
        options: Option<&ZendHashTable>,
        reset: Option<&ZendHashTable>,
    ) -> PhpResult<Zval> {
        let arguments = with_given(
            with_given(change(of_user(user)?, options, reset)?, "username", username),
            "status",
            status,
        );
        self.invoke("update_user", arguments)
    }

    pub fn update_permissions(&self, user: &Zval, permissions: Option<&ZendHashTable>) -> PhpResult<Zval> {
        self.invoke(
            "update_permissions",
            with_given(of_user(user)?, "permissions", permissions_of(permissions)?),
        )
    }

    pub fn change_password(&self, user: &Zval, current: String, new: String) -> PhpResult<Zval> {
        self.invoke(
            "change_password",
            with(with(of_user(user)?, "current", current), "new", new),
        )
    }

    pub fn delete_user(&self, user: &Zval) -> PhpResult<Zval> {
        self.invoke("delete_user", of_user(user)?)
    }

    pub fn login_user(&self, username: String, password: String) -> PhpResult<Zval> {
        self.invoke("login_user", json!({ "username": username, "password": password }))
    }

    pub fn login_with_personal_access_token(&self, token: String) -> PhpResult<Zval> {
        self.invoke("login_with_personal_access_token", json!({ "token": token }))
    }

    pub fn logout_user(&self) -> PhpResult<Zval> {
        self.invoke("logout_user", json!({}))
    }

    pub fn user_id(&self) -> PhpResult<Zval> {
        self.invoke("user_id", json!({}))
    }

    pub fn get_personal_access_tokens(&self) -> PhpResult<Zval> {
        self.invoke("get_personal_access_tokens", json!({}))
    }

    pub fn create_personal_access_token(&self, name: String, expiry: Option<i64>) -> PhpResult<Zval> {
        self.invoke(
            "create_personal_access_token",
            with_given(json!({ "name": name }), "expiry", expiry),
        )
    }

    pub fn delete_personal_access_token(&self, name: String) -> PhpResult<Zval> {
        self.invoke("delete_personal_access_token", json!({ "name": name }))
    }

    pub fn get_stats(&self) -> PhpResult<Zval> {
        self.invoke("get_stats", json!({}))
    }

    pub fn get_me(&self) -> PhpResult<Zval> {
        self.invoke("get_me", json!({}))
    }

    pub fn get_client(&self, client_id: i64) -> PhpResult<Zval> {
        self.invoke("get_client", json!({ "client_id": client_id }))
    }

    pub fn get_clients(&self) -> PhpResult<Zval> {
        self.invoke("get_clients", json!({}))
    }

    pub fn get_cluster_metadata(&self) -> PhpResult<Zval> {
        self.invoke("get_cluster_metadata", json!({}))
    }

    pub fn get_connection_info(&self) -> PhpResult<Zval> {
        self.invoke("get_connection_info", json!({}))
    }

    pub fn heartbeat_interval(&self) -> PhpResult<Zval> {
        self.invoke("heartbeat_interval", json!({}))
    }

    pub fn describe_options(&self, scope: String) -> PhpResult<Zval> {
        self.invoke("describe_options", json!({ "scope": scope }))
    }

    pub fn get_metadata_changes(&self, options: Option<&ZendHashTable>) -> PhpResult<Zval> {
        self.invoke(
            "get_metadata_changes",
            with_start(settings_of("options of changes", options)?),
        )
    }

    pub fn next_producer_id(&self) -> PhpResult<Zval> {
        self.invoke("next_producer_id", json!({}))
    }

    pub fn uncertain_operations(&self) -> PhpResult<Zval> {
        self.invoke("uncertain_operations", json!({}))
    }

    pub fn resolve_operation(&self, operation: &Zval, deadline: i64) -> PhpResult<Zval> {
        let arguments = json!({ "operation": number64("an operation", operation)?, "deadline": deadline });
        self.invoke("resolve_operation", arguments)
    }

    pub fn abandon_operation(&self, operation: &Zval) -> PhpResult<Zval> {
        self.invoke(
            "abandon_operation",
            json!({ "operation": number64("an operation", operation)? }),
        )
    }

    pub fn create_stream(
        &self,
        name: String,
        options: Option<&ZendHashTable>,
        encryption_key: Option<&Zval>,
    ) -> PhpResult<Zval> {
        let mut arguments = with(new_resource(json!({}), options)?, "name", name);
        if let Some(key) = encryption_key.filter(|key| !key.is_null()) {
            let text = STANDARD.encode(bytes_of("an encryption key", key)?);
            arguments = with(arguments, "encryption_key", text);
        }
        self.invoke("create_stream", arguments)
    }

    pub fn create_user(
        &self,
        username: String,
        password: String,
        permissions: Option<&ZendHashTable>,
        status: Option<String>,
        options: Option<&ZendHashTable>,
    ) -> PhpResult<Zval> {
        let arguments = json!({ "username": username, "password": password });
        let arguments = with_given(new_resource(arguments, options)?, "status", status);
        let arguments = with_given(arguments, "permissions", permissions_of(permissions)?);
        self.invoke("create_user", arguments)
    }

    pub fn snapshot(&self, types: Option<&ZendHashTable>, compression: Option<String>) -> PhpResult<Zval> {
        let mut names = Vec::new();
        for each in types.into_iter().flat_map(ZendHashTable::values) {
            names.push(to_json("types", each)?);
        }
        let arguments = with_given(json!({ "types": names }), "compression", compression);
        self.invoke_then("snapshot", arguments, |found| {
            let text = found.as_str().unwrap_or_default();
            let archive = STANDARD.decode(text).map_err(|error| invalid(error.to_string()))?;
            Ok(bytes(&archive))
        })
    }
}

impl Client {
    fn consumer_of(
        &self,
        name: &Zval,
        stream: &Zval,
        topic: &Zval,
        is_group: bool,
        options: Option<&ZendHashTable>,
    ) -> PhpResult<Consumer> {
        let client = self.core()?;
        let settings = settings_of("options of a consumer", options)?;
        let (name, stream) = (id_text("a consumer", name)?, id_text("a stream", stream)?);
        let topic = id_text("a topic", topic)?;
        let made = call::enter(|| settings::consumer(&client, &name, &stream, &topic, is_group, settings));
        made.or_throw().map(Consumer::of)
    }
}
