// Polling, and stored offsets.

#include "world.hpp"

namespace bdd {
namespace {

iggy::PollOptions options(const Json& given) {
    auto out = plenty();
    if (given.contains("count")) out.count = given.at("count");
    if (given.contains("min_count")) out.min_count = given.at("min_count");
    if (given.contains("max_bytes")) out.max_bytes = given.at("max_bytes");
    if (given.contains("max_wait_ms")) out.max_wait = std::chrono::milliseconds(given.at("max_wait_ms").get<int>());
    const std::string commit = given.value("commit", "manual");
    if (commit == "on_read") out.commit = iggy::CommitPolicy::on_read();
    if (commit == "auto") out.commit = iggy::CommitPolicy::automatic();
    return out;
}

void poll(World& world, std::uint32_t partition, const std::string& consumer, const iggy::ReadStart& from,
          const iggy::PollOptions& limits) {
    auto found = world.attempt([&] {
        return world.client().poll_messages(world.stream, world.topic, partition, consumer, from, limits).get(deadline);
    });
    if (!found) return;
    world.last_poll = std::move(*found);
    world.polled_partition = partition;
}

std::vector<std::uint64_t> offsets(const iggy::PolledMessages& found) {
    std::vector<std::uint64_t> out;
    for (const auto& message : found) out.push_back(message.offset());
    return out;
}

void waiting_steps(Steps& steps) {
    steps["start_waiting"] = [](World& world, const Json& given) {
        const std::uint32_t partition = given.at("partition");
        const std::string consumer = given.value("consumer", "reader");
        world.waiting = Waiting{partition, world.client().poll_messages(world.stream, world.topic, partition, consumer,
                                                                        iggy::PollingStrategy::first(), options(given))};
    };
    steps["give_up_waiting"] = [](World& world, const Json&) {
        auto poll = std::move(world.waiting.value().poll);
        world.waiting.reset();
        poll.cancel();
        try {
            static_cast<void>(poll.get(deadline));
        } catch (const iggy::DeadlineError&) {
            throw;
        } catch (const iggy::CancelledCallError&) {
            return;
        }
        check(false, "the poll was not given up");
    };
    steps["waiting_returns"] = [](World& world, const Json& given) {
        world.expect_no_error();
        world.polled_partition = world.waiting.value().partition;
        world.last_poll = world.waiting->poll.get(deadline);
        world.waiting.reset();
        check_equal(offsets(*world.last_poll), range(given.at("first"), given.at("last")));
    };
}

}  // namespace

void poll_steps(Steps& steps) {
    steps["poll"] = [](World& world, const Json& given) {
        poll(world, given.at("partition"), given.value("consumer", "reader"), start(given.at("start"), world.noted_time),
             options(given));
    };
    steps["poll_continuation"] = [](World& world, const Json& given) {
        const auto from = world.polled().continuation();
        poll(world, world.polled_partition, "reader", from, options(given));
    };
    steps["note_time"] = [](World& world, const Json&) {
        // The server's clock, not ours: the time of the newest message, and a microsecond more.
        auto limits = plenty();
        limits.count = 1;
        poll(world, 0, "reader", iggy::PollingStrategy::last(), limits);
        world.noted_time = world.polled()[0].timestamp() + 1;
    };
    waiting_steps(steps);
    steps["poll_returns"] = [](World& world, const Json& given) {
        check_equal(offsets(world.polled()), range(given.at("first"), given.at("last")));
    };
    steps["poll_returns_nothing"] = [](World& world, const Json&) { check(world.polled().empty()); };
    steps["poll_returns_some"] = [](World& world, const Json& given) {
        const auto& found = world.polled();
        check(!found.empty() && found.size() < world.sent[world.polled_partition].size());
        const std::uint64_t first = given.at("first");
        check_equal(offsets(found), range(first, first + found.size() - 1));
    };
    steps["poll_returns_later"] = [](World& world, const Json& given) {
        check(!world.polled().empty() && world.polled()[0].offset() > given.at("offset"));
    };
    steps["polled_as_sent"] = [](World& world, const Json&) {
        check(!world.polled().empty());
        for (const auto& message : world.polled()) {
            world.sent[world.polled_partition].at(message.offset()).check_arrived(message);
        }
    };
    steps["polled_is_unreadable"] = [](World& world, const Json&) {
        for (const auto& message : world.polled()) {
            const auto& payload = world.sent[world.polled_partition].at(message.offset()).payload;
            check(message.text().find(payload.substr(0, 8)) == std::string_view::npos);
        }
    };
}

void offset_steps(Steps& steps) {
    static const auto stored = [](World& world, const Json& given) -> std::optional<std::uint64_t> {
        const std::string consumer = given.at("consumer");
        const auto found =
            world.client().get_consumer_offset(consumer, world.stream, world.topic, given.at("partition")).get(deadline);
        if (!found) return std::nullopt;
        return found->stored_offset;
    };
    steps["store_offset"] = [](World& world, const Json& given) {
        const std::string consumer = given.at("consumer");
        world.did([&] {
            const auto& client = world.client();
            client.store_consumer_offset(consumer, world.stream, world.topic, given.at("partition"), given.at("offset"))
                .get(deadline);
        });
    };
    steps["delete_offset"] = [](World& world, const Json& given) {
        const std::string consumer = given.at("consumer");
        world.did([&] {
            world.client().delete_consumer_offset(consumer, world.stream, world.topic, given.at("partition")).get(deadline);
        });
    };
    steps["store_checkpoint"] = [](World& world, const Json& given) {
        const std::string consumer = given.at("consumer");
        const auto& polled = world.polled();
        const auto checkpoint = given.contains("message") ? polled.checkpoint_at(given.at("message")) : polled.checkpoint();
        world.did([&] {
            world.client().store_consumer_position(consumer, world.stream, world.topic, checkpoint.value()).get(deadline);
        });
    };
    steps["stored_offset_is"] = [](World& world, const Json& given) {
        world.expect_no_error();
        check_equal(stored(world, given).value(), given.at("offset").get<std::uint64_t>());
    };
    steps["stored_offset_becomes"] = [](World& world, const Json& given) {
        world.expect_no_error();
        const auto end = std::chrono::steady_clock::now() + deadline;
        while (stored(world, given) != given.at("offset").get<std::uint64_t>()) {
            check(std::chrono::steady_clock::now() < end, "it does not come to be");
        }
    };
    steps["no_stored_offset"] = [](World& world, const Json& given) {
        world.expect_no_error();
        check(!stored(world, given));
    };
}

}  // namespace bdd
