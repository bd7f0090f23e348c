//! Consumer groups: creation, deletion, membership.

use std::sync::Arc;

use iggy_protocol::reply::metadata_record::{
    AscendingIds, GroupCreatedBody, LeaveReason, MemberJoinedBody, MemberLeftBody, PartitionHandedOverBody, StreamKey,
};
use iggy_protocol::{ErrorCode, Name};

use super::{Ruling, Step};
use crate::change_log::{Fact, TopicIdentity, fact};
use crate::event::{Event, OwnerChange};
use crate::keys::{GroupKey, SessionKey, TopicKey};
use crate::metadata::Metadata;
use crate::model::group::Group;
use crate::queries::encode;
use crate::receipt::Outcome;

impl Metadata {
    pub(super) fn create_group(&mut self, step: &mut Step, topic_key: &TopicKey, name: &Name) -> Ruling {
        let topic = self.topic_by_key(topic_key).ok_or(ErrorCode::TopicIdNotFound)?;
        if topic.group_names.contains_key(name) {
            return Err(ErrorCode::ConsumerGroupNameAlreadyExists);
        }
        let identity = self.topic_identity(topic_key);
        let topic = self
            .topic_mut(topic_key.stream_id, topic_key.topic_id)
            .ok_or(ErrorCode::TopicIdNotFound)?;
        let groups = &topic.groups;
        let id = topic
            .group_ids
            .take(|id| groups.contains_key(&id))
            .ok_or(ErrorCode::TooManyConsumerGroups)?;
        let group = Group::new(id, name.clone(), step.at.op, topic.partitions_count());
        let payload = encode::group_details(&group);
        topic.group_names.insert(name.clone(), id);
        topic.groups.insert(id, Arc::new(group));
        step.facts.push(Fact::ConsumerGroupCreated(GroupCreatedBody {
            topic: identity,
            group_id: id,
            name: name.clone(),
            consumer_groups_count: topic.groups.len() as u32,
        }));
        Ok(Outcome::Done(payload))
    }

    pub(super) fn delete_group(&mut self, step: &mut Step, key: &GroupKey) -> Ruling {
        let group = self.group_by_key(key).ok_or(ErrorCode::ConsumerGroupIdNotFound)?;
        let name = group.name.clone();
        let members: Vec<SessionKey> = group.members().map(|(_, session)| session).collect();
        let topic_key = self
            .topic_by_id(key.stream_id, key.topic_id)
            .map(|topic| topic.key(key.stream_id))
            .ok_or(ErrorCode::TopicIdNotFound)?;
        let identity = self.topic_identity(&topic_key);
        for session in members {
            self.forget_membership(session, key);
        }
        let topic = self
            .topic_mut(key.stream_id, key.topic_id)
            .ok_or(ErrorCode::TopicIdNotFound)?;
        topic.groups.remove(&key.group_id);
        topic.group_names.remove(&name);
        let groups_count = topic.groups.len() as u32;
        step.facts
            .push(fact::group_deleted(identity, key.group_id, name, groups_count));
        step.events.push(Event::GroupDeleted { group: *key });
        Ok(Outcome::EMPTY)
    }

    pub(super) fn join_group(&mut self, step: &mut Step, key: &GroupKey) -> Ruling {
        let session = step.session();
        if self.session(session).is_none() {
            return Err(ErrorCode::Unauthenticated);
        }
        let op = step.at.op;
        let group = self.group_mut(key).ok_or(ErrorCode::ConsumerGroupIdNotFound)?;
        let Some(joined) = group.join(session, op) else {
            // A member already: joining again is no rebalance.
            return Ok(Outcome::EMPTY);
        };
        let partitions = group.partitions_of(joined.member_id);
        let members_count = group.members().len() as u32;
        if let Some(session) = self.session_mut(session) {
            session.memberships.insert(*key);
        }
        let topic = self.identity_of_group(key);
        step.facts.push(Fact::ConsumerGroupMemberJoined(MemberJoinedBody {
            topic: topic.clone(),
            group_id: key.group_id,
            member_id: joined.member_id,
            client_id: session.client,
            members_count,
            partitions: AscendingIds(partitions),
        }));
        // The record of the join names what the new member got; the rest is told one by one.
        let others = joined
            .changes
            .iter()
            .filter(|change| change.owner.is_none_or(|owner| owner.member_id != joined.member_id));
        step.hand_over(&topic, key, others);
        step.owners_changed(key, joined.changes);
        Ok(Outcome::EMPTY)
    }

