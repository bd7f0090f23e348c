/// @file
/// How clients, producers, consumers, readers and reads are configured. What is left out has the default of the client.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <iggy/id.hpp>

namespace iggy {

class MessageView;

/// End-to-end encryption of payloads and headers.
class Encryption {
public:
    /// With a key of 32 bytes.
    static Encryption aes_256_gcm(std::span<const std::byte> key) { return {"aes-256-gcm", key}; }
    /// With a key of 32 bytes; a nonce that repeats by accident costs less.
    static Encryption aes_256_gcm_siv(std::span<const std::byte> key) { return {"aes-256-gcm-siv", key}; }

    [[nodiscard]] std::string json() const { return detail::Object().set("cipher", cipher_).set("key", key_).json(); }

private:
    Encryption(std::string_view cipher, std::span<const std::byte> key) : cipher_(cipher), key_(detail::base64(key)) {}

    std::string cipher_;
    std::string key_;
};

/// Encrypts the link.
struct Tls {
    /// The name the certificate must be for. Default that of the address.
    std::optional<std::string> domain = {};
    /// Certificates to trust besides those of the system, in PEM.
    std::optional<std::string> ca_file = {};
    /// Default true.
    std::optional<bool> validate_certificate = {};

    [[nodiscard]] std::string json() const {
        return detail::Object()
            .set("domain", domain)
            .set("ca_file", ca_file)
            .set("validate_certificate", validate_certificate)
            .json();
    }
};

/// The messages of a send, as a partitioner sees them.
class MessageList;

/// Chooses the partition of a send. It is called on threads of the client, from several at once, and must not block;
/// what it throws fails the send.
using Partitioner =
    std::function<std::uint32_t(std::string_view stream, std::string_view topic, const MessageList& messages)>;

/// How a client reaches and treats its server; each overrides what a connection string says.
struct ClientOptions {
    /// `iggy://user:password@host:port?key=value`, or with a token instead of user and password.
    std::optional<std::string> connection_string = {};
    /// `host:port`, IPv6 in brackets. Default 127.0.0.1:8090.
    std::optional<std::string> server_address = {};
    std::optional<std::string> username = {};
    std::optional<std::string> password = {};
    /// A personal access token, instead of username and password.
    std::optional<std::string> token = {};
    /// Default plain TCP.
    std::optional<Tls> tls = {};
    /// Whether small frames are sent at once. Default true.
    std::optional<bool> nodelay = {};
    /// Passes over all nodes before a connect gives up. Default unlimited.
    std::optional<std::uint32_t> reconnection_max_retries = {};
    /// Ceiling of the first random pause between passes; it doubles up to 10 s. Default 1 s.
    std::optional<std::chrono::microseconds> reconnection_interval = {};
    /// A link that held so long starts again with the first pause. Default 5 s.
    std::optional<std::chrono::microseconds> reestablish_after = {};
    /// Time between two pings. Default 5 s.
    std::optional<std::chrono::microseconds> heartbeat_interval = {};
    /// Deadline of a call that names none; polls have their wait and 10 s. Default 30 s.
    std::optional<std::chrono::microseconds> request_timeout = {};
    /// Writes under way or unresolved at once. Default 256.
    std::optional<std::uint32_t> max_pending_operations = {};
    /// Bytes of their frames. Default 64 MiB.
    std::optional<std::uint32_t> max_pending_operation_bytes = {};
    /// Largest request. Default 64 MiB.
    std::optional<std::uint32_t> max_frame_bytes = {};
    /// Encrypts what is sent and decrypts what is read.
    std::optional<Encryption> encryption = {};
    /// Chooses the partition of every send.
    Partitioner partitioner = {};

    [[nodiscard]] std::string json() const {
        return detail::Object()
            .set("connection_string", connection_string)
            .set("server_address", server_address)
            .set("username", username)
            .set("password", password)
            .set("token", token)
            .set("tls", tls)
            .set("nodelay", nodelay)
            .set("reconnection_max_retries", reconnection_max_retries)
            .set("reconnection_interval", reconnection_interval)
            .set("reestablish_after", reestablish_after)
            .set("heartbeat_interval", heartbeat_interval)
            .set("request_timeout", request_timeout)
            .set("max_pending_operations", max_pending_operations)
            .set("max_pending_operation_bytes", max_pending_operation_bytes)
            .set("max_frame_bytes", max_frame_bytes)
            .set("encryption", encryption)
            .json();
    }
};

/// Where a read starts, in whatever history the partition has.
class PollingStrategy {
public:
    /// At the oldest message.
    static PollingStrategy first() { return {IGGY_START_FIRST, 0}; }
    /// At the newest messages.
    static PollingStrategy last() { return {IGGY_START_LAST, 0}; }
    /// After the stored offset of the consumer.
    static PollingStrategy next() { return {IGGY_START_NEXT, 0}; }
    /// At this offset.
    static PollingStrategy offset(std::uint64_t offset) { return {IGGY_START_OFFSET, offset}; }
    /// At the first message that the server took at or after this time, in microseconds since the Unix epoch.
    static PollingStrategy timestamp(std::uint64_t micros) { return {IGGY_START_TIMESTAMP, micros}; }
    /// At the first message that the server took at or after this time.
    static PollingStrategy timestamp(std::chrono::sys_time<std::chrono::microseconds> time) {
        return timestamp(static_cast<std::uint64_t>(time.time_since_epoch().count()));
    }

