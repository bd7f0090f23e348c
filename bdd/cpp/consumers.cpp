// Consumers and members of consumer groups.

#include <algorithm>
#include <set>

#include "world.hpp"

namespace bdd {
namespace {

const std::string the_consumer = "the consumer";

iggy::PollOptions waiting(std::optional<iggy::CommitPolicy> commit = {}) {
    return {.max_wait = std::chrono::seconds(1), .commit = std::move(commit)};
}

void consume(World& world, const std::string& name, iggy::Consumer consumer) {
    if (world.did([&] { consumer.init().get(deadline); })) world.consumers.emplace(name, Receiver{std::move(consumer)});
}

void commit_all(World& world, const std::string& name) {
    auto& found = world.receiver(name);
    for (const auto& [partition, checkpoint] : found.last_of_each()) {
        world.did([&] { found.consumer.commit(checkpoint).get(deadline); });
    }
}

void close(World& world, const std::string& name) {
    auto consumer = std::move(world.receiver(name).consumer);
    world.consumers.erase(name);
    world.did([&] { consumer.shutdown().get(deadline); });
}

using Partitions = std::vector<std::uint32_t>;

/// Partitions by owner as the members see it, in an order of their own.
std::multiset<Partitions> owned(const World& world) {
    std::multiset<Partitions> out;
    for (const auto& [name, found] : world.consumers) out.insert(found.consumer.partitions());
    return out;
}

/// Whether the members and the node agree, and every partition has its owner.
bool has_settled(const World& world) {
    const auto found = world.client().get_consumer_group(world.stream, world.topic, world.group).get(deadline);
    check(found.has_value());
    std::multiset<Partitions> by_node;
    std::size_t partitions = 0;
    for (const auto& member : found->members) {
        auto of_member = member.partitions;
        std::ranges::sort(of_member);
        partitions += of_member.size();
        by_node.insert(of_member);
    }
    return by_node == owned(world) && partitions == found->partitions_count;
}

/// Every partition was read from its start, in order, without a hole and nothing twice, whoever read it.
void check_received(World& world) {
    std::map<std::uint32_t, std::vector<std::uint64_t>> offsets;
    for (const auto& [name, found] : world.consumers) {
        std::map<std::uint32_t, std::uint64_t> last;
        for (const auto& received : found.received) {
            const auto partition = received.partition_id();
            const auto message = received.message();
            check(!last.contains(partition) || last[partition] < message.offset(), "out of order");
            last[partition] = message.offset();
            check(message.text() == world.sent[partition].at(message.offset()).payload, "another payload");
            offsets[partition].push_back(message.offset());
        }
    }
    for (auto& [partition, seen] : offsets) {
        std::ranges::sort(seen);
        check_equal(seen, range(0, world.sent[partition].size() - 1));
    }
}

void alone_steps(Steps& steps) {
    steps["use_consumer"] = [](World& world, const Json& given) {
        const Json& commits = given.at("commits");
        auto policy = iggy::CommitPolicy::manual();
        if (commits.at("policy") == "on_read") policy = iggy::CommitPolicy::on_read();
        if (commits.at("policy") == "auto") {
            const auto every = iggy::CommitEvery::messages(commits.at("every"));
            policy = iggy::CommitPolicy::automatic({.interval = std::chrono::microseconds(0), .every = every});
        }
        const iggy::ConsumerOptions options{.partitions = std::vector<std::uint32_t>{given.at("partition")}, .poll_options = waiting(policy)};
        const std::string name = given.at("consumer");
        consume(world, the_consumer, world.client().consumer(name, world.stream, world.topic, options));
    };
    steps["consumer_receives"] = [](World& world, const Json& given) {
        world.receiver(the_consumer).receive(given.at("count"));
    };
    steps["consumer_receives_and_commits"] = [](World& world, const Json& given) {
        world.receiver(the_consumer).receive(given.at("count"));
        commit_all(world, the_consumer);
    };
    steps["consumer_commits"] = [](World& world, const Json&) { commit_all(world, the_consumer); };
    steps["close_consumer"] = [](World& world, const Json&) { close(world, the_consumer); };
    steps["consumer_received"] = [](World& world, const Json& given) {
        std::vector<std::uint64_t> found;
        for (const auto& each : world.receiver(the_consumer).received) found.push_back(each.message().offset());
        check_equal(found, range(given.at("first"), given.at("last")));
    };
}

void member_steps(Steps& steps) {
    steps["join"] = [](World& world, const Json& given) {
        const std::string name = given.at("member");
        world.group = given.at("group");
        // A member is a client of its own, as it would be in a program of its own.
        auto& client = world.clients[name] = world.connect("iggy:iggy");
        consume(world, name,
                client->consumer_group(world.group, world.stream, world.topic, {.poll_options = waiting()}));
    };
    steps["join_without_creating"] = [](World& world, const Json& given) {
        const std::string group = given.at("group");
        const iggy::ConsumerOptions options{.create_consumer_group = false};
        consume(world, "nobody", world.client().consumer_group(group, world.stream, world.topic, options));
    };
    steps["settle"] = [](World& world, const Json&) {
        world.expect_no_error();
        const auto end = std::chrono::steady_clock::now() + deadline;
        while (!has_settled(world)) {
            check(std::chrono::steady_clock::now() < end, "the members did not settle");
            for (auto& [name, found] : world.consumers) found.glance();
        }
    };
    steps["owns"] = [](World& world, const Json& given) {
        const auto found = world.receiver(given.at("member")).consumer.partitions();
        check_equal(found.size(), given.at("partitions").get<std::size_t>());
    };
    steps["own_each"] = [](World& world, const Json& given) {
        for (const char* member : {"first", "second"}) {
            const auto found = world.receiver(given.at(member)).consumer.partitions();
            check_equal(found.size(), given.at("partitions").get<std::size_t>());
        }
    };
    steps["no_two_owners"] = [](World& world, const Json&) {
        std::set<std::uint32_t> every;
        for (const auto& partitions : owned(world)) {
            for (const auto partition : partitions) check(every.insert(partition).second, "two owners");
        }
    };
    steps["member_receives"] = [](World& world, const Json& given) {
        world.receiver(given.at("member")).receive(given.at("count"));
    };
    steps["member_receives_and_commits"] = [](World& world, const Json& given) {
        world.receiver(given.at("member")).receive(given.at("count"));
        commit_all(world, given.at("member"));
    };
    steps["leave"] = [](World& world, const Json& given) { close(world, given.at("member")); };
    steps["member_signs_out"] = [](World& world, const Json& given) {
        const std::string name = given.at("member");
        world.consumers.erase(name);
        world.did([&] { world.clients.at(name)->logout_user().get(deadline); });
    };
    steps["receive_together"] = [](World& world, const Json& given) {
        const auto end = std::chrono::steady_clock::now() + deadline;
        const auto in_all = [&] {
            std::size_t sum = 0;
            for (const auto& [name, found] : world.consumers) sum += found.received.size();
            return sum;
        };
        while (in_all() < given.at("count")) {
            check(std::chrono::steady_clock::now() < end, "the messages did not come");
            for (const char* member : {"first", "second"}) world.receiver(given.at(member)).glance();
        }
        check_received(world);
    };
    steps["all_read_in_order"] = [](World& world, const Json&) {
        world.expect_no_error();
        check_received(world);
    };
    steps["received_of_every_partition"] = [](World& world, const Json& given) {
        std::set<std::uint32_t> partitions;
        for (const auto& each : world.receiver(given.at("member")).received) {
            partitions.insert(each.partition_id());
            check_equal(each.message().offset(), given.at("offset").get<std::uint64_t>());
        }
        check_equal(partitions.size(), world.sent.size());
    };
    steps["commit_lost_partition"] = [](World& world, const Json& given) {
        const auto lost = world.receiver(given.at("owner")).consumer.partitions();
        auto& found = world.receiver(given.at("member"));
        const auto message = std::ranges::find_if(found.received, [&](const auto& each) {
            return std::ranges::find(lost, each.partition_id()) != lost.end();
        });
        check(message != found.received.end(), "it received nothing of what it lost");
        world.did([&] { found.consumer.commit(message->checkpoint()).get(deadline); });
    };
}

}  // namespace

void consumer_steps(Steps& steps) {
    alone_steps(steps);
    member_steps(steps);
}

}  // namespace bdd