    pub(super) fn leave_group(&mut self, step: &mut Step, key: &GroupKey) -> Ruling {
        if self.group_by_key(key).is_none() {
            return Err(ErrorCode::ConsumerGroupIdNotFound);
        }
        if self.end_membership(step, key, step.session(), LeaveReason::Left) {
            Ok(Outcome::EMPTY)
        } else {
            Err(ErrorCode::ConsumerGroupMemberNotFound)
        }
    }

    /// Ends one membership. Returns whether there was one.
    pub(super) fn end_membership(
        &mut self,
        step: &mut Step,
        key: &GroupKey,
        session: SessionKey,
        reason: LeaveReason,
    ) -> bool {
        let op = step.at.op;
        let Some(group) = self.group_mut(key) else { return false };
        let Some(left) = group.leave(session, op) else {
            return false;
        };
        let members_count = group.members().len() as u32;
        self.forget_membership(session, key);
        let topic = self.identity_of_group(key);
        step.facts.push(Fact::ConsumerGroupMemberLeft(MemberLeftBody {
            topic: topic.clone(),
            group_id: key.group_id,
            member_id: left.member_id,
            client_id: session.client,
            members_count,
            reason,
        }));
        step.hand_over(&topic, key, left.changes.iter());
        step.owners_changed(key, left.changes);
        true
    }

    /// Shares the partitions of every group of a topic out anew after their number changed.
    pub(super) fn resize_groups(&mut self, step: &mut Step, topic_key: &TopicKey) {
        let identity = self.topic_identity(topic_key);
        let Some(topic) = self.topic_mut(topic_key.stream_id, topic_key.topic_id) else {
            return;
        };
        let partitions_count = topic.partitions_count();
        let ids: Vec<u32> = topic.groups.keys().copied().collect();
        let mut resized = Vec::new();
        for id in ids {
            if let Some(group) = topic.groups.get_mut(&id).map(Arc::make_mut) {
                let changes = group.resize(partitions_count, step.at.op);
                resized.push((id, group.created_op, changes));
            }
        }
        for (group_id, created_op, changes) in resized {
            let key = GroupKey {
                stream_id: topic_key.stream_id,
                topic_id: topic_key.topic_id,
                group_id,
                created_op,
            };
            step.hand_over(&identity, &key, changes.iter());
            step.owners_changed(&key, changes);
        }
    }

    pub(super) fn forget_membership(&mut self, session: SessionKey, key: &GroupKey) {
        if let Some(session) = self.session_mut(session) {
            session.memberships.remove(key);
        }
    }

    /// How records name a topic; a key whose stream is gone cannot reach here.
    pub(super) fn topic_identity(&self, key: &TopicKey) -> TopicIdentity {
        let stream_created_op = self.stream_by_id(key.stream_id).map_or(0, |stream| stream.created_op);
        TopicIdentity {
            stream: StreamKey {
                stream_id: key.stream_id,
                stream_created_op,
            },
            topic_id: key.topic_id,
            topic_created_op: key.created_op,
        }
    }

    fn identity_of_group(&self, key: &GroupKey) -> TopicIdentity {
        let created_op = self
            .topic_by_id(key.stream_id, key.topic_id)
            .map_or(0, |topic| topic.created_op);
        self.topic_identity(&TopicKey {
            stream_id: key.stream_id,
            topic_id: key.topic_id,
            created_op,
        })
    }
}

impl Step {
    fn hand_over<'a>(&mut self, topic: &TopicIdentity, key: &GroupKey, changes: impl Iterator<Item = &'a OwnerChange>) {
        self.facts.extend(changes.map(|change| {
            let member_id = change.owner.map(|owner| owner.member_id);
            Fact::ConsumerGroupPartitionHandedOver(PartitionHandedOverBody {
                topic: topic.clone(),
                group_id: key.group_id,
                partition_id: change.partition_id,
                member_id,
            })
        }));
    }

    fn owners_changed(&mut self, key: &GroupKey, changes: Vec<OwnerChange>) {
        if !changes.is_empty() {
            self.events.push(Event::OwnersChanged { group: *key, changes });
        }
    }
}
