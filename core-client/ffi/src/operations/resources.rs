//! Streams, topics, partitions, segments, consumer groups and stored offsets.

use iggy::{IggyClient, StreamCreateOptions, StreamUpdateOptions, TopicCreateOptions, TopicUpdateOptions};
use iggy_view::resources as view;
use serde::Deserialize;
use serde_json::Value;

use super::arguments::{Id, Reader, Settings};
use super::{done, list, optional, read};
use crate::Failure;

pub(super) const NAMES: &[&str] = &[
    "create_consumer_group",
    "create_partitions",
    "create_stream",
    "create_topic",
    "delete_consumer_group",
    "delete_consumer_offset",
    "delete_partitions",
    "delete_segments",
    "delete_stream",
    "delete_topic",
    "get_consumer_group",
    "get_consumer_groups",
    "get_consumer_offset",
    "get_stream",
    "get_streams",
    "get_topic",
    "get_topics",
    "join_consumer_group",
    "leave_consumer_group",
    "store_consumer_offset",
    "sync_consumer_group",
    "update_stream",
    "update_topic",
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfStream {
    stream: Id,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfTopic {
    stream: Id,
    topic: Id,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfGroup {
    stream: Id,
    topic: Id,
    group: Id,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CreateStream {
    name: String,
    /// Base64 of 32 bytes.
    encryption_key: Option<String>,
    #[serde(default)]
    options: Settings,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UpdateStream {
    stream: Id,
    #[serde(default)]
    options: Settings,
    #[serde(default)]
    reset: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CreateTopic {
    stream: Id,
    name: String,
    partitions_count: Option<u32>,
    #[serde(default)]
    options: Settings,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UpdateTopic {
    stream: Id,
    topic: Id,
    #[serde(default)]
    options: Settings,
    #[serde(default)]
    reset: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChangePartitions {
    stream: Id,
    topic: Id,
    count: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeleteSegments {
    stream: Id,
    topic: Id,
    partition_id: u32,
    count: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CreateGroup {
    stream: Id,
    topic: Id,
    name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfOffset {
    consumer: Reader,
    stream: Id,
    topic: Id,
    partition_id: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StoreOffset {
    consumer: Reader,
    stream: Id,
    topic: Id,
    partition_id: u32,
    offset: u64,
}

fn key(text: Option<String>) -> Result<Option<[u8; 32]>, Failure> {
    use base64::Engine;
    let Some(text) = text else { return Ok(None) };
    let bytes = base64::engine::general_purpose::STANDARD.decode(text).ok();
    let key = bytes.and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
    key.map(Some)
        .ok_or_else(|| Failure::invalid("an encryption key is standard base64 of 32 bytes"))
}

pub(super) async fn invoke(client: &IggyClient, operation: &str, arguments: Value) -> Result<Value, Failure> {
    match operation {
        "get_streams" => {
            let Nothing {} = read(operation, arguments)?;
            Ok(list(&client.get_streams().await?, view::stream))
        }
        "get_stream" => {
            let OfStream { stream } = read(operation, arguments)?;
            Ok(optional(client.get_stream(&stream.0).await?, view::stream_details))
        }
        "create_stream" => {
            let given: CreateStream = read(operation, arguments)?;
            let options = StreamCreateOptions {
                encryption_key: key(given.encryption_key)?,
                raw: given.options.into_raw()?,
            };
            let created = client.create_stream(&given.name, &options).await?;
            Ok(view::stream_details(&created))
        }
        "update_stream" => {
            let given: UpdateStream = read(operation, arguments)?;
            let options = StreamUpdateOptions {
                raw: given.options.into_raw()?,
                reset: given.reset,
                ..StreamUpdateOptions::default()
            };
            done(client.update_stream(&given.stream.0, &options)).await
        }
        "delete_stream" => {
            let OfStream { stream } = read(operation, arguments)?;
            done(client.delete_stream(&stream.0)).await
        }
        _ if operation.ends_with("_topic") || operation.ends_with("_topics") => {
            topics(client, operation, arguments).await
        }
        _ if operation.contains("_consumer_group") => groups(client, operation, arguments).await,
        _ if operation.ends_with("_consumer_offset") => offsets(client, operation, arguments).await,
        _ => partitions(client, operation, arguments).await,
    }
}

async fn topics(client: &IggyClient, operation: &str, arguments: Value) -> Result<Value, Failure> {
    match operation {
        "get_topics" => {
            let OfStream { stream } = read(operation, arguments)?;
            Ok(list(&client.get_topics(&stream.0).await?, view::topic))
        }
        "get_topic" => {
            let OfTopic { stream, topic } = read(operation, arguments)?;
            let found = client.get_topic(&stream.0, &topic.0).await?;
            Ok(optional(found, view::topic_details))
        }
        "create_topic" => {
            let given: CreateTopic = read(operation, arguments)?;
            let options = TopicCreateOptions {
                partitions_count: given.partitions_count,
                raw: given.options.into_raw()?,
                ..TopicCreateOptions::default()
            };
            let created = client.create_topic(&given.stream.0, &given.name, &options).await?;
            Ok(view::topic_details(&created))
        }
        "update_topic" => {
            let given: UpdateTopic = read(operation, arguments)?;
            let options = TopicUpdateOptions {
                raw: given.options.into_raw()?,
                reset: given.reset,
                ..TopicUpdateOptions::default()
            };
            done(client.update_topic(&given.stream.0, &given.topic.0, &options)).await
        }
        _ => {
            let OfTopic { stream, topic } = read(operation, arguments)?;
            done(client.delete_topic(&stream.0, &topic.0)).await
        }
    }
}

async fn partitions(client: &IggyClient, operation: &str, arguments: Value) -> Result<Value, Failure> {
    if operation == "delete_segments" {
        let given: DeleteSegments = read(operation, arguments)?;
        let (stream, topic) = (&given.stream.0, &given.topic.0);
        return done(client.delete_segments(stream, topic, given.partition_id, given.count)).await;
    }
    let given: ChangePartitions = read(operation, arguments)?;
    let (stream, topic) = (&given.stream.0, &given.topic.0);
    match operation {
        "create_partitions" => done(client.create_partitions(stream, topic, given.count)).await,
        _ => done(client.delete_partitions(stream, topic, given.count)).await,
    }
}

async fn groups(client: &IggyClient, operation: &str, arguments: Value) -> Result<Value, Failure> {
    match operation {
        "get_consumer_groups" => {
            let OfTopic { stream, topic } = read(operation, arguments)?;
            let found = client.get_consumer_groups(&stream.0, &topic.0).await?;
            return Ok(list(&found, view::group));
        }
        "create_consumer_group" => {
            let given: CreateGroup = read(operation, arguments)?;
            let created = client.create_consumer_group(&given.stream.0, &given.topic.0, &given.name);
            return Ok(view::group_details(&created.await?));
        }
        _ => {}
    }
    let OfGroup { stream, topic, group } = read(operation, arguments)?;
    let (stream, topic, group) = (&stream.0, &topic.0, &group.0);
    match operation {
        "get_consumer_group" => {
            let found = client.get_consumer_group(stream, topic, group).await?;
            Ok(optional(found, view::group_details))
        }
        "delete_consumer_group" => done(client.delete_consumer_group(stream, topic, group)).await,
        "join_consumer_group" => done(client.join_consumer_group(stream, topic, group)).await,
        "leave_consumer_group" => done(client.leave_consumer_group(stream, topic, group)).await,
        _ => {
            let synced = client.sync_consumer_group(stream, topic, group).await?;
            Ok(optional(synced, view::assignment))
        }
    }
}

async fn offsets(client: &IggyClient, operation: &str, arguments: Value) -> Result<Value, Failure> {
    if operation == "store_consumer_offset" {
        let given: StoreOffset = read(operation, arguments)?;
        let (consumer, partition_id) = (given.consumer.into(), given.partition_id);
        let (stream, topic) = (&given.stream.0, &given.topic.0);
        return done(client.store_consumer_offset(&consumer, stream, topic, partition_id, given.offset)).await;
    }
    let given: OfOffset = read(operation, arguments)?;
    let consumer = given.consumer.into();
    let (stream, topic, partition_id) = (&given.stream.0, &given.topic.0, given.partition_id);
    if operation == "delete_consumer_offset" {
        return done(client.delete_consumer_offset(&consumer, stream, topic, partition_id)).await;
    }
    let found = client
        .get_consumer_offset(&consumer, stream, topic, partition_id)
        .await?;
    Ok(optional(found, view::consumer_offset))
}
