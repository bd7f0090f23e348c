//! Consumer groups.

use std::sync::Arc;

use iggy_protocol::reply::group::{Assignment, ConsumerGroup, ConsumerGroupDetails, ConsumerGroups};
use iggy_protocol::request::group::{
    CreateConsumerGroup, DeleteConsumerGroup, GetConsumerGroup, GetConsumerGroups, JoinConsumerGroup,
    LeaveConsumerGroup, SyncConsumerGroup,
};
use iggy_protocol::{Command, ErrorCode, Identifier};
use tokio::time::Instant;

use crate::call::{Call, execute};
use crate::client::IggyClient;
use crate::core::Core;
use crate::error::IggyError;
use crate::frame_buffer::FrameBuffer;
use crate::memberships::GroupKey;
use crate::operations::{read_payload, resource_name};

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
            name: resource_name(name, ErrorCode::InvalidConsumerGroupName)?,
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
        let key = (stream.clone(), topic.clone(), group.clone());
        self.core().memberships.forget(&key);
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
        let key = (stream.clone(), topic.clone(), group.clone());
        sync_group(self.core(), key, self.core().default_deadline()).await
    }
}

/// Reads an assignment, remembers to keep the membership up, and tells its consumer.
pub(crate) async fn sync_group(
    core: &Arc<Core>,
    key: GroupKey,
    deadline: Instant,
) -> Result<Option<Assignment>, IggyError> {
    let (stream, topic, group) = key.clone();
    let body = SyncConsumerGroup { stream, topic, group };
    let epoch = core.session.bound().map(|bound| bound.epoch);
    let payload = execute(
        core,
        Call::new(Command::SyncConsumerGroup, FrameBuffer::of(&body), deadline),
    )
    .await?;
    let assignment: Option<Assignment> = if payload.is_empty() {
        None
    } else {
        Some(read_payload(&payload)?)
    };
    // What was asked under another session says nothing about this one.
    if core.session.bound().map(|bound| bound.epoch) == epoch {
        core.memberships.synced(&key, assignment.clone());
    }
    Ok(assignment)
}
