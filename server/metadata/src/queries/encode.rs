//! From the model to the values of replies.

use bytes::Bytes;
use iggy_protocol::options::Options;
use iggy_protocol::reply::{group as wire_group, stream as wire_stream, topic as wire_topic, user as wire_user};
use iggy_protocol::{Encode, PartitionContext};

use super::PartitionCounters;
use crate::metadata::Metadata;
use crate::model::group::Group;
use crate::model::stream::Stream;
use crate::model::topic::Topic;
use crate::model::user::User;

/// A stream whose totals are those of its topics.
pub(crate) fn stream(stream: &Stream, topics: &[wire_topic::Topic]) -> wire_stream::Stream {
    wire_stream::Stream {
        id: stream.id,
        created_at: stream.created_at,
        topics_count: stream.topics.len() as u32,
        size_bytes: topics
            .iter()
            .fold(0, |total, topic| total.saturating_add(topic.size_bytes)),
        messages_count: topics
            .iter()
            .fold(0, |total, topic| total.saturating_add(topic.messages_count)),
        name: stream.name.clone(),
        options: stream.options.explicit.clone(),
        derived_options: stream.options.derived.clone(),
    }
}

pub(crate) fn topic(stream_id: u32, topic: &Topic, counters: &dyn PartitionCounters) -> wire_topic::Topic {
    let (size_bytes, messages_count) = Metadata::totals(stream_id, topic, counters);
    wire_topic::Topic {
        id: topic.id,
        created_at: topic.created_at,
        partitions_count: topic.partitions_count(),
        size_bytes,
        messages_count,
        name: topic.name.clone(),
        options: topic.options.explicit.clone(),
        derived_options: topic.options.derived.clone(),
    }
}

/// A topic with its partitions as of a position.
pub(crate) fn topic_details(
    stream_id: u32,
    found: &Topic,
    metadata_op: u64,
    counters: &dyn PartitionCounters,
) -> wire_topic::TopicDetails {
    let partitions = found
        .partition_keys(stream_id)
        .zip(found.partitions.iter())
        .map(|(key, partition)| {
            let counters = counters.of(&key);
            wire_topic::Partition {
                id: key.partition_id,
                created_at: partition.created_at,
                segments_count: counters.segments_count,
                current_offset: counters.current_offset,
                size_bytes: counters.size_bytes,
                messages_count: counters.messages_count,
                context: PartitionContext::from_route(partition.history.incarnation, metadata_op),
                members: partition.members.clone(),
                in_sync: counters.in_sync,
            }
        });
    wire_topic::TopicDetails {
        partitions: partitions.collect(),
        topic: topic(stream_id, found, counters),
    }
}

/// Reply of a create: the stream without topics.
pub(crate) fn new_stream(created: &Stream) -> Bytes {
    wire_stream::StreamDetails {
        stream: stream(created, &[]),
        topics: Vec::new(),
    }
    .to_bytes()
    .freeze()
}

/// Reply of a create: the topic with its empty partitions.
pub(crate) fn new_topic(stream_id: u32, created: &Topic, metadata_op: u64) -> Bytes {
    topic_details(stream_id, created, metadata_op, &()).to_bytes().freeze()
}

pub(crate) fn group(group: &Group) -> wire_group::ConsumerGroup {
    wire_group::ConsumerGroup {
        id: group.id,
        partitions_count: group.partitions_count(),
        members_count: group.members().len() as u32,
        name: group.name.clone(),
    }
}

pub(crate) fn group_details(found: &Group) -> Bytes {
    let members = found.assignments().into_iter();
    wire_group::ConsumerGroupDetails {
        group: group(found),
        members: members
            .map(|(id, partitions)| wire_group::ConsumerGroupMember { id, partitions })
            .collect(),
    }
    .to_bytes()
    .freeze()
}

/// A user. Its columns are fields of the reply, and it has no other options.
pub(crate) fn user(user: &User) -> wire_user::User {
    wire_user::User {
        id: user.id,
        created_at: user.created_at,
        status: user.status as u8,
        username: user.username.clone(),
        options: Options::new(),
        derived_options: Options::new(),
    }
}

pub(crate) fn user_details(found: &User) -> Bytes {
    let permissions = found.permissions.as_deref().cloned();
    wire_user::UserDetails {
        user: user(found),
        permissions,
    }
    .to_bytes()
    .freeze()
}
