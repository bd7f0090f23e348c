//! Consumer groups.

use iggy_protocol::request::group::{CreateConsumerGroup, DeleteConsumerGroup, JoinConsumerGroup, LeaveConsumerGroup};
use iggy_protocol::{Command, ErrorCode, Identifier};

use super::{Admission, Admitted};
use crate::change::Change;
use crate::keys::{GroupKey, SessionKey};
use crate::metadata::Metadata;
use crate::model::group::Group;

impl Metadata {
    pub(super) fn admit_create_group(&self, user_id: u32, request: CreateConsumerGroup) -> Admitted {
        let class = Command::CreateConsumerGroup.permission();
        let (stream, topic) = self.permitted_topic(user_id, class, &request.stream, &request.topic)?;
        if topic.group_names.contains_key(&request.name) {
            return Err(ErrorCode::ConsumerGroupNameAlreadyExists);
        }
        topic
            .group_ids
            .peek(|id| topic.groups.contains_key(&id))
            .ok_or(ErrorCode::TooManyConsumerGroups)?;
        Ok(Admission::Ready(Change::CreateGroup {
            topic: topic.key(stream.id),
            name: request.name,
        }))
    }

    pub(super) fn admit_delete_group(&self, user_id: u32, request: &DeleteConsumerGroup) -> Admitted {
        let (group, _) = self.permitted_group(
            user_id,
            Command::DeleteConsumerGroup,
            &request.stream,
            &request.topic,
            &request.group,
        )?;
        Ok(Admission::Ready(Change::DeleteGroup { group }))
    }

    pub(super) fn admit_join_group(&self, user_id: u32, request: &JoinConsumerGroup) -> Admitted {
        let (group, _) = self.permitted_group(
            user_id,
            Command::JoinConsumerGroup,
            &request.stream,
            &request.topic,
            &request.group,
        )?;
        Ok(Admission::Ready(Change::JoinGroup { group }))
    }

    pub(super) fn admit_leave_group(
        &self,
        user_id: u32,
        session: SessionKey,
        request: &LeaveConsumerGroup,
    ) -> Admitted {
        let (key, group) = self.permitted_group(
            user_id,
            Command::LeaveConsumerGroup,
            &request.stream,
            &request.topic,
            &request.group,
        )?;
        group.member_of(session).ok_or(ErrorCode::ConsumerGroupMemberNotFound)?;
        Ok(Admission::Ready(Change::LeaveGroup { group: key }))
    }

    pub(crate) fn permitted_group(
        &self,
        user_id: u32,
        command: Command,
        stream: &Identifier,
        topic: &Identifier,
        group: &Identifier,
    ) -> Result<(GroupKey, &Group), ErrorCode> {
        let (stream, topic) = self.permitted_topic(user_id, command.permission(), stream, topic)?;
        let group = self.group(topic, group)?;
        Ok((topic.group_key(stream.id, group), group))
    }
}