    [[nodiscard]] IggyStart raw() const noexcept { return {kind_, false, false, 0, value_, 0, 0, 0}; }
    [[nodiscard]] std::string json() const {
        switch (kind_) {
            case IGGY_START_FIRST: return "\"first\"";
            case IGGY_START_LAST: return "\"last\"";
            case IGGY_START_NEXT: return "\"next\"";
            case IGGY_START_OFFSET: return detail::Object().set("offset", value_).json();
            default: return detail::Object().set("timestamp", value_).json();
        }
    }

private:
    PollingStrategy(std::uint8_t kind, std::uint64_t value) noexcept : kind_(kind), value_(value) {}

    std::uint8_t kind_;
    std::uint64_t value_;
};

/// How a send finds its partition.
class Partitioning {
public:
    /// Each in turn.
    static Partitioning balanced() { return Partitioning("\"balanced\""); }
    /// This one.
    static Partitioning partition(std::uint32_t id) { return Partitioning(detail::Object().set("partition", id).json()); }
    /// By a key of 1 to 255 bytes: the same key leads to the same partition, whichever language sends it.
    static Partitioning key(std::span<const std::byte> key) {
        return Partitioning(detail::Object().set("key", key).json());
    }
    static Partitioning key(std::string_view text) { return key(std::as_bytes(std::span(text))); }
    static Partitioning key(const char* text) { return key(std::string_view(text)); }
    /// By the eight bytes of a number, lowest first.
    static Partitioning key(std::uint64_t number) {
        std::byte bytes[8];
        for (auto& byte : bytes) {
            byte = static_cast<std::byte>(number & 0xff);
            number >>= 8;
        }
        return key(std::span<const std::byte>(bytes));
    }

    [[nodiscard]] const std::string& json() const noexcept { return json_; }

private:
    explicit Partitioning(std::string json) : json_(std::move(json)) {}

    std::string json_;
};

/// How many messages make positions be stored that the client counted.
class CommitEvery {
public:
    static CommitEvery messages(std::uint32_t count) { return CommitEvery(std::to_string(count)); }
    static CommitEvery message() { return CommitEvery("\"message\""); }
    static CommitEvery batch() { return CommitEvery("\"batch\""); }
    /// No number does.
    static CommitEvery by_time_alone() { return CommitEvery("0"); }

    [[nodiscard]] const std::string& json() const noexcept { return json_; }

private:
    explicit CommitEvery(std::string json) : json_(std::move(json)) {}

    std::string json_;
};

/// What counts as done: the next message was asked for, it was handed out, or it was marked.
enum class CommitAfter : std::uint8_t { processing, delivery, marked };

/// How often positions are stored that the client counted.
struct AutoCommit {
    /// 0 for not by time. Default 5 s.
    std::optional<std::chrono::microseconds> interval = {};
    /// Default every 10000 messages.
    std::optional<CommitEvery> every = {};
    /// Default processing.
    std::optional<CommitAfter> after = {};

    [[nodiscard]] std::string json() const {
        static constexpr const char* names[] = {"processing", "delivery", "marked"};
        detail::Object out;
        out.set("interval", interval).set("every", every);
        if (after) out.set("after", names[static_cast<std::uint8_t>(*after)]);
        return out.json();
    }
};

/// When the position of a consumer is stored.
class CommitPolicy {
public:
    /// When the application stores it; the default.
    static CommitPolicy manual() { return CommitPolicy("\"manual\""); }
    /// By the server as part of the read.
    static CommitPolicy on_read() { return CommitPolicy("\"on_read\""); }
    /// By the client, as it counts. Not for a single poll.
    static CommitPolicy automatic(const AutoCommit& how = {}) {
        return CommitPolicy(detail::Object().set("auto", how).json());
    }

    [[nodiscard]] const std::string& json() const noexcept { return json_; }

private:
    explicit CommitPolicy(std::string json) : json_(std::move(json)) {}

