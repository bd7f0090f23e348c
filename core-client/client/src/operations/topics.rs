//! Topics.

use iggy_protocol::reply::topic::{Topic, TopicDetails, Topics};
use iggy_protocol::request::system::{Resource, UpdateResource};
use iggy_protocol::request::topic::{CreateTopic, DeleteTopic, GetTopic, GetTopics};
use iggy_protocol::{Command, ErrorCode, Identifier};

use crate::client::IggyClient;
use crate::error::IggyError;
use crate::operations::resource_name;
use crate::resource_options::{TopicCreateOptions, TopicUpdateOptions};

impl IggyClient {
    /// A topic and its partitions; `None` when there is none of that name.
    pub async fn get_topic(&self, stream: &Identifier, topic: &Identifier) -> Result<Option<TopicDetails>, IggyError> {
        self.fetch_optional(
            Command::GetTopic,
            &GetTopic {
                stream: stream.clone(),
                topic: topic.clone(),
            },
        )
        .await
    }

    /// The topics of a stream.
    pub async fn get_topics(&self, stream: &Identifier) -> Result<Vec<Topic>, IggyError> {
        Ok(self
            .fetch::<Topics>(Command::GetTopics, &GetTopics { stream: stream.clone() })
            .await?
            .topics)
    }

    /// Creates a topic.
    ///
    /// ```no_run
    /// # async fn example(client: iggy::IggyClient) -> Result<(), iggy::IggyError> {
    /// use iggy::prelude::*;
    /// # let stream_id = Identifier::named("prod")?;
    /// client
    ///     .create_topic(
    ///         &stream_id,
    ///         "orders",
    ///         &TopicCreateOptions {
    ///             partitions_count: Some(6),
    ///             replication_factor: Some(3),
    ///             ..TopicCreateOptions::default()
    ///         },
    ///     )
    ///     .await?;
    /// # Ok(()) }
    /// ```
    pub async fn create_topic(
        &self,
        stream: &Identifier,
        name: &str,
        options: &TopicCreateOptions,
    ) -> Result<TopicDetails, IggyError> {
        let body = CreateTopic {
            stream: stream.clone(),
            partitions_count: options.partitions_count.unwrap_or(1),
            name: resource_name(name, ErrorCode::InvalidTopicName)?,
            options: options.encode()?,
        };
        self.fetch(Command::CreateTopic, &body).await
    }

    /// Changes a topic.
    ///
    /// ```no_run
    /// # async fn example(client: iggy::IggyClient, stream_id: iggy::Identifier, topic_id: iggy::Identifier) -> Result<(), iggy::IggyError> {
    /// use iggy::prelude::*;
    /// client
    ///     .update_topic(&stream_id, &topic_id, &TopicUpdateOptions { name: Some("renamed".into()), ..Default::default() })
    ///     .await?;
    /// # Ok(()) }
    /// ```
    pub async fn update_topic(
        &self,
        stream: &Identifier,
        topic: &Identifier,
        options: &TopicUpdateOptions,
    ) -> Result<(), IggyError> {
        let (set, reset) = options.encode()?;
        let resource = Resource::Topic {
            stream: stream.clone(),
            topic: topic.clone(),
        };
        self.update(UpdateResource { resource, reset, set }).await
    }

    /// Deletes a topic with everything in it.
    pub async fn delete_topic(&self, stream: &Identifier, topic: &Identifier) -> Result<(), IggyError> {
        self.ask(
            Command::DeleteTopic,
            &DeleteTopic {
                stream: stream.clone(),
                topic: topic.clone(),
            },
        )
        .await
        .map(drop)
    }
}
