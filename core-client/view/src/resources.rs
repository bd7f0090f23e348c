//! Streams, topics, groups, users, tokens, connections, nodes, options and statistics.

use iggy_protocol::reply::group::{Assignment, ConsumerGroup, ConsumerGroupDetails};
use iggy_protocol::reply::message::SendConfirmation;
use iggy_protocol::reply::offset::ConsumerOffset;
use iggy_protocol::reply::stream::{Stream, StreamDetails};
use iggy_protocol::reply::system::{ClientDetails, ClientSummary, ClusterMetadata, OptionDescription, Stats};
use iggy_protocol::reply::topic::{Partition, Topic, TopicDetails};
use iggy_protocol::reply::user::{PersonalAccessToken, USER_ACTIVE, User, UserDetails};
use iggy_protocol::{Options, TypedValue, ValueKind};
use serde_json::{Value, json};

use crate::changes::{granted, merged, option_map};

/// What a connection that is not signed in has instead of a user.
const NO_USER: u32 = u32::MAX;

fn options(explicit: &Options, derived: &Options) -> Value {
    json!({ "options": option_map(explicit), "derived_options": option_map(derived) })
}

/// A stream.
pub fn stream(stream: &Stream) -> Value {
    merged([
        json!({
            "id": stream.id,
            "name": stream.name.as_str(),
            "created_at": stream.created_at,
            "size_bytes": stream.size_bytes,
            "messages_count": stream.messages_count,
            "topics_count": stream.topics_count,
        }),
        options(&stream.options, &stream.derived_options),
    ])
}

/// A stream and its topics.
pub fn stream_details(details: &StreamDetails) -> Value {
    let topics: Vec<_> = details.topics.iter().map(topic).collect();
    merged([stream(&details.stream), json!({ "topics": topics })])
}

/// A topic.
pub fn topic(topic: &Topic) -> Value {
    merged([
        json!({
            "id": topic.id,
            "name": topic.name.as_str(),
            "created_at": topic.created_at,
            "size_bytes": topic.size_bytes,
            "messages_count": topic.messages_count,
            "partitions_count": topic.partitions_count,
        }),
        options(&topic.options, &topic.derived_options),
    ])
}

/// A topic and its partitions.
pub fn topic_details(details: &TopicDetails) -> Value {
    let partitions: Vec<_> = details.partitions.iter().map(partition).collect();
    merged([topic(&details.topic), json!({ "partitions": partitions })])
}

/// A partition of a topic.
pub fn partition(partition: &Partition) -> Value {
    json!({
        "id": partition.id,
        "created_at": partition.created_at,
        "segments_count": partition.segments_count,
        "current_offset": partition.current_offset,
        "size_bytes": partition.size_bytes,
        "messages_count": partition.messages_count,
        "incarnation": partition.context.incarnation,
        "members": partition.members,
        "in_sync": partition.in_sync,
    })
}

/// A consumer group.
pub fn group(group: &ConsumerGroup) -> Value {
    json!({
        "id": group.id,
        "name": group.name.as_str(),
        "partitions_count": group.partitions_count,
        "members_count": group.members_count,
    })
}

/// A consumer group and its members.
pub fn group_details(details: &ConsumerGroupDetails) -> Value {
    let members: Vec<_> = details
        .members
        .iter()
        .map(|member| json!({ "id": member.id, "partitions": member.partitions }))
        .collect();
    merged([group(&details.group), json!({ "members": members })])
}

/// What a member owns.
pub fn assignment(assignment: &Assignment) -> Value {
    json!({ "generation": assignment.generation, "partitions": assignment.partitions })
}

/// How far a consumer stored that it read.
pub fn consumer_offset(offset: &ConsumerOffset) -> Value {
    json!({
        "partition_id": offset.partition_id,
        "current_offset": offset.current_offset,
        "stored_offset": offset.stored_offset,
    })
}

/// Where sent messages are.
pub fn confirmation(confirmation: &SendConfirmation) -> Value {
    json!({
        "stream_id": confirmation.stream_id,
        "topic_id": confirmation.topic_id,
        "partition_id": confirmation.partition_id,
        "base_offset": confirmation.base_offset,
    })
}

/// A user.
pub fn user(user: &User) -> Value {
    merged([
        json!({
            "id": user.id,
            "username": user.username.as_str(),
            "status": if user.status == USER_ACTIVE { "active" } else { "inactive" },
            "created_at": user.created_at,
        }),
        options(&user.options, &user.derived_options),
    ])
}

