/// @file
/// The client.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <iggy/producer.hpp>
#include <iggy/reading.hpp>
#include <iggy/types.hpp>

namespace iggy {

/// How a stream is created.
struct StreamCreateOptions {
    /// 32 bytes: messages at rest are encrypted with it.
    std::optional<std::vector<std::byte>> encryption_key = {};
    Settings options = {};
};

/// How a topic is created: by default of one partition, with the settings of the server.
struct TopicCreateOptions {
    std::optional<std::uint32_t> partitions_count = {};
    Settings options = {};
};

/// What changes of a stream or topic. A new name is an option like others: `name`.
struct UpdateOptions {
    Settings options = {};
    /// Settings that go back to their defaults.
    std::vector<std::string> reset = {};

    /// A new name.
    static UpdateOptions rename(std::string_view name) { return {.options = {{"name", name}}}; }
};

/// How a user is created.
struct UserCreateOptions {
    /// Default active.
    std::optional<UserStatus> status = {};
    /// Default none.
    std::optional<Permissions> permissions = {};
    Settings options = {};
};

/// What changes of a user.
struct UserUpdateOptions {
    std::optional<std::string> username = {};
    std::optional<UserStatus> status = {};
    Settings options = {};
    /// Settings that go back to their defaults.
    std::vector<std::string> reset = {};
};

/// Kinds of resources that have options.
enum class Scope : std::uint8_t { stream, topic, user };

/// Which metadata changes are asked for.
struct ChangesRequest {
    /// `earliest`, `latest`, the `next` of a page, or what exists now: `current`, with the `token` of a page to go on.
    std::string start = "earliest";
    std::optional<std::string> token = {};
    /// Microseconds since the Unix epoch.
    std::optional<std::uint64_t> since = {};
    /// Microseconds since the Unix epoch.
    std::optional<std::uint64_t> until = {};
    /// Default 1000.
    std::optional<std::uint32_t> limit = {};
    std::vector<std::uint32_t> groups = {};
};

/// Who sends an idempotent batch, and which one it is.
struct ProducerSection {
    std::uint64_t producer_id = 0;
    std::uint16_t epoch = 0;
    std::uint32_t base_sequence = 0;
};

/// A diagnostic snapshot: everything unless `types` says what.
struct SnapshotRequest {
    std::vector<std::string> types = {};
    /// Default deflated.
    std::optional<std::string> compression = {};
};

/// A client of the server. One serves any number of calls and threads at once; a forked child makes its own.
///
/// Every call returns an @ref Op. Its destructor closes nothing that others use and never blocks: await @ref shutdown.
class Client {
public:
    /// From its settings; it connects with @ref connect.
    /// @throws InvalidInputError A setting is wrong, or contradicts another; says which and what is allowed.
    explicit Client(const ClientOptions& options = {}) {
        const std::string settings = options.json();
        const IggyPartitioner choose = detail::partitioner(options.partitioner);
        detail::FailurePlace failure;
        client_.reset(iggy_client_new(detail::text_of(std::string_view(settings)), &choose, failure.place()));
        failure.raise();
    }

    /// From `iggy://user:password@host:port?key=value`, or with a token instead of user and password.
    /// @throws InvalidInputError It is wrong; says where and what is allowed.
    explicit Client(std::string_view connection_string) : Client(with(connection_string, {})) {}
    /// @copybrief Client(std::string_view) Each option overrides what the connection string says.
    Client(std::string_view connection_string, ClientOptions options)
        : Client(with(connection_string, std::move(options))) {}

    // The client itself.

