//! What the server answered, as records that can be shown in every form.

use bytes::Bytes;
use iggy_protocol::reply::group::{ConsumerGroup, ConsumerGroupDetails};
use iggy_protocol::reply::offset::ConsumerOffset;
use iggy_protocol::reply::stream::{Stream, StreamDetails};
use iggy_protocol::reply::system::{ClientDetails, ClientSummary, ClusterMetadata, OptionDescription, Stats};
use iggy_protocol::reply::topic::{Partition, Topic, TopicDetails};
use iggy_protocol::reply::user::{PersonalAccessToken, User, UserDetails};
use iggy_protocol::{Options, Permissions, TypedValue, ValueKind};

use crate::output::{Cell, Record};
use iggy_view::permissions::{global_names, stream_names, topic_names};

const NO_USER: u32 = u32::MAX;

/// A stream in a list.
pub fn stream(stream: &Stream) -> Record {
    Record::new()
        .with("id", stream.id)
        .with("name", stream.name.as_str())
        .with("created_at", Cell::Moment(stream.created_at))
        .with("size_bytes", Cell::Size(stream.size_bytes))
        .with("messages_count", stream.messages_count)
        .with("topics_count", stream.topics_count)
}

/// A stream with its options and topics.
pub fn stream_details(details: &StreamDetails) -> Record {
    stream(&details.stream)
        .with(
            "options",
            options(&details.stream.options, &details.stream.derived_options),
        )
        .with("topics", Cell::Records(details.topics.iter().map(topic).collect()))
}

/// A topic in a list.
pub fn topic(topic: &Topic) -> Record {
    Record::new()
        .with("id", topic.id)
        .with("name", topic.name.as_str())
        .with("created_at", Cell::Moment(topic.created_at))
        .with("size_bytes", Cell::Size(topic.size_bytes))
        .with("messages_count", topic.messages_count)
        .with("partitions_count", topic.partitions_count)
}

/// A topic with its options and partitions.
pub fn topic_details(details: &TopicDetails) -> Record {
    topic(&details.topic)
        .with(
            "options",
            options(&details.topic.options, &details.topic.derived_options),
        )
        .with(
            "partitions",
            Cell::Records(details.partitions.iter().map(partition).collect()),
        )
}

fn partition(partition: &Partition) -> Record {
    let replicas = |ids: &[u8]| Cell::Several(ids.iter().map(|id| Cell::Number(u64::from(*id))).collect());
    Record::new()
        .with("id", partition.id)
        .with("created_at", Cell::Moment(partition.created_at))
        .with("segments_count", partition.segments_count)
        .with("current_offset", partition.current_offset)
        .with("size_bytes", Cell::Size(partition.size_bytes))
        .with("messages_count", partition.messages_count)
        .with("members", replicas(&partition.members))
        .with("in_sync_members", replicas(&partition.in_sync))
}

/// A consumer group in a list.
pub fn group(group: &ConsumerGroup) -> Record {
    Record::new()
        .with("id", group.id)
        .with("name", group.name.as_str())
        .with("partitions_count", group.partitions_count)
        .with("members_count", group.members_count)
}

/// A consumer group with its members.
pub fn group_details(details: &ConsumerGroupDetails) -> Record {
    let members = details.members.iter().map(|member| {
        let partitions = member.partitions.iter().map(|id| Cell::from(*id)).collect();
        Record::new()
            .with("id", member.id)
            .with("partitions", Cell::Several(partitions))
    });
    group(&details.group).with("members", Cell::Records(members.collect()))
}

/// How far a consumer has read.
pub fn consumer_offset(consumer: &str, offset: &ConsumerOffset) -> Record {
    Record::new()
        .with("consumer", consumer)
        .with("partition_id", offset.partition_id)
        .with("stored_offset", offset.stored_offset)
        .with("current_offset", offset.current_offset)
}

