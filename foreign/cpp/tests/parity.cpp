// Nothing of the core is missing here: each operation and each method names what it is in C++, which must compile.

#include <map>
#include <set>

#include "testing.hpp"

namespace {

using namespace iggy;

/// Takes anything there is: a member, an option, a class.
template <typename... T>
constexpr bool is(T...) {
    return true;
}
template <typename T, typename... Arguments>
constexpr bool made_from() {
    static_assert(std::is_constructible_v<T, Arguments...>);
    return true;
}

const std::map<std::string, bool> operations = {
    {"from_connection_string", made_from<Client, std::string_view>()},
    {"builder_from_connection_string", made_from<Client, std::string_view, ClientOptions>()},
    {"builder", made_from<Client, ClientOptions>()},
    {"connect", is(&Client::connect)},
    {"disconnect", is(&Client::disconnect)},
    {"shutdown", is(&Client::shutdown)},
    {"subscribe_events", is(&Client::subscribe_events)},
    {"get_connection_info", is(&Client::get_connection_info)},
    {"resolve_operation", is(&Client::resolve_operation)},
    {"abandon_operation", is(&Client::abandon_operation)},
    {"uncertain_operations", is(&Client::uncertain_operations)},
    {"login_user", is(&Client::login_user)},
    {"login_with_personal_access_token", is(&Client::login_with_personal_access_token)},
    {"logout_user", is(&Client::logout_user)},
    {"user_id", is(&Client::user_id)},
    {"ping", is(&Client::ping)},
    {"heartbeat_interval", is(&Client::heartbeat_interval)},
    {"get_stats", is(&Client::get_stats)},
    {"describe_options", is(&Client::describe_options)},
    {"snapshot", is(&Client::snapshot)},
    {"get_me", is(&Client::get_me)},
    {"get_client", is(&Client::get_client)},
    {"get_clients", is(&Client::get_clients)},
    {"get_metadata_changes", is(&Client::get_metadata_changes)},
    {"get_cluster_metadata", is(&Client::get_cluster_metadata)},
    {"get_user", is(&Client::get_user)},
    {"get_users", is(&Client::get_users)},
    {"create_user", is(&Client::create_user)},
    {"update_user", is(&Client::update_user)},
    {"update_permissions", is(&Client::update_permissions)},
    {"change_password", is(&Client::change_password)},
    {"delete_user", is(&Client::delete_user)},
    {"get_personal_access_tokens", is(&Client::get_personal_access_tokens)},
    {"create_personal_access_token", is(&Client::create_personal_access_token)},
    {"delete_personal_access_token", is(&Client::delete_personal_access_token)},
    {"get_stream", is(&Client::get_stream)},
    {"get_streams", is(&Client::get_streams)},
    {"create_stream", is(&Client::create_stream)},
    {"update_stream", is(&Client::update_stream)},
    {"delete_stream", is(&Client::delete_stream)},
    {"get_topic", is(&Client::get_topic)},
    {"get_topics", is(&Client::get_topics)},
    {"create_topic", is(&Client::create_topic)},
    {"update_topic", is(&Client::update_topic)},
    {"delete_topic", is(&Client::delete_topic)},
    {"create_partitions", is(&Client::create_partitions)},
    {"delete_partitions", is(&Client::delete_partitions)},
    {"delete_segments", is(&Client::delete_segments)},
    {"get_consumer_group", is(&Client::get_consumer_group)},
    {"get_consumer_groups", is(&Client::get_consumer_groups)},
    {"create_consumer_group", is(&Client::create_consumer_group)},
    {"delete_consumer_group", is(&Client::delete_consumer_group)},
    {"join_consumer_group", is(&Client::join_consumer_group)},
    {"leave_consumer_group", is(&Client::leave_consumer_group)},
    {"sync_consumer_group", is(&Client::sync_consumer_group)},
    {"store_consumer_position", is(&Client::store_consumer_position)},
    {"store_consumer_offset", is(&Client::store_consumer_offset)},
    {"get_consumer_offset", is(&Client::get_consumer_offset)},
    {"delete_consumer_offset", is(&Client::delete_consumer_offset)},
    {"delete_consumer_position", is(&Client::delete_consumer_position)},
    {"poll_messages", is(&Client::poll_messages)},
    {"send_messages", is(&Client::send_messages)},
    {"send_producer_messages", is(&Client::send_producer_messages)},
    {"next_producer_id", is(&Client::next_producer_id)},
    {"producer", is(&Client::producer)},
    {"consumer", is(&Client::consumer)},
    {"consumer_group", is(&Client::consumer_group)},
    {"reader", is(&Client::reader)},
    {"send_binary_request", is(&Client::send_binary_request)},
    {"send_binary_request_with_deadline", is(&Client::send_binary_request_with_deadline)},
    {"send_binary_request_to_replica", is(&Client::send_binary_request_to_replica)},
    {"send_binary_request_to_replica_with_deadline", is(&Client::send_binary_request_to_replica_with_deadline)},
};

const std::map<std::string, bool> methods = {
    {"IggyClientBuilder.with_tcp", is(&ClientOptions::server_address)},
    {"IggyClientBuilder.with_config", made_from<Client, ClientOptions>()},
    {"IggyClientBuilder.with_server_address", is(&ClientOptions::server_address)},
    {"IggyClientBuilder.with_auto_sign_in", is(&ClientOptions::username, &ClientOptions::password, &ClientOptions::token)},
    {"IggyClientBuilder.with_tls", is(&ClientOptions::tls)},
    {"IggyClientBuilder.with_no_delay", is(&ClientOptions::nodelay)},
    {"IggyClientBuilder.with_reconnection_max_retries", is(&ClientOptions::reconnection_max_retries)},
    {"IggyClientBuilder.with_reconnection_interval", is(&ClientOptions::reconnection_interval)},
    {"IggyClientBuilder.with_reestablish_after", is(&ClientOptions::reestablish_after)},
    {"IggyClientBuilder.with_pending_operations",
     is(&ClientOptions::max_pending_operations, &ClientOptions::max_pending_operation_bytes)},
    {"IggyClientBuilder.with_request_timeout", is(&ClientOptions::request_timeout)},
    {"IggyClientBuilder.with_encryptor", is(&ClientOptions::encryption)},
    {"IggyClientBuilder.with_partitioner", is(&ClientOptions::partitioner)},
    {"IggyClientBuilder.build", made_from<Client, ClientOptions>()},
    {"IggyProducerBuilder.stream", is(&Producer::stream)},
    {"IggyProducerBuilder.topic", is(&Producer::topic)},
    {"IggyProducerBuilder.encryptor", is(&ProducerOptions::encryption)},
    {"IggyProducerBuilder.without_encryptor", is(&ProducerOptions::without_encryption)},
    {"IggyProducerBuilder.partitioning", is(&ProducerOptions::partitioning)},
    {"IggyProducerBuilder.without_partitioning", is(&ProducerOptions::partitioning)},
    {"IggyProducerBuilder.partitioner", is(&ProducerOptions::partitioner)},
    {"IggyProducerBuilder.without_partitioner", is(&ProducerOptions::partitioner)},
    {"IggyProducerBuilder.create_stream_if_not_exists", is(&ProducerOptions::create_stream)},
    {"IggyProducerBuilder.do_not_create_stream_if_not_exists", is(&ProducerOptions::create_stream)},
    {"IggyProducerBuilder.create_topic_if_not_exists", is(&ProducerOptions::create_topic)},
    {"IggyProducerBuilder.do_not_create_topic_if_not_exists", is(&ProducerOptions::create_topic)},
    {"IggyProducerBuilder.topic_durability", is(&NewTopic::durability)},
    {"IggyProducerBuilder.idempotent", is(&ProducerOptions::idempotent)},
    {"IggyProducerBuilder.without_idempotence", is(&ProducerOptions::idempotent)},
    {"IggyProducerBuilder.direct", is(&ProducerOptions::direct)},
    {"IggyProducerBuilder.background", is(&ProducerOptions::background)},
    {"IggyProducerBuilder.build", is(&Client::producer)},
    {"IggyProducer.init", is(&Producer::init)},
    {"IggyProducer.send", is(static_cast<Op<std::vector<SendConfirmation>> (Producer::*)(std::span<const Message>) const>(
                              &Producer::send))},
    {"IggyProducer.send_one", is(&Producer::send_one)},
    {"IggyProducer.send_with_partitioning", is(&Producer::send_with_partitioning)},
    {"IggyProducer.send_to", is(&Producer::send_to)},
    {"IggyProducer.shutdown", is(&Producer::shutdown)},
    {"IggyProducer.stream", is(&Producer::stream)},
    {"IggyProducer.topic", is(&Producer::topic)},
    {"IggyConsumerBuilder.stream", is(&Consumer::stream)},
    {"IggyConsumerBuilder.topic", is(&Consumer::topic)},
    {"IggyConsumerBuilder.partitions", is(&ConsumerOptions::partitions)},
    {"IggyConsumerBuilder.polling_strategy", is(&ConsumerOptions::start)},
    {"IggyConsumerBuilder.poll_options", is(&ConsumerOptions::poll_options)},
    {"IggyConsumerBuilder.prefetch_bytes", is(&ConsumerOptions::prefetch_bytes)},
    {"IggyConsumerBuilder.prefetch_messages", is(&ConsumerOptions::prefetch_messages)},
    {"IggyConsumerBuilder.create_consumer_group_if_not_exists", is(&ConsumerOptions::create_consumer_group)},
    {"IggyConsumerBuilder.do_not_create_consumer_group_if_not_exists", is(&ConsumerOptions::create_consumer_group)},
    {"IggyConsumerBuilder.encryptor", is(&ConsumerOptions::encryption)},
    {"IggyConsumerBuilder.without_encryptor", is(&ConsumerOptions::without_encryption)},
    {"IggyConsumerBuilder.polling_retry_interval", is(&ConsumerOptions::polling_retry_interval)},
    {"IggyConsumerBuilder.init_retries", is(&ConsumerOptions::init_retries)},
    {"IggyConsumerBuilder.allow_replay", is(&ConsumerOptions::allow_replay)},
    {"IggyConsumerBuilder.offset_drain_timeout", is(&ConsumerOptions::offset_drain_timeout)},
    {"IggyConsumerBuilder.build", is(&Client::consumer, &Client::consumer_group)},
    {"IggyConsumer.init", is(&Consumer::init)},
    {"IggyConsumer.next", is(&Consumer::next)},
    {"IggyConsumer.next_batch", is(&Consumer::next_batch)},
    {"IggyConsumer.batches", is(&Consumer::batches)},
    {"IggyConsumer.commit", is(&Consumer::commit)},
    {"IggyConsumer.mark", is(&Consumer::mark)},
    {"IggyConsumer.store_offset", is(&Consumer::store_offset)},
    {"IggyConsumer.delete_offset", is(&Consumer::delete_offset)},
    {"IggyConsumer.seek", is(&Consumer::seek)},
    {"IggyConsumer.state", is(&Consumer::commit, &Consumer::partitions)},
    {"IggyConsumer.subscribe_events", is(&Consumer::subscribe_events)},
    {"IggyConsumer.get_last_consumed_offset", is(&Consumer::last_consumed_offset)},
    {"IggyConsumer.get_last_stored_offset", is(&Consumer::last_stored_offset)},
    {"IggyConsumer.partition_id", is(&Consumer::partition_id)},
    {"IggyConsumer.partitions", is(&Consumer::partitions)},
    {"IggyConsumer.stopped", is(&Consumer::stopped)},
    {"IggyConsumer.name", is(&Consumer::name)},
    {"IggyConsumer.consumer", is(&Consumer::consumer)},
    {"IggyConsumer.is_group_member", is(&Consumer::is_group_member)},
    {"IggyConsumer.stream", is(&Consumer::stream)},
    {"IggyConsumer.topic", is(&Consumer::topic)},
    {"IggyConsumer.shutdown", is(&Consumer::shutdown)},
    {"IggyConsumer.consume_messages", is(&Consumer::consume_messages<void (*)(const ReceivedMessage&)>)},
    {"IggyConsumerState.commit", is(&Consumer::commit, &Reader::commit)},
    {"IggyConsumerState.subscribe_events", is(&Consumer::subscribe_events, &Reader::subscribe_events)},
    {"IggyConsumerState.mark", is(&Consumer::mark, &Reader::mark)},
    {"IggyConsumerState.store_offset", is(&Consumer::store_offset)},
    {"IggyConsumerState.delete_offset", is(&Consumer::delete_offset)},
    {"IggyConsumerState.seek", is(&Consumer::seek, &Reader::seek)},
    {"IggyConsumerState.is_current", is(&Consumer::is_current, &Reader::is_current)},
    {"IggyConsumerState.partitions", is(&Consumer::partitions, &Reader::partitions)},
    {"IggyConsumerState.stopped", is(&Consumer::stopped, &Reader::stopped)},
    {"IggyConsumerState.get_last_consumed_offset", is(&Consumer::last_consumed_offset)},
    {"IggyConsumerState.get_last_stored_offset", is(&Consumer::last_stored_offset)},
    {"IggyConsumerState.partition_id", is(&Consumer::partition_id)},
    {"ReaderBuilder.partitions", is(&ReaderOptions::partitions)},
    {"ReaderBuilder.start", is(&ReaderOptions::start)},
    {"ReaderBuilder.options", is(&ReaderOptions::options)},
    {"ReaderBuilder.prefetch_bytes", is(&ReaderOptions::prefetch_bytes)},
    {"ReaderBuilder.prefetch_messages", is(&ReaderOptions::prefetch_messages)},
    {"ReaderBuilder.build", is(&Client::reader)},
    {"PartitionReader.next", is(&Reader::next)},
    {"PartitionReader.commit", is(&Reader::commit)},
    {"PartitionReader.mark", is(&Reader::mark)},
    {"PartitionReader.seek", is(&Reader::seek)},
    {"PartitionReader.partitions", is(&Reader::partitions)},
    {"PartitionReader.stopped", is(&Reader::stopped)},
    {"PartitionReader.state", is(&Reader::commit, &Reader::partitions)},
    {"PartitionReader.subscribe_events", is(&Reader::subscribe_events)},
    {"PartitionReader.close", is(&Reader::close)},
};

void operations_are_here() {
    std::set<std::string> known;
    for (std::size_t index = 0;; ++index) {
        const std::string name(iggy::detail::text_of(iggy_operation_name(index)));
        if (name.empty()) break;
        testing::check(operations.contains(name), name + " is missing");
        known.insert(name);
    }
    for (const auto& [name, there] : operations) testing::check(known.contains(name), "the core has no " + name);
}

void methods_are_here() {
    std::set<std::string> known;
    IggyText object{};
    IggyText method{};
    for (std::size_t index = 0; iggy_method_name(index, &object, &method); ++index) {
        const auto name = std::string(iggy::detail::text_of(object)) + "." + std::string(iggy::detail::text_of(method));
        testing::check(methods.contains(name), name + " is missing");
        known.insert(name);
    }
    for (const auto& [name, there] : methods) testing::check(known.contains(name), "the core has no " + name);
}

void arguments_are_refused_by_name() {
    using testing::check;
    using testing::check_throws;
    check_throws<InvalidInputError>([] { Client("http://nowhere"); });
    check_throws<InvalidInputError>([] { Client(ClientOptions{.username = "alone"}); });
    check_throws<InvalidInputError>([] { Id(-1); });
    check_throws<InvalidInputError>([] { Id(1LL << 32); });
    const Client client;
    check_throws<InvalidInputError>([&] { client.get_stream("").get(); });
    const std::vector<Message> empty = {""};
    check_throws<InvalidInputError>([&] {
        static_cast<void>(client.send_messages("s", "t", Partitioning::balanced(), empty));
    });
    const Message long_header = Message("x").headers({{"key", HeaderValue::string(std::string(256, 'x'))}});
    check_throws<InvalidInputError>([&] {
        static_cast<void>(client.send_messages("s", "t", Partitioning::balanced(), std::span(&long_header, 1)));
    });
    const auto error = check_throws<InvalidInputError>([&] {
        client.poll_messages("s", "t", 0, "c", PollingStrategy::first(), {.count = 0}).get(testing::deadline);
    });
    check(error.name() == "invalid_messages_count", error.name());
    check_throws<InvalidInputError>([] { static_cast<void>(HeaderValue::int8(1).as_string()); });
}

}  // namespace

int main(int count, char** arguments) {
    return testing::run(
        {
            {"given the operations of the core when looked up should all be here", operations_are_here},
            {"given the methods of the core's objects when looked up should all be here", methods_are_here},
            {"given arguments that are wrong when passed should be refused", arguments_are_refused_by_name},
        },
        count, arguments);
}
