// Producers and encryption.

#include "world.hpp"

namespace bdd {
namespace {

void use_producer(World& world, const Json& given) {
    iggy::ProducerOptions options;
    if (given.contains("stream")) {
        world.stream = given.at("stream");
        world.topic = given.at("topic");
    }
    if (given.contains("key")) options.partitioning = iggy::Partitioning::key(given.at("key").get<std::string>());
    if (given.contains("partitioner")) {
        options.partitioner = [partition = given.at("partitioner").get<std::uint32_t>()](
                                  std::string_view, std::string_view, const iggy::MessageList&) { return partition; };
    }
    if (given.contains("create")) {
        options.create_stream = given.at("create").get<bool>();
        options.create_topic = given.at("create").get<bool>();
    }
    if (given.contains("batch_length")) options.direct = iggy::Direct{.batch_length = given.at("batch_length")};
    if (given.value("background", false)) options.background.emplace();
    if (given.value("idempotent", false)) options.idempotent = true;
    world.producer = world.client().producer(world.stream, world.topic, options);
    world.did([&] { world.producer->init().get(deadline); });
}

/// Numbered as if they all went to partition 0, where those scenarios look that care.
void send(World& world, std::size_t count, std::size_t at_once) {
    auto messages = world.next_messages(0, count);
    std::vector<iggy::Message> batch;
    for (const auto& message : messages) batch.push_back(message.message());
    for (std::size_t at = 0; at < count; at += at_once) {
        const auto part = std::span(batch).subspan(at, std::min(at_once, count - at));
        world.did([&] { world.producer.value().send(part).get(deadline); });
    }
    std::move(messages.begin(), messages.end(), std::back_inserter(world.sent[0]));
}

}  // namespace

void producer_steps(Steps& steps) {
    steps["use_producer"] = use_producer;
    steps["producer_sends"] = [](World& world, const Json& given) {
        const std::size_t count = given.at("count");
        send(world, count, count);
    };
    steps["producer_sends_singly"] = [](World& world, const Json& given) { send(world, given.at("count"), 1); };
    steps["close_producer"] = [](World& world, const Json&) {
        world.did([&] { world.producer.value().shutdown().get(deadline); });
    };
    steps["use_encrypting_client"] = [](World& world, const Json& given) {
        const std::string key = given.at("key");
        const auto bytes = std::as_bytes(std::span(key));
        const auto encryption = given.at("cipher") == "AES-256-GCM" ? iggy::Encryption::aes_256_gcm(bytes)
                                                                    : iggy::Encryption::aes_256_gcm_siv(bytes);
        world.clients["encrypting"] = world.connect("iggy:iggy", {.encryption = encryption});
    };
    steps["encrypting_client_sends"] = [](World& world, const Json& given) {
        const std::uint32_t partition = given.at("partition");
        world.did([&] {
            world.send_by(*world.clients.at("encrypting"), partition, world.next_messages(partition, given.at("count")));
        });
    };
    steps["encrypting_client_polls"] = [](World& world, const Json& given) {
        const std::uint32_t partition = given.at("partition");
        auto found = world.attempt([&] {
            const auto& client = *world.clients.at("encrypting");
            return client
                .poll_messages(world.stream, world.topic, partition, "reader", iggy::PollingStrategy::first(), plenty())
                .get(deadline);
        });
        if (found) world.last_poll = std::move(*found);
        world.polled_partition = partition;
    };
}

}  // namespace bdd
