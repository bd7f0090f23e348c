// Calls that end early, run side by side, or meet a closed client.
//
// Numbers are those of the threads in which users of other libraries reported the fault.

#include <atomic>
#include <fstream>
#include <random>
#include <thread>

#include "testing.hpp"

namespace {

using namespace iggy;
using testing::check;
using testing::check_throws;
using testing::deadline;

testing::Node* node = nullptr;

const PollOptions waits{.max_wait = std::chrono::seconds(60)};

auto long_poll(const Client& client) {
    return client.poll_messages("s", "t", 0, "c", PollingStrategy::offset(1'000'000), waits);
}

void send(const Client& client, std::string_view text, std::uint32_t partition = 0) {
    const Message message(text);
    client.send_messages("s", "t", Partitioning::partition(partition), std::span(&message, 1)).get(deadline);
}

void pause_at_random() {
    static std::mt19937 random(7);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
}

// valkey-glide#5442
void given_up_at_random() {
    const auto client = node->client();
    std::uint64_t sent = 0;
    for (int round = 0; round < testing::times("IGGY_TEST_CANCELS", 1000) / 50; ++round) {
        {
            std::vector<Op<void>> pings;
            for (int index = 0; index < 49; ++index) pings.push_back(client.ping());
            const auto poll = long_poll(client);
            pause_at_random();
        }
        send(client, "kept");
        ++sent;
    }
    check(client.poll_messages("s", "t", 0, "c", PollingStrategy::first()).get(deadline).size() == sent);
    client.shutdown().get(deadline);
}

// rust-rdkafka#490
void reads_given_up_lose_nothing() {
    const auto client = node->client();
    const auto reader = client.reader("s", "t", "r", {.partitions = {0, 1}}).get(deadline);
    const auto consumer =
        client.consumer("c", "s", "t", {.partitions = std::vector<std::uint32_t>{0}, .start = PollingStrategy::first()});
    consumer.init().get(deadline);
    std::vector<std::uint64_t> read;
    std::vector<std::uint64_t> received;
    const auto take = [](const PolledMessages& batch, std::vector<std::uint64_t>& into) {
        for (const auto message : batch) into.push_back(message.offset());
    };
    constexpr std::size_t count = 100;
    for (std::size_t index = 0; index < count; ++index) {
        send(client, "one");
        try {
            take(reader.next().get(std::chrono::microseconds(index * 37 % 2000)), read);
        } catch (const DeadlineError&) {
        }
        try {
            const auto limit = std::chrono::microseconds(index * 53 % 2000);
            if (index % 2 == 0) {
                received.push_back(consumer.next().get(limit).value().message().offset());
            } else {
                take(consumer.next_batch().get(limit).value(), received);
            }
        } catch (const DeadlineError&) {
        }
        // One that ended and whose result nobody took goes back too.
        auto forgotten = consumer.next_batch();
        pause_at_random();
    }
    while (read.size() < count) take(reader.next().get(deadline), read);
    while (received.size() < count) received.push_back(consumer.next().get(deadline).value().message().offset());
    for (std::size_t index = 0; index < count; ++index) check(read[index] == index && received[index] == index);
    reader.close().get(deadline);
    consumer.shutdown().get(deadline);
    client.shutdown().get(deadline);
}

Task<std::size_t> produce_and_poll(const Client& client) {
    const Message message("from a coroutine");
    co_await client.send_messages("s", "t", Partitioning::partition(1), std::span(&message, 1));
    const auto polled = co_await client.poll_messages("s", "t", 1, "c", PollingStrategy::first());
    // Nothing may block here, and what would says so instead of hanging.
    auto ping = client.ping();
    check_throws<InvalidInputError>([&] { ping.get(); });
    co_await ping;
    co_return polled.size();
}

Task<> fails(const Client& client) { co_await client.delete_stream("nowhere"); }

void coroutines_and_futures() {
    const auto client = node->client();
    check(produce_and_poll(client).get() == 1);
    check_throws<NotFoundError>([&] { fails(client).get(); });
    auto ping = client.ping().future();
    check(ping.wait_for(deadline) == std::future_status::ready);
    ping.get();
    auto missing = client.delete_stream("nowhere").future();
    const auto error = check_throws<NotFoundError>([&] { missing.get(); });
    check(error.name() == "stream_name_not_found" && error.class_name() == "not_found" && error.code() != 0);
    check(!error.retryable() && error.outcome() == Outcome::not_applied);
    client.shutdown().get(deadline);
}

// confluent-kafka-python#807
void waits_end() {
    const auto client = node->client();
    auto poll = long_poll(client);
    check_throws<DeadlineError>([&] { static_cast<void>(poll.get(std::chrono::milliseconds(20))); });
    auto cancelled = long_poll(client);
    std::thread other([&] { cancelled.cancel(); });
    check_throws<CancelledCallError>([&] { static_cast<void>(cancelled.get(deadline)); });
    other.join();
    client.ping().get(deadline);
    client.shutdown().get(deadline);
}

// dtolnay/cxx#1326
void panics_are_errors() {
    for (int index = 0; index < 3; ++index) {
        auto panics = Op<void>::begin(detail::nothing, [](IggyDone done, void* user) { return iggy_panics(done, user); });
        const auto error = check_throws<InternalError>([&] { panics.get(deadline); });
        check(std::string_view(error.what()).find("on purpose") != std::string_view::npos, error.what());
    }
}

void callbacks_that_throw() {
    const auto client = node->client();
    std::atomic<int> asked = 0;
    const auto producer = client.producer(
        "s", "t", {.partitioner = [&](std::string_view stream, std::string_view topic, const MessageList& messages) {
            check(stream == "s" && topic == "t" && messages.size() == 1 && messages[0].text() == "x");
            if (++asked == 1) throw std::runtime_error("no such luck");
            if (asked == 2) throw 7;
            return 1U;
        }});
    producer.init().get(deadline);
    const auto error = check_throws<Error>([&] { producer.send({"x"}).get(deadline); });
    check(std::string_view(error.what()).find("no such luck") != std::string_view::npos, error.what());
    check_throws<Error>([&] { producer.send({"x"}).get(deadline); });
    check(producer.send({"x"}).get(deadline).at(0).partition_id == 1);
    producer.shutdown().get(deadline);

    std::atomic<int> heard = 0;
    const auto background = client.producer("s", "t", {.partitioning = Partitioning::partition(9),
                                                       .background = Background{},
                                                       .on_error = [&](const Error& failed) {
                                                           check(!failed.name().empty());
                                                           ++heard;
                                                           throw std::runtime_error("in a listener");
                                                       }});
    background.init().get(deadline);
    background.send({"lost"}).get(deadline);
    try {
        background.shutdown().get(deadline);
    } catch (const Error&) {
        // It may also say what was lost.
    }
    check(heard == 1, "heard " + std::to_string(heard));
    client.shutdown().get(deadline);
}

template <typename F>
void ends_closed(F&& call) {
    try {
        call();
    } catch (const ClosedError&) {
    } catch (const CancelledCallError&) {
    } catch (const Error& error) {
        // A machine that stands still for as long as a deadline.
        check(error.retryable(), error.what());
    }
}

// confluent-kafka-python#255, #358, #1573; kafkajs#767
void close_in_every_state() {
    {
        const Client never(node->connection_string());
        never.shutdown().get(deadline);
        never.shutdown().get(deadline);
        check_throws<ClosedError>([&] { never.ping().get(deadline); });
    }
    for (int round = 0; round < 5; ++round) {
        const auto client = node->client();
        const auto member = client.consumer_group("g", "s", "t");
        auto joining = member.init();
        if (round > 1) joining.get(deadline);
        std::vector<std::thread> threads;
        for (int index = 0; index < 20; ++index) {
            threads.emplace_back([&, index] {
                if (index % 2 == 0) ends_closed([&] { static_cast<void>(long_poll(client).get(deadline)); });
                else ends_closed([&] { for (;;) client.ping().get(deadline); });
            });
        }
        auto next = member.next();
        if (round % 2 == 0) {
            try {
                member.shutdown().get(deadline);
            } catch (const Error&) {
                // It was closed before it had joined.
            }
        }
        client.shutdown().get(deadline);
        for (auto& thread : threads) thread.join();
        check_throws<ClosedError>([&] { client.get_streams().get(deadline); });
        check_throws<ClosedError>([&] { send(client, "late"); });
    }
}

void moved_from_is_refused() {
    Client client(node->connection_string());
    const Client other = std::move(client);
    other.connect().get(deadline);
    check_throws<InvalidInputError>([&] { client.ping().get(deadline); });
    auto ping = other.ping();
    auto moved = std::move(ping);
    check_throws<InvalidInputError>([&] { ping.get(); });
    moved.get(deadline);
    check_throws<InvalidInputError>([&] { moved.get(); });
    other.shutdown().get(deadline);
}

// valkey-glide#6672, #6673
void forks() {
    const auto client = node->client();
    for (int round = 0; round < 3; ++round) {
        const pid_t child = fork();
        check(child >= 0);
        if (child == 0) {
            int code = 1;
            try {
                client.ping().get(deadline);
            } catch (const InheritedClientError&) {
                try {
                    Client own(node->connection_string());
                    own.connect().get(deadline);
                    own.ping().get(deadline);
                    own.shutdown().get(deadline);
                    code = 0;
                } catch (...) {
                    code = 2;
                }
            } catch (...) {
                code = 3;
            }
            _exit(code);
        }
        int status = 0;
        waitpid(child, &status, 0);
        check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with " + std::to_string(status));
        client.ping().get(deadline);
    }
    client.shutdown().get(deadline);
}

// kafkajs#702, nats.rs#182
void server_away() {
    const auto client = node->client();
    const auto events = client.subscribe_events();
    send(client, "before");
    node->tell("kill");
    const Message message("while away");
    auto sending = client.send_messages("s", "t", Partitioning::partition(0), std::span(&message, 1));
    std::this_thread::sleep_for(std::chrono::seconds(testing::times("IGGY_TEST_AWAY", 1)));
    node->tell("start");
    try {
        sending.get(deadline);
    } catch (const Error& error) {
        check(error.retryable() || error.outcome() == Outcome::unknown, error.what());
    }
    client.ping().get(deadline);
    bool disconnected = false;
    while (!disconnected) disconnected = events.next().get(deadline).value().event == "disconnected";
    client.shutdown().get(deadline);
    while (events.next().get(deadline).value().event != "shutdown") {
    }
    auto waiting = events.next();
    events.close();
    check(!waiting.get(deadline) && !events.next().get(deadline), "it is closed");
}

std::size_t resident_pages() {
    std::ifstream statistics("/proc/self/statm");
    std::size_t total = 0;
    std::size_t resident = 0;
    statistics >> total >> resident;
    return resident;
}

// opendal#8250
void memory_is_flat() {
    const auto client = node->client();
    const std::string payload(1 << 20, 'x');
    send(client, payload);
    const PollOptions one{.count = 1, .max_bytes = 2U << 20U};
    const auto poll = [&] {
        const auto polled = client.poll_messages("s", "t", 0, "c", PollingStrategy::first(), one).get(deadline);
        check(polled[0].payload().size() == payload.size());
    };
    for (int index = 0; index < 50; ++index) poll();
    const std::size_t before = resident_pages();
    for (int index = 0; index < testing::times("IGGY_TEST_POLLS", 500); ++index) poll();
    const std::size_t grown = resident_pages() - std::min(resident_pages(), before);
    check(grown * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) < 64U << 20U, std::to_string(grown) + " pages more");
    client.shutdown().get(deadline);
}