    std::string json_;
};

/// The limits of one read and its commit policy.
struct PollOptions {
    /// Most messages. Default 1000.
    std::optional<std::uint32_t> count = {};
    /// How long to wait for `min_count` messages, at most 10 minutes. Default 0; consumers and readers 5 s.
    std::optional<std::chrono::microseconds> max_wait = {};
    /// Messages that end the wait, 1 up to `count`. Default 1.
    std::optional<std::uint32_t> min_count = {};
    /// Most bytes of the reply, at least 344; a larger first message comes alone. Default 1 MiB.
    std::optional<std::uint32_t> max_bytes = {};
    /// Default manual.
    std::optional<CommitPolicy> commit = {};

    /// A read that waits.
    static PollOptions wait(std::chrono::microseconds limit) { return {.max_wait = limit}; }

    [[nodiscard]] std::string json() const {
        return detail::Object()
            .set("count", count)
            .set("max_wait", max_wait)
            .set("min_count", min_count)
            .set("max_bytes", max_bytes)
            .set("commit", commit)
            .json();
    }
};

/// Sends as part of the call.
struct Direct {
    /// Most messages of one request; a longer send is split; 0 for as many as fit. Default 1000.
    std::optional<std::uint32_t> batch_length = {};
    /// Least time between two sends. Default none.
    std::optional<std::chrono::microseconds> linger_time = {};

    [[nodiscard]] std::string json() const {
        return detail::Object().set("batch_length", batch_length).set("linger_time", linger_time).json();
    }
};

/// Which worker takes a send: the same for each topic, or each in turn.
enum class Sharding : std::uint8_t { ordered, balanced };

/// What a send does when the buffer is full.
class Backpressure {
public:
    /// Waits; the default.
    static Backpressure block() { return Backpressure("\"block\""); }
    /// Waits so long and fails then.
    static Backpressure block_for(std::chrono::microseconds limit) {
        return Backpressure(detail::Object().set("block_with_timeout", limit).json());
    }
    /// Fails.
    static Backpressure fail_immediately() { return Backpressure("\"fail_immediately\""); }

    [[nodiscard]] const std::string& json() const noexcept { return json_; }

private:
    explicit Backpressure(std::string json) : json_(std::move(json)) {}

    std::string json_;
};

/// Sends in the background.
struct Background {
    /// Workers. Default 1.
    std::optional<std::size_t> num_shards = {};
    /// Default ordered.
    std::optional<Sharding> sharding = {};
    /// Bytes that are sent without waiting for more; 0 for no such threshold. Default 1 MiB.
    std::optional<std::size_t> batch_size = {};
    /// Sends that are sent without waiting for more; 0 for no such threshold. Default 1000.
    std::optional<std::size_t> batch_length = {};
    /// How long a worker waits for more. Default 1 ms.
    std::optional<std::chrono::microseconds> linger_time = {};
    /// Bytes all buffered sends may take; 0 for no limit but the queues. Default 32 MiB.
    std::optional<std::size_t> max_buffer_size = {};
    /// Default to block.
    std::optional<Backpressure> failure_mode = {};
    /// Requests a worker has under way at once; above 1 their order is not kept. Default 1.
    std::optional<std::size_t> max_in_flight = {};

    [[nodiscard]] std::string json() const {
        static constexpr const char* names[] = {"ordered", "balanced"};
        detail::Object out;
        out.set("num_shards", num_shards).set("batch_size", batch_size).set("batch_length", batch_length);
        if (sharding) out.set("sharding", names[static_cast<std::uint8_t>(*sharding)]);
        out.set("linger_time", linger_time).set("max_buffer_size", max_buffer_size);
        out.set("failure_mode", failure_mode).set("max_in_flight", max_in_flight);
        return out.json();
    }
};

/// What the acknowledgement of a message promises: it survives the crash of a process, or the loss of power.
enum class Durability : std::uint8_t { replicated, persisted };

/// How a missing topic is created.
struct NewTopic {
    /// Default 1.
    std::optional<std::uint32_t> partitions_count = {};
    /// 0 for never. Default that of the server.
    std::optional<std::chrono::microseconds> message_expiry = {};
    /// Bytes; 0 for unlimited. Default that of the server.
    std::optional<std::uint64_t> max_topic_size = {};
    /// Default replicated.
    std::optional<Durability> durability = {};