/// A user in a list.
pub fn user(user: &User) -> Record {
    Record::new()
        .with("id", user.id)
        .with("username", user.username.as_str())
        .with("status", if user.status == 1 { "active" } else { "inactive" })
        .with("created_at", Cell::Moment(user.created_at))
}

/// A user with its permissions.
pub fn user_details(details: &UserDetails) -> Record {
    user(&details.user).with(
        "permissions",
        details
            .permissions
            .as_ref()
            .map_or(Cell::Nothing, |granted| Cell::Records(permissions(granted))),
    )
}

fn permissions(permissions: &Permissions) -> Vec<Record> {
    let row = |scope: String, granted: Vec<&'static str>| {
        Record::new()
            .with("scope", scope)
            .with("granted", Cell::Several(granted.into_iter().map(Cell::from).collect()))
    };
    let mut rows = vec![row("global".to_owned(), global_names(permissions.global))];
    for (stream, granted) in &permissions.streams {
        rows.push(row(format!("stream {stream}"), stream_names(granted.flags)));
        let topics = granted.topics.iter();
        rows.extend(topics.map(|(topic, flags)| row(format!("stream {stream} topic {topic}"), topic_names(*flags))));
    }
    rows
}

/// A personal access token in a list; never its text.
pub fn token(token: &PersonalAccessToken) -> Record {
    let expiry = if token.expiry_at == 0 {
        Cell::Nothing
    } else {
        Cell::Moment(token.expiry_at)
    };
    Record::new()
        .with("name", token.name.as_str())
        .with("expiry_at", expiry)
}

/// A connection in a list.
pub fn client(client: &ClientSummary) -> Record {
    let transport = match client.transport {
        1 => Cell::from("tcp"),
        2 => Cell::from("quic"),
        3 => Cell::from("http"),
        4 => Cell::from("websocket"),
        other => Cell::Number(other.into()),
    };
    Record::new()
        .with("client_id", client.client_id)
        .with(
            "user_id",
            if client.user_id == NO_USER {
                Cell::Nothing
            } else {
                client.user_id.into()
            },
        )
        .with("address", client.address.as_str())
        .with("transport", transport)
        .with("consumer_groups_count", client.groups_count)
}

/// A connection with its groups.
pub fn client_details(details: &ClientDetails) -> Record {
    let groups = details.groups.iter().map(|group| {
        Record::new()
            .with("stream_id", group.stream_id)
            .with("topic_id", group.topic_id)
            .with("group_id", group.group_id)
    });
    client(&details.client).with("consumer_groups", Cell::Records(groups.collect()))
}

/// The nodes.
pub fn nodes(cluster: &ClusterMetadata) -> Vec<Record> {
    let port = |port: u16| {
        if port == 0 {
            Cell::Nothing
        } else {
            Cell::Number(port.into())
        }
    };
    cluster
        .nodes
        .iter()
        .map(|node| {
            Record::new()
                .with("replica_id", u32::from(node.replica_id))
                .with("name", node.name.as_str())
                .with("address", node.ip.as_str())
                .with("tcp", port(node.tcp))
                .with("quic", port(node.quic))
                .with("http", port(node.http))
                .with("websocket", port(node.websocket))
                .with("role", node.role.name())
                .with("status", node.status.name())
        })
        .collect()
}

/// One option of a kind of resource.
pub fn option(option: &OptionDescription) -> Record {
    let flags = [
        (0, "updatable"),
        (1, "resettable"),
        (2, "secret"),
        (3, "read-only"),
        (4, "critical"),
    ];
    let set = flags
        .into_iter()
        .filter(|(bit, _)| option.flags >> bit & 1 == 1)
        .map(|(_, name)| Cell::from(name));
    let kind = ValueKind::from_u8(option.kind);
    let kind_name = kind
        .and_then(ValueKind::name)
        .map_or_else(|| option.kind.to_string(), str::to_owned);
    Record::new()
        .with("key", option.key.as_str())
        .with("kind", kind_name)
        .with("default", default_value(kind, &option.default))
        .with("flags", Cell::Several(set.collect()))
        .with("description", option.description.as_str())
}