    /// Connects, and signs in whoever is configured. Ends at once when that is done already.
    Op<void> connect() const { return invoke("connect"); }
    /// Closes every connection; the server keeps the session until it expires.
    Op<void> disconnect() const { return invoke("disconnect"); }
    /// Closes the client for good. May be called again.
    Op<void> shutdown() const { return invoke("shutdown"); }
    /// Subscribes to what happens to the client.
    [[nodiscard]] Events<ClientEvent> subscribe_events() const {
        detail::FailurePlace failure;
        Events<ClientEvent> events(iggy_client_subscribe_events(client_.get(), failure.place()));
        failure.raise();
        return events;
    }
    /// The transport, and the node that is talked to.
    Op<ConnectionInfo> get_connection_info() const { return one<ConnectionInfo>("get_connection_info"); }
    /// Time between two pings of a link.
    Op<std::chrono::microseconds> heartbeat_interval() const {
        return call<std::chrono::microseconds>("heartbeat_interval", {}, [](detail::Reply& reply) {
            return std::chrono::microseconds(value(reply).u64());
        });
    }
    /// Whether a write of unknown outcome was applied, within a deadline. Its lane is free afterwards.
    Op<bool> resolve_operation(std::uint64_t operation, std::chrono::microseconds deadline) const {
        const auto arguments = detail::Object().set("operation", operation).set("deadline", deadline);
        return call<bool>("resolve_operation", arguments, [](detail::Reply& reply) {
            return value(reply)["outcome"].text() == "applied";
        });
    }
    /// Gives up on a write of unknown outcome and frees its lane.
    Op<void> abandon_operation(std::uint64_t operation) const {
        return invoke("abandon_operation", detail::Object().set("operation", operation));
    }
    /// The writes whose outcome is unknown, ascending.
    Op<std::vector<std::uint64_t>> uncertain_operations() const {
        return call<std::vector<std::uint64_t>>("uncertain_operations", {}, [](detail::Reply& reply) {
            return value(reply).list([](detail::Value each) { return each.u64(); });
        });
    }

    // Signing in.

    /// Signs in, connecting if need be. A client that is signed in logs out first.
    Op<Identity> login_user(std::string_view username, std::string_view password) const {
        return one<Identity>("login_user", detail::Object().set("username", username).set("password", password));
    }
    /// @copybrief login_user
    Op<Identity> login_with_personal_access_token(std::string_view token) const {
        return one<Identity>("login_with_personal_access_token", detail::Object().set("token", token));
    }
    /// The session ends in the whole cluster, and its group memberships with it.
    Op<void> logout_user() const { return invoke("logout_user"); }
    /// Who is signed in.
    Op<std::optional<std::uint32_t>> user_id() const {
        return call<std::optional<std::uint32_t>>("user_id", {}, [](detail::Reply& reply) {
            return detail::port(value(reply));
        });
    }

    // The node and the cluster.

    Op<void> ping() const { return invoke("ping"); }
    /// What the node that answers counts about itself.
    Op<Stats> get_stats() const { return one<Stats>("get_stats"); }
    /// This connection as the server sees it.
    Op<ConnectedClientDetails> get_me() const { return one<ConnectedClientDetails>("get_me"); }
    Op<std::optional<ConnectedClientDetails>> get_client(std::uint32_t client_id) const {
        return maybe<ConnectedClientDetails>("get_client", detail::Object().set("client_id", client_id));
    }
    Op<std::vector<ConnectedClient>> get_clients() const { return many<ConnectedClient>("get_clients"); }
    Op<Cluster> get_cluster_metadata() const { return one<Cluster>("get_cluster_metadata"); }
    /// The options of a kind of resource.
    Op<std::vector<OptionDescription>> describe_options(Scope scope) const {
        static constexpr const char* names[] = {"stream", "topic", "user"};
        const auto arguments = detail::Object().set("scope", names[static_cast<std::uint8_t>(scope)]);
        return many<OptionDescription>("describe_options", arguments);
    }
    /// A diagnostic snapshot as a zip archive.
    Op<std::vector<std::byte>> snapshot(const SnapshotRequest& request = {}) const {
        detail::Object arguments;
        arguments.set("types", request.types).set("compression", request.compression);
        return call<std::vector<std::byte>>("snapshot", arguments, [](detail::Reply& reply) {
            return detail::from_base64(value(reply).text());
        });
    }
    /// A page of metadata changes.
    Op<MetadataChanges> get_metadata_changes(const ChangesRequest& request = {}) const {
        detail::Object arguments;
        arguments.set("start", request.start).set("token", request.token).set("since", request.since);
        arguments.set("until", request.until).set("limit", request.limit).set("groups", request.groups);
        return one<MetadataChanges>("get_metadata_changes", arguments);
    }

    // Streams.

