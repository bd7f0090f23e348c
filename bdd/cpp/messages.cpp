// Sending.

#include "world.hpp"

namespace bdd {
namespace {

std::uint32_t partition_of(const Json& given) { return given.at("partition"); }

void send_with(World& world, const iggy::Partitioning& partitioning, std::size_t count) {
    std::vector<Sent> messages;
    for (std::size_t index = 0; index < count; ++index) messages.push_back(Sent::numbered(0, index));
    std::vector<iggy::Message> batch;
    for (const auto& message : messages) batch.push_back(message.message());
    world.did([&] { world.client().send_messages(world.stream, world.topic, partitioning, batch).get(deadline); });
}

/// A whole number of 128 bits from its digits.
iggy::Uint128 wide(std::string_view digits) {
    iggy::Uint128 out = 0;
    for (const char digit : digits) out = out * 10 + static_cast<unsigned>(digit - '0');
    return out;
}

iggy::Int128 signed_wide(std::string_view digits) {
    if (!digits.starts_with('-')) return static_cast<iggy::Int128>(wide(digits));
    return static_cast<iggy::Int128>(-wide(digits.substr(1)));
}

/// A header of a kind from its text.
iggy::HeaderValue header(const std::string& kind, const std::string& value) {
    using Value = iggy::HeaderValue;
    static const std::map<std::string, Value (*)(const std::string&)> kinds = {
        {"raw", [](const std::string& text) { return Value::raw(std::as_bytes(std::span(text))); }},
        {"string", [](const std::string& text) { return Value::string(text); }},
        {"bool", [](const std::string& text) { return Value::boolean(text == "true"); }},
        {"int8", [](const std::string& text) { return Value::int8(static_cast<std::int8_t>(std::stoi(text))); }},
        {"int16", [](const std::string& text) { return Value::int16(static_cast<std::int16_t>(std::stoi(text))); }},
        {"int32", [](const std::string& text) { return Value::int32(static_cast<std::int32_t>(std::stol(text))); }},
        {"int64", [](const std::string& text) { return Value::int64(std::stoll(text)); }},
        {"int128", [](const std::string& text) { return Value::int128(signed_wide(text)); }},
        {"uint8", [](const std::string& text) { return Value::uint8(static_cast<std::uint8_t>(std::stoul(text))); }},
        {"uint16", [](const std::string& text) { return Value::uint16(static_cast<std::uint16_t>(std::stoul(text))); }},
        {"uint32", [](const std::string& text) { return Value::uint32(static_cast<std::uint32_t>(std::stoul(text))); }},
        {"uint64", [](const std::string& text) { return Value::uint64(std::stoull(text)); }},
        {"uint128", [](const std::string& text) { return Value::uint128(wide(text)); }},
        {"float32", [](const std::string& text) { return Value::float32(std::stof(text)); }},
        {"float64", [](const std::string& text) { return Value::float64(std::stod(text)); }},
    };
    return kinds.at(kind)(value);
}

void send_with_headers(World& world, const iggy::Headers& headers) {
    auto messages = world.next_messages(0, 1);
    messages.front().headers = headers;
    world.did([&] { world.send_by(world.client(), 0, std::move(messages)); });
}

void send_to_each(World& world, const Json& given) {
    const std::uint32_t partitions = world.topic_details().partitions_count;
    for (std::uint32_t partition = 0; partition < partitions; ++partition) world.send(partition, given.at("count"));
}

}  // namespace

void message_steps(Steps& steps) {
    steps["send"] = [](World& world, const Json& given) {
        const auto found = world.attempt([&] { return world.send(partition_of(given), given.at("count")); });
        if (found && !found->empty()) world.confirmation = found->front();
    };
    steps["send_one_of_bytes"] = [](World& world, const Json& given) {
        world.did([&] { world.send(partition_of(given), 1, given.at("bytes")); });
    };
    steps["send_singly_of_bytes"] = [](World& world, const Json& given) {
        for (std::size_t left = given.at("count"); left > 0; --left) {
            world.send(partition_of(given), 1, given.at("bytes"));
        }
    };
    steps["send_bytes"] = [](World& world, const Json& given) {
        const std::size_t bytes = given.at("bytes");
        for (std::size_t sent = 0; sent < bytes; sent += 100'000) world.send(partition_of(given), 10, 10'000);
    };
    steps["send_to_each"] = send_to_each;
    steps["send_balanced"] = [](World& world, const Json& given) {
        for (std::size_t left = given.at("count"); left > 0; --left) send_with(world, iggy::Partitioning::balanced(), 1);
    };
    steps["send_with_key"] = [](World& world, const Json& given) {
        send_with(world, iggy::Partitioning::key(given.at("key").get<std::string>()), given.at("count"));
    };
    steps["send_with_key_number"] = [](World& world, const Json& given) {
        send_with(world, iggy::Partitioning::key(given.at("key").get<std::uint64_t>()), given.at("count"));
    };
    steps["send_header"] = [](World& world, const Json& given) {
        const std::string key = given.at("header");
        send_with_headers(world, {{key, header(given.at("kind"), given.at("value"))}});
    };
    steps["send_header_of_bytes"] = [](World& world, const Json& given) {
        const std::string key = given.at("header");
        send_with_headers(world, {{key, iggy::HeaderValue::string(std::string(given.at("bytes"), 'x'))}});
    };
    steps["send_headers"] = [](World& world, const Json& given) {
        iggy::Headers headers;
        for (std::uint32_t index = 0; index < given.at("count"); ++index) {
            headers.set("header-" + std::to_string(index), iggy::HeaderValue::uint32(index));
        }
        send_with_headers(world, headers);
    };
    steps["header_is"] = [](World& world, const Json& given) {
        const auto headers = world.polled()[given.at("message")].headers();
        const auto* found = headers.find(given.at("header").get<std::string>());
        check(found != nullptr, "there is no such header");
        check(*found == header(given.at("kind"), given.at("value")), "another kind or value");
    };
    steps["confirmation_is"] = [](World& world, const Json& given) {
        world.expect_no_error();
        check(world.confirmation.has_value());
        check_equal(world.confirmation->partition_id, partition_of(given));
        check_equal(world.confirmation->base_offset, given.at("offset").get<std::uint64_t>());
    };
    steps["start_sending"] = [](World& world, const Json& given) {
        const std::uint32_t partition = partition_of(given);
        auto messages = world.next_messages(partition, given.at("count"));
        std::vector<iggy::Message> batch;
        for (const auto& message : messages) batch.push_back(message.message());
        const auto where = iggy::Partitioning::partition(partition);
        world.sending = world.client().send_messages(world.stream, world.topic, where, batch);
        std::move(messages.begin(), messages.end(), std::back_inserter(world.sent[partition]));
    };
    steps["sending_arrives_once"] = [](World& world, const Json&) {
        check(world.sending.has_value());
        const auto found = world.sending->get(deadline);
        const std::uint32_t partition = found.at(0).partition_id;
        check_equal(world.topic_details().partitions.at(partition).messages_count, world.sent[partition].size());
    };
}

}  // namespace bdd
