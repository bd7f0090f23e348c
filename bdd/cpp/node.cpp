// The node itself: its state, its changes; and how the last request ended.

#include <algorithm>

#include "world.hpp"

namespace bdd {

void node_steps(Steps& steps) {
    steps["ping"] = [](World& world, const Json&) { world.did([&] { world.client().ping().get(deadline); }); };
    steps["finds_itself"] = [](World& world, const Json& given) {
        const auto me = world.client().get_me().get(deadline);
        const auto clients = world.client().get_clients().get(deadline);
        check(std::ranges::any_of(clients, [&](const auto& client) { return client.client_id == me.client_id; }));
        const auto found = world.client().get_client(me.client_id).get(deadline);
        const auto user = world.client().get_user(given.at("user").get<std::string>()).get(deadline);
        check(me.user_id == user.value().id);
        check(found.value().user_id == user->id);
    };
    steps["statistics_are"] = [](World& world, const Json& given) {
        const auto found = world.client().get_stats().get(deadline);
        check_equal(found.streams_count, given.at("streams"));
        check_equal(found.topics_count, given.at("topics"));
        check_equal(found.partitions_count, given.at("partitions"));
        check_equal(found.messages_count, given.at("messages"));
    };
    steps["cluster_is"] = [](World& world, const Json& given) {
        const auto cluster = world.client().get_cluster_metadata().get(deadline);
        check_equal(cluster.nodes.size(), given.at("nodes").get<std::size_t>());
        const auto port = std::stoul(world.address().substr(world.address().rfind(':') + 1));
        std::size_t leaders = 0;
        for (const auto& node : cluster.nodes) {
            if (node.role != "leader") continue;
            ++leaders;
            check(node.tcp == port);
        }
        check_equal(leaders, std::size_t{1});
    };
    steps["note_changes"] = [](World& world, const Json&) {
        world.noted_changes = world.client().get_metadata_changes({.start = "latest"}).get(deadline).next.value();
    };
    steps["changes_include_creations"] = [](World& world, const Json&) {
        const auto page = world.client().get_metadata_changes({.start = world.noted_changes}).get(deadline);
        const auto place = [&](std::string_view kind) {
            return std::ranges::find_if(page.records, [&](const auto& record) { return record.kind == kind; });
        };
        check(place("topic_created") != page.records.end());
        check(place("stream_created") < place("topic_created"));
    };
    steps["take_snapshot"] = [](World& world, const Json&) {
        auto found = world.attempt([&] { return world.client().snapshot({.types = {"test"}}).get(deadline); });
        if (found) world.answer = std::move(*found);
    };
    steps["snapshot_is_zip"] = [](World& world, const Json&) {
        world.expect_no_error();
        check(world.answer.size() > 2 && world.answer[0] == std::byte{'P'} && world.answer[1] == std::byte{'K'});
    };
    steps["send_raw"] = [](World& world, const Json& given) {
        world.did([&] { world.client().send_binary_request(given.at("code")).get(deadline); });
    };
    steps["request_succeeds"] = [](World& world, const Json&) { world.expect_no_error(); };
    steps["request_fails"] = [](World& world, const Json& given) {
        const auto error = world.take_error();
        if (error.name() != given.at("error")) check(false, error.name() + ": " + error.what());
    };
}

}  // namespace bdd