    Op<std::vector<Stream>> get_streams() const { return many<Stream>("get_streams"); }
    Op<std::optional<StreamDetails>> get_stream(const Id& stream) const {
        return maybe<StreamDetails>("get_stream", of(stream));
    }
    Op<StreamDetails> create_stream(std::string_view name, const StreamCreateOptions& options = {}) const {
        detail::Object arguments;
        arguments.set("name", name).set("options", options.options);
        if (options.encryption_key) arguments.set("encryption_key", std::span<const std::byte>(*options.encryption_key));
        return one<StreamDetails>("create_stream", arguments);
    }
    Op<void> update_stream(const Id& stream, const UpdateOptions& options) const {
        return invoke("update_stream", of(stream).set("options", options.options).set("reset", options.reset));
    }
    /// Deletes a stream with all it holds.
    Op<void> delete_stream(const Id& stream) const { return invoke("delete_stream", of(stream)); }

    // Topics, partitions, segments.

    Op<std::vector<Topic>> get_topics(const Id& stream) const { return many<Topic>("get_topics", of(stream)); }
    Op<std::optional<TopicDetails>> get_topic(const Id& stream, const Id& topic) const {
        return maybe<TopicDetails>("get_topic", of(stream, topic));
    }
    Op<TopicDetails> create_topic(const Id& stream, std::string_view name, const TopicCreateOptions& options = {}) const {
        auto arguments = of(stream).set("name", name).set("partitions_count", options.partitions_count);
        return one<TopicDetails>("create_topic", arguments.set("options", options.options));
    }
    Op<void> update_topic(const Id& stream, const Id& topic, const UpdateOptions& options) const {
        return invoke("update_topic", of(stream, topic).set("options", options.options).set("reset", options.reset));
    }
    /// Deletes a topic with all it holds.
    Op<void> delete_topic(const Id& stream, const Id& topic) const { return invoke("delete_topic", of(stream, topic)); }
    Op<void> create_partitions(const Id& stream, const Id& topic, std::uint32_t count) const {
        return invoke("create_partitions", of(stream, topic).set("count", count));
    }
    /// Removes the last partitions with all they hold.
    Op<void> delete_partitions(const Id& stream, const Id& topic, std::uint32_t count) const {
        return invoke("delete_partitions", of(stream, topic).set("count", count));
    }
    /// Deletes the oldest segments of a partition, never the one in use.
    Op<void> delete_segments(const Id& stream, const Id& topic, std::uint32_t partition_id, std::uint32_t count) const {
        return invoke("delete_segments", of(stream, topic).set("partition_id", partition_id).set("count", count));
    }

    // Consumer groups.

    Op<std::vector<ConsumerGroup>> get_consumer_groups(const Id& stream, const Id& topic) const {
        return many<ConsumerGroup>("get_consumer_groups", of(stream, topic));
    }
    Op<std::optional<ConsumerGroupDetails>> get_consumer_group(const Id& stream, const Id& topic, const Id& group) const {
        return maybe<ConsumerGroupDetails>("get_consumer_group", of(stream, topic).set("group", group));
    }
    Op<ConsumerGroupDetails> create_consumer_group(const Id& stream, const Id& topic, std::string_view name) const {
        return one<ConsumerGroupDetails>("create_consumer_group", of(stream, topic).set("name", name));
    }
    /// Deletes a group with its stored offsets.
    Op<void> delete_consumer_group(const Id& stream, const Id& topic, const Id& group) const {
        return invoke("delete_consumer_group", of(stream, topic).set("group", group));
    }
    /// Makes this client a member. A @ref Consumer does that by itself.
    Op<void> join_consumer_group(const Id& stream, const Id& topic, const Id& group) const {
        return invoke("join_consumer_group", of(stream, topic).set("group", group));
    }
    Op<void> leave_consumer_group(const Id& stream, const Id& topic, const Id& group) const {
        return invoke("leave_consumer_group", of(stream, topic).set("group", group));
    }
    /// What this client owns now; nothing when it is no member.
    Op<std::optional<Assignment>> sync_consumer_group(const Id& stream, const Id& topic, const Id& group) const {
        return maybe<Assignment>("sync_consumer_group", of(stream, topic).set("group", group));
    }

    // Stored offsets.

