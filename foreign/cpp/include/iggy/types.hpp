/// @file
/// What the server answers. Times are microseconds since the Unix epoch, sizes bytes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <iggy/detail/json.hpp>
#include <iggy/detail/value.hpp>

namespace iggy {

/// A stream.
struct Stream {
    std::uint32_t id = 0;
    std::string name;
    std::uint64_t created_at = 0;
    std::uint64_t size_bytes = 0;
    std::uint64_t messages_count = 0;
    std::uint32_t topics_count = 0;
    /// Settings that were made, as text.
    std::map<std::string, std::string> options;
    /// Settings that follow from those of the server, as text.
    std::map<std::string, std::string> derived_options;

    bool operator==(const Stream&) const = default;
};

/// A topic.
struct Topic {
    std::uint32_t id = 0;
    std::string name;
    std::uint64_t created_at = 0;
    std::uint64_t size_bytes = 0;
    std::uint64_t messages_count = 0;
    std::uint32_t partitions_count = 0;
    /// Settings that were made, as text.
    std::map<std::string, std::string> options;
    /// Settings that follow from those of the server, as text.
    std::map<std::string, std::string> derived_options;

    bool operator==(const Topic&) const = default;
};

/// A stream and its topics.
struct StreamDetails : Stream {
    std::vector<Topic> topics;

    bool operator==(const StreamDetails&) const = default;
};

/// A partition of a topic.
struct Partition {
    std::uint32_t id = 0;
    std::uint64_t created_at = 0;
    std::uint32_t segments_count = 0;
    std::uint64_t current_offset = 0;
    std::uint64_t size_bytes = 0;
    std::uint64_t messages_count = 0;
    /// Its history.
    std::uint64_t incarnation = 0;
    /// The replicas that hold it.
    std::vector<std::uint32_t> members;
    /// Those of them that are up to date.
    std::vector<std::uint32_t> in_sync;

    bool operator==(const Partition&) const = default;
};

/// A topic and its partitions.
struct TopicDetails : Topic {
    std::vector<Partition> partitions;

    bool operator==(const TopicDetails&) const = default;
};

/// A consumer group.
struct ConsumerGroup {
    std::uint32_t id = 0;
    std::string name;
    std::uint32_t partitions_count = 0;
    std::uint32_t members_count = 0;
};

/// A member of a consumer group, and what it owns.
struct GroupMember {
    std::uint32_t id = 0;
    std::vector<std::uint32_t> partitions;
};

/// A consumer group and its members.
struct ConsumerGroupDetails : ConsumerGroup {
    std::vector<GroupMember> members;
};

/// What a member owns now.
struct Assignment {
    std::uint64_t generation = 0;
    std::vector<std::uint32_t> partitions;
};

/// How far a consumer stored that it read.
struct ConsumerOffset {
    std::uint32_t partition_id = 0;
    /// The newest offset of the partition.
    std::uint64_t current_offset = 0;
    std::uint64_t stored_offset = 0;
};

/// What a user may do with one stream, and with its topics by their number.
struct StreamPermissions {
    /// Of `manage_stream`, `read_stream`, `manage_topics`, `read_topics`, `poll_messages`, `send_messages`.
    std::vector<std::string> granted;
    /// Of `manage_topic`, `read_topic`, `poll_messages`, `send_messages`.
    std::map<std::uint32_t, std::vector<std::string>> topics = {};

    [[nodiscard]] std::string json() const {
        return detail::Object().set("granted", granted).set("topics", topics).json();
    }

    bool operator==(const StreamPermissions&) const = default;
};

/// What a user may do.
struct Permissions {
    /// Everywhere: `manage_servers`, `read_servers`, `manage_users`, `read_users`, `manage_streams`, `read_streams`,
    /// `manage_topics`, `read_topics`, `poll_messages`, `send_messages`.
    std::vector<std::string> global = {};
    /// With streams by their number.
    std::map<std::uint32_t, StreamPermissions> streams = {};