    [[nodiscard]] std::string json() const {
        static constexpr const char* names[] = {"replicated", "persisted"};
        detail::Object out;
        out.set("partitions_count", partitions_count).set("message_expiry", message_expiry);
        out.set("max_topic_size", max_topic_size);
        if (durability) out.set("durability", names[static_cast<std::uint8_t>(*durability)]);
        return out.json();
    }
};

/// How a producer works.
struct ProducerOptions {
    /// Default balanced.
    std::optional<Partitioning> partitioning = {};
    /// Chooses the partition of each send instead.
    Partitioner partitioner = {};
    /// Whether a missing stream is created. Default true.
    std::optional<bool> create_stream = {};
    /// Whether, or how, a missing topic is created. Default with one partition.
    std::variant<std::monostate, bool, NewTopic> create_topic = {};
    /// Whether the partition writes each batch once, however often it is sent. Default false.
    std::optional<bool> idempotent = {};
    /// Sends as part of the call; the default.
    std::optional<Direct> direct = {};
    /// Sends in the background instead.
    std::optional<Background> background = {};
    /// Hears of each background send that failed, on a thread of the client. It must not throw.
    std::function<void(const Error&)> on_error = {};
    /// Another encryption than the client's.
    std::optional<Encryption> encryption = {};
    /// No encryption, though the client has one.
    std::optional<bool> without_encryption = {};

    [[nodiscard]] std::string json() const {
        detail::Object out;
        out.set("partitioning", partitioning).set("create_stream", create_stream);
        if (const bool* wanted = std::get_if<bool>(&create_topic)) out.set("create_topic", *wanted);
        if (const NewTopic* topic = std::get_if<NewTopic>(&create_topic)) out.set("create_topic", *topic);
        out.set("idempotent", idempotent).set("direct", direct).set("background", background);
        out.set("encryption", encryption).set("without_encryption", without_encryption);
        return out.json();
    }
};

/// Further tries of `init` when something is missing.
struct Retries {
    std::uint32_t count = 0;
    /// Before each. Default 1 s.
    std::optional<std::chrono::microseconds> interval = {};

    [[nodiscard]] std::string json() const {
        return detail::Object().set("count", count).set("interval", interval).json();
    }
};

/// How a consumer works. A consumer of its own names its partitions, a member of a group does not.
struct ConsumerOptions {
    /// What it reads.
    std::optional<std::vector<std::uint32_t>> partitions = {};
    /// Where each partition starts. Default next.
    std::optional<PollingStrategy> start = {};
    /// Limits and commit policy of its reads. Default a wait of 5 s and manual commits.
    std::optional<PollOptions> poll_options = {};
    /// Bytes read ahead at most. Default 16 MiB.
    std::optional<std::size_t> prefetch_bytes = {};
    /// Messages read ahead at most. Default 16000, or the count of a read.
    std::optional<std::size_t> prefetch_messages = {};
    /// Whether a missing group is created. Default true.
    std::optional<bool> create_consumer_group = {};
    /// Longest pause before a refused partition is read again. Default 1 s.
    std::optional<std::chrono::microseconds> polling_retry_interval = {};
    /// Default none.
    std::optional<Retries> init_retries = {};
    /// Hands messages out again that were handed out before a rebalance. Default false.
    std::optional<bool> allow_replay = {};
    /// How long positions may take to be stored at the end. Default 5 s.
    std::optional<std::chrono::microseconds> offset_drain_timeout = {};
    /// Another encryption than the client's.
    std::optional<Encryption> encryption = {};
    /// No encryption, though the client has one.
    std::optional<bool> without_encryption = {};

    [[nodiscard]] std::string json() const {
        return detail::Object()
            .set("partitions", partitions)
            .set("start", start)
            .set("poll_options", poll_options)
            .set("prefetch_bytes", prefetch_bytes)
            .set("prefetch_messages", prefetch_messages)
            .set("create_consumer_group", create_consumer_group)
            .set("polling_retry_interval", polling_retry_interval)
            .set("init_retries", init_retries)
            .set("allow_replay", allow_replay)
            .set("offset_drain_timeout", offset_drain_timeout)
            .set("encryption", encryption)
            .set("without_encryption", without_encryption)
            .json();
    }
};

/// How a reader works.
struct ReaderOptions {
    /// What it reads.
    std::vector<std::uint32_t> partitions = {};
    /// Where each partition starts. Default next.
    std::optional<PollingStrategy> start = {};
    /// Limits and commit policy of its reads. Default a wait of 5 s and manual commits.
    std::optional<PollOptions> options = {};
    /// Bytes read ahead at most. Default 16 MiB.
    std::optional<std::size_t> prefetch_bytes = {};
    /// Messages read ahead at most. Default 16000, or the count of a read.
    std::optional<std::size_t> prefetch_messages = {};

    [[nodiscard]] std::string json() const {
        return detail::Object()
            .set("partitions", partitions)
            .set("start", start)
            .set("options", options)
            .set("prefetch_bytes", prefetch_bytes)
            .set("prefetch_messages", prefetch_messages)
            .json();
    }
};

}  // namespace iggy