    Op<std::optional<ConsumerOffset>> get_consumer_offset(const ConsumerId& consumer, const Id& stream, const Id& topic,
                                                          std::uint32_t partition_id) const {
        return maybe<ConsumerOffset>("get_consumer_offset", of(consumer, stream, topic, partition_id));
    }
    /// Stores the offset of the last message that was processed.
    Op<void> store_consumer_offset(const ConsumerId& consumer, const Id& stream, const Id& topic,
                                   std::uint32_t partition_id, std::uint64_t offset) const {
        return invoke("store_consumer_offset", of(consumer, stream, topic, partition_id).set("offset", offset));
    }
    Op<void> delete_consumer_offset(const ConsumerId& consumer, const Id& stream, const Id& topic,
                                    std::uint32_t partition_id) const {
        return invoke("delete_consumer_offset", of(consumer, stream, topic, partition_id));
    }
    /// Stores the position of messages that were read. One of an older history is refused.
    Op<void> store_consumer_position(const ConsumerId& consumer, const Id& stream, const Id& topic,
                                     const Checkpoint& checkpoint) const {
        return Op<void>::begin(detail::nothing, [&](IggyDone done, void* user) {
            return iggy_client_store_consumer_position(client_.get(), consumer.raw(), stream.raw(), topic.raw(),
                                                       checkpoint.raw(), done, user);
        });
    }
    /// Forgets the stored offset of the partition and history of a position.
    Op<void> delete_consumer_position(const ConsumerId& consumer, const Id& stream, const Id& topic,
                                      const Checkpoint& checkpoint) const {
        return Op<void>::begin(detail::nothing, [&](IggyDone done, void* user) {
            return iggy_client_delete_consumer_position(client_.get(), consumer.raw(), stream.raw(), topic.raw(),
                                                        checkpoint.raw(), done, user);
        });
    }

    // Users and tokens.

    Op<std::vector<User>> get_users() const { return many<User>("get_users"); }
    Op<std::optional<UserDetails>> get_user(const Id& user) const { return maybe<UserDetails>("get_user", of_user(user)); }
    /// With a name of 3 to 50 and a password of 3 to 100 bytes.
    Op<UserDetails> create_user(std::string_view username, std::string_view password,
                                const UserCreateOptions& options = {}) const {
        detail::Object arguments;
        arguments.set("username", username).set("password", password).set("permissions", options.permissions);
        if (options.status) arguments.set("status", name(*options.status));
        return one<UserDetails>("create_user", arguments.set("options", options.options));
    }
    Op<void> update_user(const Id& user, const UserUpdateOptions& options) const {
        auto arguments = of_user(user).set("username", options.username);
        if (options.status) arguments.set("status", name(*options.status));
        return invoke("update_user", arguments.set("options", options.options).set("reset", options.reset));
    }
    /// Replaces what a user may do; none takes it all.
    Op<void> update_permissions(const Id& user, const std::optional<Permissions>& permissions) const {
        return invoke("update_permissions", of_user(user).set("permissions", permissions));
    }
    /// Sessions of the user go on.
    Op<void> change_password(const Id& user, std::string_view current, std::string_view changed) const {
        return invoke("change_password", of_user(user).set("current", current).set("new", changed));
    }
    /// Its sessions end.
    Op<void> delete_user(const Id& user) const { return invoke("delete_user", of_user(user)); }
    Op<std::vector<PersonalAccessToken>> get_personal_access_tokens() const {
        return many<PersonalAccessToken>("get_personal_access_tokens");
    }
    /// Its text, which is never shown again. It never expires unless told otherwise.
    Op<std::string> create_personal_access_token(std::string_view name,
                                                 std::optional<std::chrono::microseconds> expiry = {}) const {
        const auto arguments = detail::Object().set("name", name).set("expiry", expiry);
        return call<std::string>("create_personal_access_token", arguments, [](detail::Reply& reply) {
            return value(reply).text();
        });
    }
    Op<void> delete_personal_access_token(std::string_view name) const {
        return invoke("delete_personal_access_token", detail::Object().set("name", name));
    }

    // Messages.