void loops_end() {
    const auto client = node->client();
    for (int index = 0; index < 5; ++index) send(client, std::to_string(index));
    const auto consumer =
        client.consumer("loop", "s", "t", {.partitions = std::vector<std::uint32_t>{0}, .start = PollingStrategy::first()});
    consumer.init().get(deadline);
    std::string read;
    for (const auto& received : consumer.messages()) {
        read += received.message().text();
        if (read.size() == 2) break;
    }
    // What a handler threw at comes again.
    std::stop_source stop;
    bool thrown = false;
    const auto handle = [&](const ReceivedMessage& received) {
        if (!std::exchange(thrown, true)) throw std::runtime_error("in a handler");
        read += received.message().text();
        if (read.size() == 5) stop.request_stop();
    };
    check_throws<std::runtime_error>([&] { consumer.consume_messages(handle, stop.get_token()); });
    consumer.consume_messages(handle, stop.get_token());
    check(read == "01234", read);
    consumer.shutdown().get(deadline);
    for ([[maybe_unused]] const auto& received : consumer.messages()) check(false, "it is closed");
    client.shutdown().get(deadline);
}

}  // namespace

int main(int count, char** arguments) {
    testing::Node running;
    node = &running;
    return testing::run(
        {
            {"given calls given up at random when called again should work and lose nothing", given_up_at_random},
            {"given reads given up at random when read on should lose and repeat nothing", reads_given_up_lose_nothing},
            {"given coroutines and futures when awaited should bring results and errors", coroutines_and_futures},
            {"given a poll that waits when its time is over or it is cancelled should end", waits_end},
            {"given a panic in the core when called should be an error", panics_are_errors},
            {"given callbacks that throw when called should fail what they are for and nothing else", callbacks_that_throw},
            {"given a client in any state when closed should end every call", close_in_every_state},
            {"given what was moved away when used should be refused", moved_from_is_refused},
            {"given a forked child when it uses a client of its parent should be told so", forks},
            {"given a server that is away when it comes back should be served", server_away},
            {"given many polls of a large message when freed should keep memory flat", memory_is_flat},
            {"given loops over a consumer when left or thrown out of should end and repeat what was not handled", loops_end},
        },
        count, arguments);
}
