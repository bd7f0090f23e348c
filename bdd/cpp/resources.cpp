// Streams, topics, partitions, segments and consumer groups.

#include "world.hpp"

namespace bdd {
namespace {

void create_stream(World& world, const std::string& name) {
    world.stream = name;
    world.client().create_stream(name).get(deadline);
}

void create_topic(World& world, const std::string& name, std::uint32_t partitions, iggy::Settings options = {}) {
    world.topic = name;
    world.sent.clear();
    const iggy::TopicCreateOptions settings{.partitions_count = partitions, .options = std::move(options)};
    world.client().create_topic(world.stream, name, settings).get(deadline);
}

std::string text(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

template <typename T>
std::vector<std::string> names(const std::vector<T>& found) {
    std::vector<std::string> out;
    for (const auto& each : found) out.push_back(each.name);
    return out;
}

void stream_steps(Steps& steps) {
    steps["create_stream"] = [](World& world, const Json& given) {
        world.did([&] { create_stream(world, given.at("stream")); });
    };
    steps["create_stream_with_topic"] = [](World& world, const Json& given) {
        create_stream(world, given.at("stream"));
        create_topic(world, given.at("topic"), given.at("partitions"));
    };
    steps["create_stream_of_bytes"] = [](World& world, const Json& given) {
        const std::string name(given.at("bytes").get<std::size_t>(), 'x');
        world.did([&] { world.client().create_stream(name).get(deadline); });
    };
    steps["rename_stream"] = [](World& world, const Json& given) {
        const std::string old = given.at("stream");
        const auto change = iggy::UpdateOptions::rename(given.at("name").get<std::string>());
        world.did([&] { world.client().update_stream(old, change).get(deadline); });
    };
    steps["delete_stream"] = [](World& world, const Json& given) {
        const std::string name = given.at("stream");
        world.did([&] { world.client().delete_stream(name).get(deadline); });
    };
    steps["stream_exists"] = [](World& world, const Json& given) {
        world.expect_no_error();
        const std::string name = given.at("stream");
        const auto found = world.client().get_stream(name).get(deadline);
        check(found.has_value());
        check_equal(found->name, name);
        check_equal(found->topics.size(), given.at("topics").get<std::size_t>());
    };
    steps["stream_is_missing"] = [](World& world, const Json& given) {
        world.expect_no_error();
        check(!world.client().get_stream(given.at("stream").get<std::string>()).get(deadline));
    };
    steps["streams_are"] = [](World& world, const Json& given) {
        check_equal(names(world.client().get_streams().get(deadline)), given.at("names"));
    };
    steps["stream_number_finds_it"] = [](World& world, const Json& given) {
        const auto by_name = world.client().get_stream(given.at("stream").get<std::string>()).get(deadline);
        check(by_name.has_value());
        check(world.client().get_stream(by_name->id).get(deadline) == by_name);
    };
}

void topic_steps(Steps& steps) {
    steps["create_topic"] = [](World& world, const Json& given) {
        iggy::Settings options;
        std::uint32_t partitions = 1;
        const Json settings = given.value("settings", Json::object());
        for (const auto& [key, value] : settings.items()) {
            if (key == "partitions") {
                partitions = value;
            } else {
                options.emplace(key, text(value));
            }
        }
        world.did([&] { create_topic(world, given.at("topic"), partitions, options); });
    };
    steps["create_segmented_topic"] = [](World& world, const Json& given) {
        create_topic(world, given.at("topic"), 1, {{"segment_size", given.at("segment_size").get<std::uint64_t>()}});
    };
    steps["topic_has_settings"] = [](World& world, const Json& given) {
        world.expect_no_error();
        world.topic = given.at("topic");
        const auto topic = world.topic_details();
        auto found = topic.derived_options;
        for (const auto& [key, value] : topic.options) found[key] = value;
        found["partitions"] = std::to_string(topic.partitions_count);
        for (const auto& [key, value] : given.at("settings").items()) check_equal(found[key], text(value));
    };
    steps["set_message_expiry"] = [](World& world, const Json& given) {
        const std::string topic = given.at("topic");
        const iggy::UpdateOptions change{.options = {{"message_expiry", given.at("message_expiry").get<std::uint64_t>()}}};
        world.did([&] { world.client().update_topic(world.stream, topic, change).get(deadline); });
    };
    steps["rename_topic"] = [](World& world, const Json& given) {
        const std::string old = given.at("topic");
        const auto change = iggy::UpdateOptions::rename(given.at("name").get<std::string>());
        world.did([&] { world.client().update_topic(world.stream, old, change).get(deadline); });
    };
    steps["delete_topic"] = [](World& world, const Json& given) {
        const std::string topic = given.at("topic");
        world.did([&] { world.client().delete_topic(world.stream, topic).get(deadline); });
    };
    steps["recreate_topic"] = [](World& world, const Json& given) {
        const std::string topic = given.at("topic");
        world.client().delete_topic(world.stream, topic).get(deadline);
        create_topic(world, topic, given.at("partitions"));
    };
    steps["topic_exists"] = [](World& world, const Json& given) {
        world.expect_no_error();
        world.topic = given.at("topic");
        check_equal(world.topic_details().partitions.size(), given.at("partitions").get<std::size_t>());
    };
    steps["topic_is_missing"] = [](World& world, const Json& given) {
        world.expect_no_error();
        check(!world.client().get_topic(world.stream, given.at("topic").get<std::string>()).get(deadline));
    };
    steps["topics_are"] = [](World& world, const Json& given) {
        check_equal(names(world.client().get_topics(world.stream).get(deadline)), given.at("names"));
    };
    steps["topic_number_finds_it"] = [](World& world, const Json& given) {
        world.topic = given.at("topic");
        const auto by_name = world.topic_details();
        check(world.client().get_topic(world.stream, by_name.id).get(deadline) == by_name);
    };
}

void partition_steps(Steps& steps) {
    steps["add_partitions"] = [](World& world, const Json& given) {
        world.did([&] { world.client().create_partitions(world.stream, world.topic, given.at("count")).get(deadline); });
    };
    steps["remove_partitions"] = [](World& world, const Json& given) {
        world.did([&] { world.client().delete_partitions(world.stream, world.topic, given.at("count")).get(deadline); });
    };
    steps["delete_segments"] = [](World& world, const Json& given) {
        const std::uint32_t partition = given.at("partition");
        world.did([&] {
            world.client().delete_segments(world.stream, world.topic, partition, given.at("count")).get(deadline);
        });
    };
    steps["partition_holds"] = [](World& world, const Json& given) {
        world.expect_no_error();
        const auto topic = world.topic_details();
        const std::uint64_t count = given.at("count");
        check_equal(topic.partitions.at(given.at("partition")).messages_count, count);
        // And no other partition holds any.
        check_equal(topic.messages_count, count);
    };
    steps["each_partition_holds"] = [](World& world, const Json& given) {
        world.expect_no_error();
        for (const auto& partition : world.topic_details().partitions) {
            check_equal(partition.messages_count, given.at("count").get<std::uint64_t>());
        }
    };
    steps["partitions_hold"] = [](World& world, const Json& given) {
        world.expect_no_error();
        check_equal(world.topic_details().messages_count, given.at("count").get<std::uint64_t>());
    };
    steps["options_include"] = [](World& world, const Json& given) {
        const std::string scope = given.at("scope");
        const auto of = scope == "stream" ? iggy::Scope::stream : scope == "topic" ? iggy::Scope::topic : iggy::Scope::user;
        const auto found = world.client().describe_options(of).get(deadline);
        const std::string wanted = given.at("option");
        check(std::ranges::any_of(found, [&](const auto& option) { return option.key == wanted; }));
    };
}

void group_steps(Steps& steps) {
    steps["create_group"] = [](World& world, const Json& given) {
        const std::string group = given.at("group");
        world.did([&] { world.client().create_consumer_group(world.stream, world.topic, group).get(deadline); });
    };
    steps["delete_group"] = [](World& world, const Json& given) {
        const std::string group = given.at("group");
        world.did([&] { world.client().delete_consumer_group(world.stream, world.topic, group).get(deadline); });
    };
    steps["group_exists"] = [](World& world, const Json& given) {
        world.expect_no_error();
        const std::string group = given.at("group");
        const auto found = world.client().get_consumer_group(world.stream, world.topic, group).get(deadline);
        check(found.has_value());
        check_equal(found->members.size(), given.at("members").get<std::size_t>());
    };
    steps["group_is_missing"] = [](World& world, const Json& given) {
        world.expect_no_error();
        const std::string group = given.at("group");
        check(!world.client().get_consumer_group(world.stream, world.topic, group).get(deadline));
    };
}

}  // namespace

void resource_steps(Steps& steps) {
    stream_steps(steps);
    topic_steps(steps);
    partition_steps(steps);
    group_steps(steps);
}

}  // namespace bdd
