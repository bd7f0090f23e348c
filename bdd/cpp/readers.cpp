// The partition reader.

#include <algorithm>

#include "world.hpp"

namespace bdd {
namespace {

/// One more batch, or one more report.
void read_once(World& world) {
    try {
        const auto batch = world.reader.value().next().get(deadline);
        if (const auto checkpoint = batch.checkpoint()) world.checkpoints.push_back(*checkpoint);
        for (const auto& message : batch) {
            world.read.push_back({batch.partition_id(), message.offset(), std::string(message.text())});
        }
    } catch (const iggy::Error& error) {
        if (!error.partition_id()) throw;
        world.reported.push_back(error);
    }
}

void read_until(World& world, std::size_t count) {
    while (world.read.size() < count) read_once(world);
}

void check_partition(World& world, std::uint32_t partition, std::size_t count) {
    std::uint64_t next = 0;
    for (const auto& read : world.read) {
        if (read.partition != partition) continue;
        check_equal(read.offset, next);
        check_equal(read.payload, world.sent[partition].at(next).payload);
        ++next;
    }
    check_equal(next, count);
}

}  // namespace

void reader_steps(Steps& steps) {
    steps["open_reader"] = [](World& world, const Json& given) {
        const iggy::ReaderOptions options{
            .partitions = given.at("partitions").get<std::vector<std::uint32_t>>(),
            .options = iggy::PollOptions{.count = given.value("count", 1000U), .max_wait = std::chrono::seconds(1)},
        };
        const std::string consumer = given.value("consumer", "reader");
        world.reader = world.client().reader(world.stream, world.topic, consumer, options).get(deadline);
    };
    steps["read"] = [](World& world, const Json& given) { read_until(world, given.at("count")); };
    steps["read_more"] = [](World& world, const Json& given) {
        read_until(world, world.read.size() + given.at("count").get<std::size_t>());
    };
    steps["read_of_partition"] = [](World& world, const Json& given) {
        check_partition(world, given.at("partition"), given.at("count"));
    };
    steps["read_of_each_partition"] = [](World& world, const Json& given) {
        for (std::uint32_t partition = 0; partition < world.topic_details().partitions_count; ++partition) {
            check_partition(world, partition, given.at("count"));
        }
    };
    steps["last_read"] = [](World& world, const Json& given) {
        const auto wanted = range(given.at("first"), given.at("last"));
        check_equal(wanted.size(), given.at("count").get<std::size_t>());
        check(world.read.size() >= wanted.size());
        auto read = world.read.end() - static_cast<std::ptrdiff_t>(wanted.size());
        for (const auto offset : wanted) {
            check_equal(read->partition, given.at("partition").get<std::uint32_t>());
            check_equal(read->offset, offset);
            ++read;
        }
    };
    steps["reader_commits"] = [](World& world, const Json&) {
        for (const auto& checkpoint : world.checkpoints) {
            world.did([&] { world.reader.value().commit(checkpoint).get(deadline); });
        }
    };
    steps["seek"] = [](World& world, const Json& given) {
        world.reader.value().seek(given.at("partition"), start(given.at("start"), world.noted_time));
    };
    steps["reader_reported"] = [](World& world, const Json& given) {
        while (world.reported.empty()) read_once(world);
        check_equal(world.reported.front().partition_id().value(), given.at("partition").get<std::uint32_t>());
        check_equal(world.reported.front().name(), given.at("error").get<std::string>());
    };
    steps["reader_stops"] = [](World& world, const Json& given) {
        const std::uint32_t partition = given.at("partition");
        const auto concerns = [&](const iggy::Error& error) { return error.partition_id() == partition; };
        while (std::ranges::none_of(world.reported, concerns)) read_once(world);
        const auto last = std::find_if(world.reported.rbegin(), world.reported.rend(), concerns);
        check_equal(last->name(), given.at("error").get<std::string>());
        const auto stopped = world.reader.value().stopped();
        check(std::ranges::find(stopped, partition) != stopped.end());
    };
    steps["close_reader"] = [](World& world, const Json&) {
        world.did([&] { world.reader.value().close().get(deadline); });
    };
    steps["reading_fails"] = [](World& world, const Json& given) {
        try {
            static_cast<void>(world.reader.value().next().get(deadline));
        } catch (const iggy::Error& error) {
            check_equal(error.class_name(), given.at("class").get<std::string>());
            return;
        }
        check(false, "reading did not fail");
    };
}

}  // namespace bdd