/// A user and what it may do.
pub fn user_details(details: &UserDetails) -> Value {
    merged([
        user(&details.user),
        json!({ "permissions": granted(details.permissions.as_ref()) }),
    ])
}

/// A personal access token, without its text.
pub fn token(token: &PersonalAccessToken) -> Value {
    let expiry = (token.expiry_at != 0).then_some(token.expiry_at);
    json!({ "name": token.name.as_str(), "expiry_at": expiry })
}

/// A connection.
pub fn client(client: &ClientSummary) -> Value {
    let transport = match client.transport {
        1 => "tcp",
        2 => "quic",
        3 => "http",
        4 => "websocket",
        _ => "unknown",
    };
    json!({
        "client_id": client.client_id,
        "user_id": (client.user_id != NO_USER).then_some(client.user_id),
        "transport": transport,
        "address": client.address,
        "consumer_groups_count": client.groups_count,
    })
}

/// A connection and its groups.
pub fn client_details(details: &ClientDetails) -> Value {
    let groups: Vec<_> = details
        .groups
        .iter()
        .map(|group| json!({ "stream_id": group.stream_id, "topic_id": group.topic_id, "group_id": group.group_id }))
        .collect();
    merged([client(&details.client), json!({ "consumer_groups": groups })])
}

/// The nodes. A port of a transport that is not served is `null`.
pub fn cluster(cluster: &ClusterMetadata) -> Value {
    let port = |port: u16| (port != 0).then_some(port);
    let nodes: Vec<_> = cluster
        .nodes
        .iter()
        .map(|node| {
            json!({
                "replica_id": node.replica_id,
                "name": node.name,
                "address": node.ip,
                "tcp": port(node.tcp),
                "quic": port(node.quic),
                "http": port(node.http),
                "websocket": port(node.websocket),
                "role": node.role.name(),
                "status": node.status.name(),
            })
        })
        .collect();
    json!({ "name": cluster.name, "nodes": nodes })
}

/// An option of a kind of resource.
pub fn option(option: &OptionDescription) -> Value {
    let flag = |bit: u8| option.flags >> bit & 1 == 1;
    let kind = ValueKind::from_u8(option.kind);
    let default = kind
        .filter(|_| !option.default.is_empty())
        .and_then(|kind| TypedValue::new(kind, option.default.clone()).ok());
    json!({
        "key": option.key.as_str(),
        "kind": kind.and_then(ValueKind::name),
        "default": default.map(|value| value.to_string()),
        "updatable": flag(0),
        "resettable": flag(1),
        "secret": flag(2),
        "read_only": flag(3),
        "critical": flag(4),
        "description": option.description,
    })
}

/// What a node counts about itself.
pub fn stats(stats: &Stats) -> Value {
    let numbers = &stats.numbers;
    let cache: Vec<_> = stats
        .cache_metrics
        .iter()
        .map(|cache| {
            json!({
                "stream_id": cache.stream_id,
                "topic_id": cache.topic_id,
                "partition_id": cache.partition_id,
                "hits": cache.hits,
                "misses": cache.misses,
                "hit_ratio": cache.hit_ratio,
            })
        })
        .collect();
    merged([
        json!({
            "process_id": numbers.process_id,
            "cpu_usage": numbers.cpu_usage,
            "total_cpu_usage": numbers.total_cpu_usage,
            "memory_usage": numbers.memory_usage,
            "total_memory": numbers.total_memory,
            "available_memory": numbers.available_memory,
            "run_time": numbers.run_time,
            "start_time": numbers.start_time,
            "read_bytes": numbers.read_bytes,
            "written_bytes": numbers.written_bytes,
            "messages_size_bytes": numbers.messages_size_bytes,
        }),
        json!({
            "streams_count": numbers.streams_count,
            "topics_count": numbers.topics_count,
            "partitions_count": numbers.partitions_count,
            "segments_count": numbers.segments_count,
            "messages_count": numbers.messages_count,
            "clients_count": numbers.clients_count,
            "consumer_groups_count": numbers.consumer_groups_count,
            "hostname": stats.hostname,
            "os_name": stats.os_name,
            "os_version": stats.os_version,
            "kernel_version": stats.kernel_version,
            "iggy_server_version": stats.iggy_server_version,
            "threads_count": stats.threads_count,
            "free_disk_space": stats.free_disk_space,
            "total_disk_space": stats.total_disk_space,
            "open_files_count": stats.open_files_count,
            "open_files_limit": stats.open_files_limit,
            "cache": cache,
        }),
    ])
}
