#include "world.hpp"

namespace bdd {

Sent Sent::numbered(std::uint32_t partition, std::size_t index, std::size_t size) {
    std::string payload = "message " + std::to_string(index) + " of partition " + std::to_string(partition);
    payload.resize(std::max(payload.size(), size), '.');
    return {
        {index + 1, partition},
        std::move(payload),
        {{"index", iggy::HeaderValue::uint64(index)}, {"origin", iggy::HeaderValue::string("scenario")}},
    };
}

void Sent::check_arrived(const iggy::MessageView& arrived) const {
    check(arrived.id() == id, "another id");
    check(arrived.text() == payload, "another payload");
    check(arrived.headers() == headers, "other headers");
}

void Receiver::receive(std::size_t count) {
    const std::size_t wanted = received.size() + count;
    const auto end = std::chrono::steady_clock::now() + deadline;
    while (received.size() < wanted) {
        check(std::chrono::steady_clock::now() < end, "the messages did not come");
        take(deadline);
    }
}

void Receiver::glance() {
    try {
        take(std::chrono::milliseconds(20));
    } catch (const iggy::DeadlineError&) {
        // Nothing came.
    }
}

void Receiver::take(std::chrono::milliseconds limit) {
    std::optional<iggy::ReceivedMessage> next;
    try {
        next = consumer.next().get(limit);
    } catch (const iggy::StaleError&) {
        // A partition that moved while it was read is read by its new owner.
        return;
    } catch (const iggy::Error& error) {
        if (error.retryable()) return;
        throw;
    }
    check(next.has_value(), "the consumer is closed");
    received.push_back(std::move(*next));
}

std::map<std::uint32_t, iggy::Checkpoint> Receiver::last_of_each() const {
    std::map<std::uint32_t, iggy::Checkpoint> out;
    for (const auto& message : received) out.insert_or_assign(message.partition_id(), message.checkpoint());
    return out;
}

std::unique_ptr<iggy::Client> World::connect(const std::string& credentials, iggy::ClientOptions options) const {
    auto client = std::make_unique<iggy::Client>("iggy://" + credentials + "@" + address_, std::move(options));
    client->connect().get(deadline);
    return client;
}

void World::clean() const {
    const auto client = connect("iggy:iggy");
    for (const auto& stream : client->get_streams().get()) client->delete_stream(stream.id).get();
    for (const auto& user : client->get_users().get()) {
        if (user.username != "iggy") client->delete_user(user.id).get();
    }
    for (const auto& token : client->get_personal_access_tokens().get()) {
        client->delete_personal_access_token(token.name).get();
    }
    client->shutdown().get();
}

iggy::Client& World::client_of(const std::string& name) {
    auto& client = clients[name];
    if (!client) client = connect(name + ":" + password);
    return *client;
}

iggy::Error World::take_error() {
    check(error_.has_value(), "nothing failed");
    return *std::exchange(error_, std::nullopt);
}

void World::expect_no_error() const {
    if (error_) check(false, "an earlier request failed: " + error_->name() + ": " + error_->what());
}

void World::finish() {
    waiting.reset();
    for (auto& [name, receiver] : consumers) receiver.consumer.shutdown().get(deadline);
    if (reader) reader->close().get(deadline);
    if (producer) producer->shutdown().get(deadline);
    for (auto& [name, client] : clients) client->shutdown().get(deadline);
    if (client_) client_->shutdown().get(deadline);
    expect_no_error();
}

std::vector<Sent> World::next_messages(std::uint32_t partition, std::size_t count, std::size_t size) {
    const std::size_t first = sent[partition].size();
    std::vector<Sent> out;
    for (std::size_t index = 0; index < count; ++index) out.push_back(Sent::numbered(partition, first + index, size));
    return out;
}

std::vector<iggy::SendConfirmation> World::send_by(const iggy::Client& client, std::uint32_t partition,
                                                   std::vector<Sent> messages) {
    std::vector<iggy::Message> batch;
    for (const auto& message : messages) batch.push_back(message.message());
    auto found = client.send_messages(stream, topic, iggy::Partitioning::partition(partition), batch).get(deadline);
    auto& all = sent[partition];
    std::move(messages.begin(), messages.end(), std::back_inserter(all));
    return found;
}

iggy::TopicDetails World::topic_details() const {
    auto found = client().get_topic(stream, topic).get(deadline);
    check(found.has_value(), "there is no such topic");
    return *found;
}

const iggy::PolledMessages& World::polled() const {
    expect_no_error();
    check(last_poll.has_value(), "nothing was polled");
    return *last_poll;
}

Receiver& World::receiver(const std::string& name) {
    expect_no_error();
    const auto found = consumers.find(name);
    check(found != consumers.end(), "there is no consumer " + name);
    return found->second;
}

}  // namespace bdd