    [[nodiscard]] std::string json() const {
        return detail::Object().set("global", global).set("streams", streams).json();
    }

    bool operator==(const Permissions&) const = default;
};

/// Whether a user may sign in.
enum class UserStatus : std::uint8_t { active, inactive };

/// A user.
struct User {
    std::uint32_t id = 0;
    std::string username;
    UserStatus status = UserStatus::active;
    std::uint64_t created_at = 0;
    /// Settings that were made, as text.
    std::map<std::string, std::string> options;
    /// Settings that follow from those of the server, as text.
    std::map<std::string, std::string> derived_options;
};

/// A user and what it may do.
struct UserDetails : User {
    std::optional<Permissions> permissions;
};

/// A personal access token, without its text.
struct PersonalAccessToken {
    std::string name;
    std::optional<std::uint64_t> expiry_at;
};

/// Who signed in.
struct Identity {
    std::uint32_t user_id = 0;
    std::uint64_t session = 0;
};

/// A connection.
struct ConnectedClient {
    std::uint32_t client_id = 0;
    /// None before it signed in.
    std::optional<std::uint32_t> user_id;
    std::string transport;
    std::string address;
    std::uint32_t consumer_groups_count = 0;
};

/// A group that a connection is a member of.
struct ConnectedGroup {
    std::uint32_t stream_id = 0;
    std::uint32_t topic_id = 0;
    std::uint32_t group_id = 0;
};

/// A connection and its groups.
struct ConnectedClientDetails : ConnectedClient {
    std::vector<ConnectedGroup> consumer_groups;
};

/// A node. A port of a transport that is not served is none.
struct Node {
    std::uint32_t replica_id = 0;
    std::string name;
    std::string address;
    std::optional<std::uint32_t> tcp;
    std::optional<std::uint32_t> quic;
    std::optional<std::uint32_t> http;
    std::optional<std::uint32_t> websocket;
    std::string role;
    std::string status;
};

/// The nodes.
struct Cluster {
    std::string name;
    std::vector<Node> nodes;
};

/// An option of a kind of resource.
struct OptionDescription {
    std::string key;
    std::optional<std::string> kind;
    std::optional<std::string> default_value;
    bool updatable = false;
    bool resettable = false;
    bool secret = false;
    bool read_only = false;
    bool critical = false;
    std::string description;
};

/// The cache of a partition.
struct CacheMetrics {
    std::uint32_t stream_id = 0;
    std::uint32_t topic_id = 0;
    std::uint32_t partition_id = 0;
    std::uint64_t hits = 0;
    std::uint64_t misses = 0;
    double hit_ratio = 0;
};

/// What a node counts about itself. Times are microseconds, processor use is percent of one core.
struct Stats {
    std::uint32_t process_id = 0;
    double cpu_usage = 0;
    double total_cpu_usage = 0;
    std::uint64_t memory_usage = 0;
    std::uint64_t total_memory = 0;
    std::uint64_t available_memory = 0;
    std::uint64_t run_time = 0;
    std::uint64_t start_time = 0;
    std::uint64_t read_bytes = 0;
    std::uint64_t written_bytes = 0;
    std::uint64_t messages_size_bytes = 0;
    std::uint32_t streams_count = 0;
    std::uint32_t topics_count = 0;
    std::uint32_t partitions_count = 0;
    std::uint32_t segments_count = 0;
    std::uint64_t messages_count = 0;
    std::uint32_t clients_count = 0;
    std::uint32_t consumer_groups_count = 0;
    std::string hostname;
    std::string os_name;
    std::string os_version;
    std::string kernel_version;
    std::string iggy_server_version;
    std::uint32_t threads_count = 0;
    std::uint64_t free_disk_space = 0;
    std::uint64_t total_disk_space = 0;
    std::uint64_t open_files_count = 0;
    std::uint64_t open_files_limit = 0;
    std::vector<CacheMetrics> cache;
};

/// The transport, and the node that is talked to.
struct ConnectionInfo {
    std::string protocol;
    std::string server_address;
};

/// Something that changed, or something that exists.
struct MetadataRecord {
    /// As `stream_created`.
    std::string kind;
    /// All of it, as JSON.
    std::string json;
};

/// A page of metadata changes.
struct MetadataChanges {
    std::string status;
    std::string phase;
    /// Where the next page starts.
    std::optional<std::string> next;
    /// Continues a scan of what exists now.
    std::optional<std::string> token;
    bool has_more = false;
    /// What changed, in order.
    std::vector<MetadataRecord> records;
    /// What exists now, of a scan.
    std::vector<MetadataRecord> items;
    /// All of it, as JSON.
    std::string json;
};

namespace detail {

// From the results of operations.

inline std::optional<std::uint32_t> port(Value value) {
    return value.optional([](Value port) { return port.u32(); });
}

template <typename T>
void read_named(Value value, T& out) {
    out.id = value["id"].u32();
    out.created_at = value["created_at"].u64();
    out.options = value["options"].strings();
    out.derived_options = value["derived_options"].strings();
}

inline void read(Value value, Stream& out) {
    read_named(value, out);
    out.name = value["name"].text();
    out.size_bytes = value["size_bytes"].u64();
    out.messages_count = value["messages_count"].u64();
    out.topics_count = value["topics_count"].u32();
}

inline void read(Value value, Topic& out) {
    read_named(value, out);
    out.name = value["name"].text();
    out.size_bytes = value["size_bytes"].u64();
    out.messages_count = value["messages_count"].u64();
    out.partitions_count = value["partitions_count"].u32();
}

template <typename T>
T made(Value value) {
    T out;
    read(value, out);
    return out;
}

template <typename T>
std::vector<T> made_list(Value value) {
    return value.list([](Value each) { return made<T>(each); });
}

inline void read(Value value, StreamDetails& out) {
    read(value, static_cast<Stream&>(out));
    out.topics = made_list<Topic>(value["topics"]);
}

inline void read(Value value, Partition& out) {
    out = {value["id"].u32(),
           value["created_at"].u64(),
           value["segments_count"].u32(),
           value["current_offset"].u64(),
           value["size_bytes"].u64(),
           value["messages_count"].u64(),
           value["incarnation"].u64(),
           value["members"].numbers(),
           value["in_sync"].numbers()};
}

inline void read(Value value, TopicDetails& out) {
    read(value, static_cast<Topic&>(out));
    out.partitions = made_list<Partition>(value["partitions"]);
}

inline void read(Value value, ConsumerGroup& out) {
    out = {value["id"].u32(), value["name"].text(), value["partitions_count"].u32(), value["members_count"].u32()};
}

inline void read(Value value, GroupMember& out) { out = {value["id"].u32(), value["partitions"].numbers()}; }

inline void read(Value value, ConsumerGroupDetails& out) {
    read(value, static_cast<ConsumerGroup&>(out));
    out.members = made_list<GroupMember>(value["members"]);
}

inline void read(Value value, Assignment& out) { out = {value["generation"].u64(), value["partitions"].numbers()}; }

inline void read(Value value, ConsumerOffset& out) {
    out = {value["partition_id"].u32(), value["current_offset"].u64(), value["stored_offset"].u64()};
}

inline void read(Value value, StreamPermissions& out) {
    out.granted = value["granted"].texts();
    const Value topics = value["topics"];
    for (std::size_t index = 0; index < topics.size(); ++index) {
        out.topics.emplace(std::stoul(topics.name_at(index)), topics.at(index).texts());
    }
}

inline void read(Value value, Permissions& out) {
    out.global = value["global"].texts();
    const Value streams = value["streams"];
    for (std::size_t index = 0; index < streams.size(); ++index) {
        out.streams.emplace(std::stoul(streams.name_at(index)), made<StreamPermissions>(streams.at(index)));
    }
}

inline void read(Value value, User& out) {
    read_named(value, out);
    out.username = value["username"].text();
    out.status = value["status"].text() == "active" ? UserStatus::active : UserStatus::inactive;
}

inline void read(Value value, UserDetails& out) {
    read(value, static_cast<User&>(out));
    out.permissions = value["permissions"].optional([](Value granted) { return made<Permissions>(granted); });
}

inline void read(Value value, PersonalAccessToken& out) {
    out = {value["name"].text(), value["expiry_at"].optional([](Value at) { return at.u64(); })};
}

inline void read(Value value, Identity& out) { out = {value["user_id"].u32(), value["session"].u64()}; }

inline void read(Value value, ConnectedClient& out) {
    out = {value["client_id"].u32(), port(value["user_id"]), value["transport"].text(), value["address"].text(),
           value["consumer_groups_count"].u32()};
}

inline void read(Value value, ConnectedGroup& out) {
    out = {value["stream_id"].u32(), value["topic_id"].u32(), value["group_id"].u32()};
}

inline void read(Value value, ConnectedClientDetails& out) {
    read(value, static_cast<ConnectedClient&>(out));
    out.consumer_groups = made_list<ConnectedGroup>(value["consumer_groups"]);
}

inline void read(Value value, Node& out) {
    out = {value["replica_id"].u32(), value["name"].text(),  value["address"].text(),
           port(value["tcp"]),        port(value["quic"]),   port(value["http"]),
           port(value["websocket"]),  value["role"].text(), value["status"].text()};
}

inline void read(Value value, Cluster& out) { out = {value["name"].text(), made_list<Node>(value["nodes"])}; }

inline void read(Value value, OptionDescription& out) {
    const auto text = [](Value each) { return each.text(); };
    out = {value["key"].text(),         value["kind"].optional(text),  value["default"].optional(text),
           value["updatable"].truth(),  value["resettable"].truth(),   value["secret"].truth(),
           value["read_only"].truth(),  value["critical"].truth(),     value["description"].text()};
}

inline void read(Value value, CacheMetrics& out) {
    out = {value["stream_id"].u32(), value["topic_id"].u32(), value["partition_id"].u32(),
           value["hits"].u64(),      value["misses"].u64(),   value["hit_ratio"].number()};
}

inline void read(Value value, Stats& out) {
    out = {value["process_id"].u32(),
           value["cpu_usage"].number(),
           value["total_cpu_usage"].number(),
           value["memory_usage"].u64(),
           value["total_memory"].u64(),
           value["available_memory"].u64(),
           value["run_time"].u64(),
           value["start_time"].u64(),
           value["read_bytes"].u64(),
           value["written_bytes"].u64(),
           value["messages_size_bytes"].u64(),
           value["streams_count"].u32(),
           value["topics_count"].u32(),
           value["partitions_count"].u32(),
           value["segments_count"].u32(),
           value["messages_count"].u64(),
           value["clients_count"].u32(),
           value["consumer_groups_count"].u32(),
           value["hostname"].text(),
           value["os_name"].text(),
           value["os_version"].text(),
           value["kernel_version"].text(),
           value["iggy_server_version"].text(),
           value["threads_count"].u32(),
           value["free_disk_space"].u64(),
           value["total_disk_space"].u64(),
           value["open_files_count"].u64(),
           value["open_files_limit"].u64(),
           made_list<CacheMetrics>(value["cache"])};
}

inline void read(Value value, ConnectionInfo& out) { out = {value["protocol"].text(), value["server_address"].text()}; }

inline void read(Value value, MetadataRecord& out) { out = {value["kind"].text(), value.json()}; }

inline void read(Value value, MetadataChanges& out) {
    const auto text = [](Value each) { return each.text(); };
    out = {value["status"].text(),
           value["phase"].text(),
           value["next"].optional(text),
           value["token"].optional(text),
           value["has_more"].truth(),
           made_list<MetadataRecord>(value["records"]),
           made_list<MetadataRecord>(value["items"]),
           value.json()};
}

}  // namespace detail
}  // namespace iggy