    /// Reads messages of one partition, waiting for them if `options` say so. With a commit on read, a poll that was
    /// given up may have stored its offset all the same.
    Op<PolledMessages> poll_messages(const Id& stream, const Id& topic, std::uint32_t partition_id,
                                     const ConsumerId& consumer, const ReadStart& start,
                                     const PollOptions& options = {}) const {
        const std::string limits = options.json();
        return Op<PolledMessages>::begin(detail::polled, [&](IggyDone done, void* user) {
            return iggy_client_poll_messages(client_.get(), stream.raw(), topic.raw(), partition_id, consumer.raw(),
                                             start.raw(), detail::text_of(std::string_view(limits)), done, user);
        });
    }
    /// Sends one batch and says where it is. The messages are copied before this returns.
    /// After an UncertainError it may or may not be stored.
    Op<std::vector<SendConfirmation>> send_messages(const Id& stream, const Id& topic, const Partitioning& partitioning,
                                                    std::span<const Message> messages) const {
        auto outgoing = detail::outgoing(messages);
        return Op<std::vector<SendConfirmation>>::begin(detail::confirmations, [&](IggyDone done, void* user) {
            return iggy_client_send_messages(client_.get(), stream.raw(), topic.raw(),
                                             detail::text_of(std::string_view(partitioning.json())),
                                             outgoing.release(), done, user);
        });
    }
    /// Sends a batch of an idempotent producer: the partition writes it once, however often it is sent.
    Op<std::vector<SendConfirmation>> send_producer_messages(const Id& stream, const Id& topic,
                                                             std::uint32_t partition_id, const ProducerSection& section,
                                                             std::span<const Message> messages) const {
        auto outgoing = detail::outgoing(messages);
        return Op<std::vector<SendConfirmation>>::begin(detail::confirmations, [&](IggyDone done, void* user) {
            return iggy_client_send_producer_messages(client_.get(), stream.raw(), topic.raw(), partition_id,
                                                      section.producer_id, section.epoch, section.base_sequence,
                                                      outgoing.release(), done, user);
        });
    }
    /// An id for @ref send_producer_messages.
    Op<std::uint64_t> next_producer_id() const {
        return call<std::uint64_t>("next_producer_id", {}, [](detail::Reply& reply) { return value(reply).u64(); });
    }

    /// A producer of a topic; it starts with @ref Producer::init.
    [[nodiscard]] Producer producer(const Id& stream, const Id& topic, const ProducerOptions& options = {}) const {
        const std::string settings = options.json();
        const IggyPartitioner choose = detail::partitioner(options.partitioner);
        const IggyErrorListener hear = detail::listener(options.on_error);
        detail::FailurePlace failure;
        Producer made(iggy_client_producer(client_.get(), stream.raw(), topic.raw(),
                                           detail::text_of(std::string_view(settings)), &choose, &hear,
                                           failure.place()),
                      stream, topic);
        failure.raise();
        return made;
    }
    /// A consumer of named partitions; it starts with @ref Consumer::init.
    [[nodiscard]] Consumer consumer(const Id& name, const Id& stream, const Id& topic,
                                    const ConsumerOptions& options) const {
        return make_consumer(ConsumerId::consumer(name), stream, topic, options);
    }
    /// A member of a group, which shares the partitions of a topic out among its members.
    [[nodiscard]] Consumer consumer_group(const Id& name, const Id& stream, const Id& topic,
                                          const ConsumerOptions& options = {}) const {
        return make_consumer(ConsumerId::group(name), stream, topic, options);
    }
    /// A reader of many partitions in batches; close it at the end.
    Op<Reader> reader(const Id& stream, const Id& topic, const ConsumerId& consumer, const ReaderOptions& options) const {
        const std::string settings = options.json();
        const auto made = [](detail::Reply& reply) { return Reader(iggy_reply_take_reader(reply.get())); };
        return Op<Reader>::begin(made, [&](IggyDone done, void* user) {
            return iggy_client_reader(client_.get(), stream.raw(), topic.raw(), consumer.raw(),
                                      detail::text_of(std::string_view(settings)), done, user);
        });
    }

    // Raw requests.

    /// A raw request by its command code, routed and retried like a typed one.
    Op<std::vector<std::byte>> send_binary_request(std::uint32_t code, std::span<const std::byte> payload = {}) const {
        return raw(code, payload, -1, {});
    }
    /// As @ref send_binary_request, within a deadline.
    Op<std::vector<std::byte>> send_binary_request_with_deadline(std::uint32_t code, std::span<const std::byte> payload,
                                                                 std::chrono::microseconds deadline) const {
        return raw(code, payload, -1, positive(deadline));
    }
    /// To one node, whose refusal is the answer.
    Op<std::vector<std::byte>> send_binary_request_to_replica(std::uint32_t code, std::span<const std::byte> payload,
                                                              std::uint8_t replica_id) const {
        return raw(code, payload, replica_id, {});
    }
    /// As @ref send_binary_request_to_replica, within a deadline.
    Op<std::vector<std::byte>> send_binary_request_to_replica_with_deadline(std::uint32_t code,
                                                                            std::span<const std::byte> payload,
                                                                            std::uint8_t replica_id,
                                                                            std::chrono::microseconds deadline) const {
        return raw(code, payload, replica_id, positive(deadline));
    }

private:
    static ClientOptions with(std::string_view connection_string, ClientOptions options) {
        options.connection_string = std::string(connection_string);
        return options;
    }

