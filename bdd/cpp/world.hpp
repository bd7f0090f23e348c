// What the steps of one scenario share.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <iggy/iggy.hpp>
#include <nlohmann/json.hpp>

namespace bdd {

using Json = nlohmann::json;

/// Against hanging only.
inline constexpr std::chrono::seconds deadline{90};

/// Fails a step.
inline void check(bool holds, const std::string& what = "this does not hold",
                  std::source_location place = std::source_location::current()) {
    if (!holds) throw std::runtime_error(what + " (" + place.file_name() + ":" + std::to_string(place.line()) + ")");
}

template <typename T, typename U>
void check_equal(const T& found, const U& wanted, std::source_location place = std::source_location::current()) {
    if (found == wanted) return;
    check(false, Json(found).dump() + " is not " + Json(wanted).dump(), place);
}

/// A message as it was sent; its place in its partition is its offset.
struct Sent {
    iggy::MessageId id;
    std::string payload;
    iggy::Headers headers;

    /// The message of this place in its partition, with a payload of at least `size` bytes.
    static Sent numbered(std::uint32_t partition, std::size_t index, std::size_t size = 0);
    /// It outlives what is sent.
    [[nodiscard]] iggy::Message message() const { return iggy::Message(payload).id(id).headers(headers); }
    /// Whether this is what arrived.
    void check_arrived(const iggy::MessageView& arrived) const;
};

/// A message that a reader read.
struct Read {
    std::uint32_t partition;
    std::uint64_t offset;
    std::string payload;
};

/// A consumer and what the application received from it.
struct Receiver {
    iggy::Consumer consumer;
    std::vector<iggy::ReceivedMessage> received = {};

    /// Receives so many more.
    void receive(std::size_t count);
    /// Receives what comes within a moment: a member has to be listened to for the group to settle.
    void glance();
    /// The last position of each partition.
    [[nodiscard]] std::map<std::uint32_t, iggy::Checkpoint> last_of_each() const;

private:
    void take(std::chrono::milliseconds limit);
};

/// A request that is waiting.
struct Waiting {
    std::uint32_t partition;
    iggy::Op<iggy::PolledMessages> poll;
};

/// A request of a background send.
using Sending = iggy::Op<std::vector<iggy::SendConfirmation>>;

class World {
public:
    explicit World(std::string address) : address_(std::move(address)) { clean(); }

    /// A client of somebody.
    [[nodiscard]] std::unique_ptr<iggy::Client> connect(const std::string& credentials,
                                                        iggy::ClientOptions options = {}) const;
    /// Signs the client of the scenario in.
    void sign_in() { client_ = connect("iggy:iggy"); }
    [[nodiscard]] iggy::Client& client() const {
        check(client_ != nullptr, "there is no signed-in client");
        return *client_;
    }
    /// The client of a user, signed in at first use.
    iggy::Client& client_of(const std::string& name);
    [[nodiscard]] const std::string& address() const { return address_; }

    /// Keeps how a request ended. The next step that cares says whether that was right.
    template <typename F>
    auto attempt(F&& request) -> std::optional<decltype(request())> {
        expect_no_error();
        try {
            return request();
        } catch (const iggy::Error& error) {
            error_ = error;
            return std::nullopt;
        }
    }
    /// As @ref attempt, for a request that returns nothing.
    template <typename F>
    bool did(F&& request) {
        return attempt([&] { return request(), true; }).has_value();
    }
    /// The error of the last request; it counts as looked at.
    iggy::Error take_error();
    /// Nothing may have failed.
    void expect_no_error() const;
    /// Ends the scenario: nothing may be left that failed and was not looked at.
    void finish();

    [[nodiscard]] std::vector<Sent> next_messages(std::uint32_t partition, std::size_t count, std::size_t size = 0);
    std::vector<iggy::SendConfirmation> send_by(const iggy::Client& client, std::uint32_t partition,
                                                std::vector<Sent> messages);
    std::vector<iggy::SendConfirmation> send(std::uint32_t partition, std::size_t count, std::size_t size = 0) {
        return send_by(client(), partition, next_messages(partition, count, size));
    }
    [[nodiscard]] iggy::TopicDetails topic_details() const;
    /// What the last poll returned.
    [[nodiscard]] const iggy::PolledMessages& polled() const;
    [[nodiscard]] Receiver& receiver(const std::string& name);

    std::string stream = {};
    std::string topic = {};
    std::string group = {};
    /// What was sent to each partition, in order.
    std::map<std::uint32_t, std::vector<Sent>> sent = {};
    std::optional<iggy::PolledMessages> last_poll = {};
    std::uint32_t polled_partition = 0;
    std::optional<iggy::SendConfirmation> confirmation = {};
    std::optional<Waiting> waiting = {};
    std::optional<Sending> sending = {};
    std::uint64_t noted_time = 0;
    std::string noted_changes = {};
    std::optional<iggy::Producer> producer = {};
    std::optional<iggy::Reader> reader = {};
    std::vector<Read> read = {};
    std::vector<iggy::Checkpoint> checkpoints = {};
    std::vector<iggy::Error> reported = {};
    std::map<std::string, Receiver> consumers = {};
    std::map<std::string, std::string> tokens = {};
    std::vector<std::byte> answer = {};
    std::map<std::string, std::unique_ptr<iggy::Client>> clients = {};

private:
    /// Removes what the scenario before left at the node.
    void clean() const;

    std::string address_;
    std::unique_ptr<iggy::Client> client_ = {};
    std::optional<iggy::Error> error_ = {};
};

/// The password of users whose scenarios name none.
inline const std::string password = "secret123";

/// What a poll of a scenario asks for unless it says more.
inline iggy::PollOptions plenty() { return {.count = 10'000, .max_bytes = 16U << 20U}; }

/// A start as the driver says it.
inline iggy::PollingStrategy start(const Json& said, std::uint64_t noted_time) {
    const std::string kind = said.at("kind");
    if (kind == "first") return iggy::PollingStrategy::first();
    if (kind == "last") return iggy::PollingStrategy::last();
    if (kind == "next") return iggy::PollingStrategy::next();
    if (kind == "noted_time") return iggy::PollingStrategy::timestamp(noted_time);
    return iggy::PollingStrategy::offset(said.at("value"));
}

/// Whole numbers from one to another, both included.
inline std::vector<std::uint64_t> range(std::uint64_t first, std::uint64_t last) {
    std::vector<std::uint64_t> out;
    for (; first <= last; ++first) out.push_back(first);
    return out;
}

using Step = std::function<void(World&, const Json&)>;
using Steps = std::map<std::string, Step>;

void resource_steps(Steps& steps);
void message_steps(Steps& steps);
void poll_steps(Steps& steps);
void offset_steps(Steps& steps);
void producer_steps(Steps& steps);
void consumer_steps(Steps& steps);
void reader_steps(Steps& steps);
void user_steps(Steps& steps);
void node_steps(Steps& steps);

}  // namespace bdd
