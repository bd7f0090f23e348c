//! Making sure that a stream and a topic exist, for producers and stream builders.

use iggy_protocol::{Durability, ErrorCode, Identifier};

use crate::client::IggyClient;
use crate::error::IggyError;
use crate::resource_options::{IggyExpiry, MaxTopicSize, StreamCreateOptions, TopicCreateOptions};

/// A topic that may be created.
#[derive(Debug, Clone, Copy)]
pub struct TopicCreation {
    /// Its partitions.
    pub partitions_count: u32,
    /// How long messages are kept.
    pub message_expiry: IggyExpiry,
    /// How large it may become.
    pub max_topic_size: MaxTopicSize,
    /// What an acknowledgement promises.
    pub durability: Durability,
}

impl Default for TopicCreation {
    fn default() -> Self {
        Self {
            partitions_count: 1,
            message_expiry: IggyExpiry::ServerDefault,
            max_topic_size: MaxTopicSize::ServerDefault,
            durability: Durability::Replicated,
        }
    }
}

/// Creates what is missing and may be created.
pub async fn ensure_topic(
    client: &IggyClient,
    stream: &Identifier,
    topic: &Identifier,
    create_stream: bool,
    create_topic: Option<TopicCreation>,
) -> Result<(), IggyError> {
    let missing = |what: &str, id: &Identifier, code| {
        IggyError::new(
            code,
            format!("{what} {id} does not exist, and may not or cannot be created"),
        )
    };
    if client.get_stream(stream).await?.is_none() {
        match stream {
            Identifier::Named(name) if create_stream => {
                let created = client.create_stream(name, &StreamCreateOptions::default()).await;
                tolerate(created.map(drop), ErrorCode::StreamNameAlreadyExists)?;
            }
            other => return Err(missing("stream", other, ErrorCode::StreamNameNotFound)),
        }
    }
    if client.get_topic(stream, topic).await?.is_none() {
        match (topic, create_topic) {
            (Identifier::Named(name), Some(creation)) => {
                let options = TopicCreateOptions {
                    partitions_count: Some(creation.partitions_count),
                    message_expiry: Some(creation.message_expiry),
                    max_topic_size: Some(creation.max_topic_size),
                    durability: creation.durability,
                    ..TopicCreateOptions::default()
                };
                let created = client.create_topic(stream, name, &options).await;
                tolerate(created.map(drop), ErrorCode::TopicNameAlreadyExists)?;
            }
            (other, _) => return Err(missing("topic", other, ErrorCode::TopicNameNotFound)),
        }
    }
    Ok(())
}

/// Somebody else may have created it first.
fn tolerate(outcome: Result<(), IggyError>, code: ErrorCode) -> Result<(), IggyError> {
    match outcome {
        Err(error) if error.code() == code => Ok(()),
        other => other,
    }
}
