//! Consumer groups.

use std::sync::{Arc, PoisonError};

use iggy_protocol::reply::group::{Assignment, ConsumerGroup, ConsumerGroupDetails, ConsumerGroups};
use iggy_protocol::request::group::{
    CreateConsumerGroup, DeleteConsumerGroup, GetConsumerGroup, GetConsumerGroups, JoinConsumerGroup,
    LeaveConsumerGroup, SyncConsumerGroup,
};
use iggy_protocol::{Command, Identifier, Name};
use tokio::time::Instant;

use crate::call::{Call, execute};
use crate::client::IggyClient;
use crate::core::Core;
use crate::error::IggyError;
use crate::frame_buffer::FrameBuffer;
use crate::operations::read_payload;

impl IggyClient {
    /// A group and its members; `None` when there is none of that name.
    pub async fn get_consumer_group(
        &self,
        stream: &Identifier,
        topic: &Identifier,
        group: &Identifier,
    ) -> Result<Option<ConsumerGroupDetails>, IggyError> {
        let body = GetConsumerGroup {
            stream: stream.clone(),
            topic: topic.clone(),
            group: group.clone(),
        };
        self.fetch_optional(Command::GetConsumerGroup, &body).await
    }

    /// The groups of a topic.
    pub async fn get_consumer_groups(
        &self,
        stream: &Identifier,
        topic: &Identifier,
    ) -> Result<Vec<ConsumerGroup>, IggyError> {
        let body = GetConsumerGroups {
            stream: stream.clone(),
            topic: topic.clone(),
        };
        Ok(self
            .fetch::<ConsumerGroups>(Command::GetConsumerGroups, &body)
            .await?
            .groups)
    }

    /// Creates a group.
    pub async fn create_consumer_group(
        &self,
        stream: &Identifier,
        topic: &Identifier,
        name: &str,
    ) -> Result<ConsumerGroupDetails, IggyError> {
        let body = CreateConsumerGroup {
            stream: stream.clone(),
            topic: topic.clone(),
            name: Name::new(name)?,
        };
        self.fetch(Command::CreateConsumerGroup, &body).await
    }

    /// Deletes a group and the offsets it stored.
    pub async fn delete_consumer_group(
        &self,
        stream: &Identifier,
        topic: &Identifier,
        group: &Identifier,
    ) -> Result<(), IggyError> {
        let body = DeleteConsumerGroup {
            stream: stream.clone(),
            topic: topic.clone(),
            group: group.clone(),
        };
        self.ask(Command::DeleteConsumerGroup, &body).await.map(drop)
    }

    /// Makes this session a member of a group, until it leaves, logs out or ends.
    pub async fn join_consumer_group(
        &self,
        stream: &Identifier,
        topic: &Identifier,
        group: &Identifier,
    ) -> Result<(), IggyError> {
        let body = JoinConsumerGroup {
            stream: stream.clone(),
            topic: topic.clone(),
            group: group.clone(),
        };
        self.ask(Command::JoinConsumerGroup, &body).await.map(drop)
    }

    /// Ends the membership of this session.
    pub async fn leave_consumer_group(
        &self,
        stream: &Identifier,
        topic: &Identifier,
        group: &Identifier,
    ) -> Result<(), IggyError> {
        let body = LeaveConsumerGroup {
            stream: stream.clone(),
            topic: topic.clone(),
            group: group.clone(),
        };
        self.forget_group(&(stream.clone(), topic.clone(), group.clone()));
        self.ask(Command::LeaveConsumerGroup, &body).await.map(drop)
    }

    /// The partitions this session owns in a group; `None` when it is no member. The heartbeat keeps the membership up
    /// from then on.
    pub async fn sync_consumer_group(
        &self,
        stream: &Identifier,
        topic: &Identifier,
        group: &Identifier,
    ) -> Result<Option<Assignment>, IggyError> {
        let deadline = self.core().default_deadline();
        sync_group(self.core(), stream.clone(), topic.clone(), group.clone(), deadline).await
    }
}

/// Reads an assignment and remembers to keep the membership up.
pub(crate) async fn sync_group(
    core: &Arc<Core>,
    stream: Identifier,
    topic: Identifier,
    group: Identifier,
    deadline: Instant,
) -> Result<Option<Assignment>, IggyError> {
    let body = SyncConsumerGroup {
        stream: stream.clone(),
        topic: topic.clone(),
        group: group.clone(),
    };
    let payload = execute(
        core,
        Call::new(Command::SyncConsumerGroup, FrameBuffer::of(&body), deadline),
    )
    .await?;
    let key = (stream, topic, group);
    let mut synced = core.synced_groups.lock().unwrap_or_else(PoisonError::into_inner);
    if payload.is_empty() {
        synced.remove(&key);
        return Ok(None);
    }
    synced.insert(key);
    read_payload(&payload).map(Some)
}