fn default_value(kind: Option<ValueKind>, bytes: &Bytes) -> Cell {
    let value = kind
        .filter(|_| !bytes.is_empty())
        .and_then(|kind| TypedValue::new(kind, bytes.clone()).ok());
    value.map_or(Cell::Nothing, |value| Cell::text(&value))
}

fn options(explicit: &Options, derived: &Options) -> Cell {
    let rows = |options: &Options, origin: &'static str| {
        let row = |(key, value): (&iggy_protocol::Name, &TypedValue)| {
            Record::new()
                .with("key", key.as_str())
                .with("value", option_value(key, value))
                .with("origin", origin)
        };
        options.iter().map(row).collect::<Vec<_>>()
    };
    Cell::Records([rows(explicit, "set"), rows(derived, "default")].concat())
}

/// Sizes and times of the catalogue, in the words that set them.
fn option_value(key: &str, value: &TypedValue) -> Cell {
    let Ok(number) = value.as_uint64() else {
        return Cell::text(value);
    };
    match (key, number) {
        ("message_expiry", u64::MAX) => "none".into(),
        ("message_expiry", micros) => Cell::Time(micros),
        ("max_topic_size", u64::MAX) => "unlimited".into(),
        ("max_topic_size" | "segment_size" | "size_of_messages_required_to_save", bytes) => Cell::Size(bytes),
        (_, number) => number.into(),
    }
}

/// What the server counts about itself.
pub fn stats(stats: &Stats) -> Record {
    let numbers = &stats.numbers;
    let cache = stats.cache_metrics.iter().map(|cache| {
        Record::new()
            .with("stream_id", cache.stream_id)
            .with("topic_id", cache.topic_id)
            .with("partition_id", cache.partition_id)
            .with("hits", cache.hits)
            .with("misses", cache.misses)
            .with("hit_ratio", Cell::Fraction(f64::from(cache.hit_ratio)))
    });
    Record::new()
        .with("server_version", stats.iggy_server_version.as_str())
        .with("process_id", numbers.process_id)
        .with("start_time", Cell::Moment(numbers.start_time))
        .with("run_time", Cell::Time(numbers.run_time))
        .with("cpu_usage_percent", Cell::Fraction(f64::from(numbers.cpu_usage)))
        .with(
            "total_cpu_usage_percent",
            Cell::Fraction(f64::from(numbers.total_cpu_usage)),
        )
        .with("memory_usage", Cell::Size(numbers.memory_usage))
        .with("total_memory", Cell::Size(numbers.total_memory))
        .with("available_memory", Cell::Size(numbers.available_memory))
        .with("read_bytes", Cell::Size(numbers.read_bytes))
        .with("written_bytes", Cell::Size(numbers.written_bytes))
        .with("free_disk_space", Cell::Size(stats.free_disk_space))
        .with("total_disk_space", Cell::Size(stats.total_disk_space))
        .with("threads_count", stats.threads_count)
        .with("open_files_count", stats.open_files_count)
        .with("open_files_limit", stats.open_files_limit)
        .with("streams_count", numbers.streams_count)
        .with("topics_count", numbers.topics_count)
        .with("partitions_count", numbers.partitions_count)
        .with("segments_count", numbers.segments_count)
        .with("messages_count", numbers.messages_count)
        .with("messages_size_bytes", Cell::Size(numbers.messages_size_bytes))
        .with("consumer_groups_count", numbers.consumer_groups_count)
        .with("clients_count", numbers.clients_count)
        .with("hostname", stats.hostname.as_str())
        .with("os", format!("{} {}", stats.os_name, stats.os_version))
        .with("kernel_version", stats.kernel_version.as_str())
        .with("cache", Cell::Records(cache.collect()))
}