    static detail::Value value(detail::Reply& reply) noexcept { return detail::Value(iggy_reply_value(reply.get())); }

    static detail::Object of(const Id& stream) { return detail::Object().set("stream", stream); }
    static detail::Object of(const Id& stream, const Id& topic) { return of(stream).set("topic", topic); }
    static detail::Object of(const ConsumerId& consumer, const Id& stream, const Id& topic, std::uint32_t partition_id) {
        return of(stream, topic).set("consumer", consumer).set("partition_id", partition_id);
    }
    static detail::Object of_user(const Id& user) { return detail::Object().set("user", user); }
    static const char* name(UserStatus status) noexcept {
        return status == UserStatus::active ? "active" : "inactive";
    }

    template <typename T>
    Op<T> call(std::string_view operation, const detail::Object& arguments, typename Op<T>::Convert convert) const {
        const std::string given = arguments.json();
        return Op<T>::begin(convert, [&](IggyDone done, void* user) {
            return iggy_client_invoke(client_.get(), detail::text_of(operation),
                                      detail::text_of(std::string_view(given)), done, user);
        });
    }
    Op<void> invoke(std::string_view operation, const detail::Object& arguments = {}) const {
        return call<void>(operation, arguments, detail::nothing);
    }
    template <typename T>
    Op<T> one(std::string_view operation, const detail::Object& arguments = {}) const {
        return call<T>(operation, arguments, [](detail::Reply& reply) { return detail::made<T>(value(reply)); });
    }
    template <typename T>
    Op<std::optional<T>> maybe(std::string_view operation, const detail::Object& arguments) const {
        return call<std::optional<T>>(operation, arguments, [](detail::Reply& reply) {
            return value(reply).optional([](detail::Value found) { return detail::made<T>(found); });
        });
    }
    template <typename T>
    Op<std::vector<T>> many(std::string_view operation, const detail::Object& arguments = {}) const {
        return call<std::vector<T>>(operation, arguments,
                                    [](detail::Reply& reply) { return detail::made_list<T>(value(reply)); });
    }

    Consumer make_consumer(const ConsumerId& who, const Id& stream, const Id& topic, const ConsumerOptions& options) const {
        const std::string settings = options.json();
        detail::FailurePlace failure;
        Consumer made(iggy_client_consumer(client_.get(), who.id().raw(), stream.raw(), topic.raw(), who.is_group(),
                                           detail::text_of(std::string_view(settings)), failure.place()),
                      who, stream, topic);
        failure.raise();
        return made;
    }

    static std::chrono::microseconds positive(std::chrono::microseconds deadline) {
        if (deadline.count() <= 0) detail::refuse("the deadline of a raw request is above 0");
        return deadline;
    }

    Op<std::vector<std::byte>> raw(std::uint32_t code, std::span<const std::byte> payload, std::int16_t replica_id,
                                   std::chrono::microseconds deadline) const {
        const IggyBytes bytes{reinterpret_cast<const std::uint8_t*>(payload.data()), payload.size()};
        const auto copied = [](detail::Reply& reply) {
            const IggyBytes found = iggy_reply_bytes(reply.get());
            const auto view = std::as_bytes(std::span(found.data, found.length));
            return std::vector<std::byte>(view.begin(), view.end());
        };
        return Op<std::vector<std::byte>>::begin(copied, [&](IggyDone done, void* user) {
            return iggy_client_send_binary_request(client_.get(), code, bytes, replica_id,
                                                   static_cast<std::uint64_t>(deadline.count()), done, user);
        });
    }

    detail::Handle<IggyClient, iggy_client_free> client_;
};

}  // namespace iggy
