/// @file
/// The producer.
#pragma once

#include <cstdio>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <iggy/detail/value.hpp>
#include <iggy/message.hpp>
#include <iggy/op.hpp>

namespace iggy {

/// Where sent messages are.
struct SendConfirmation {
    std::uint32_t stream_id = 0;
    std::uint32_t topic_id = 0;
    std::uint32_t partition_id = 0;
    /// The offset of the first message.
    std::uint64_t base_offset = 0;
};

namespace detail {

inline std::vector<SendConfirmation> confirmations(Reply& reply) {
    return Value(iggy_reply_value(reply.get())).list([](Value each) {
        return SendConfirmation{each["stream_id"].u32(), each["topic_id"].u32(), each["partition_id"].u32(),
                                each["base_offset"].u64()};
    });
}

template <typename T>
void drop(void* user) noexcept {
    delete static_cast<T*>(user);
}

/// A partitioner for the C library, which takes it.
inline IggyPartitioner partitioner(const Partitioner& choose) {
    if (!choose) return {nullptr, nullptr, nullptr};
    const auto call = [](void* user, IggyText stream, IggyText topic, const IggyMessageList* messages,
                         std::uint32_t* partition_id, char* reason) noexcept {
        const char* why = "it threw something that is no std::exception";
        try {
            const auto& choose = *static_cast<const Partitioner*>(user);
            *partition_id = choose(text_of(stream), text_of(topic), MessageList(messages));
            return true;
        } catch (const std::exception& thrown) {
            std::snprintf(reason, IGGY_REASON_SIZE, "%s", thrown.what());
            return false;
        } catch (...) {
            std::snprintf(reason, IGGY_REASON_SIZE, "%s", why);
            return false;
        }
    };
    return {call, drop<Partitioner>, new Partitioner(choose)};
}

using Listener = std::function<void(const Error&)>;

/// A listener for the C library, which takes it.
inline IggyErrorListener listener(const Listener& hear) {
    if (!hear) return {nullptr, nullptr, nullptr};
    const auto call = [](void* user, IggyFailure* raw) noexcept {
        const Handle<IggyFailure, iggy_failure_free> failure(raw);
        try {
            std::rethrow_exception(error_of(failure.get()));
        } catch (const Error& error) {
            try {
                (*static_cast<const Listener*>(user))(error);
            } catch (...) {
                // There is nobody to tell, and it must not reach the client.
            }
        }
    };
    return {call, drop<Listener>, new Listener(hear)};
}

}  // namespace detail

/// Sends messages to one topic. It may be used from many threads at once.
class Producer {
public:
    /// Takes one of the C library.
    Producer(IggyProducer* producer, Id stream, Id topic)
        : producer_(producer), stream_(std::move(stream)), topic_(std::move(topic)) {}

    /// Creates what is missing, unless told otherwise. Must succeed before the first send.
    Op<void> init() const {
        return Op<void>::begin(detail::nothing, [&](IggyDone done, void* user) {
            return iggy_producer_init(producer_.get(), done, user);
        });
    }

    /// Sends messages, in order per partition, and says where they are; nothing when sent in the background. They are
    /// copied before this returns. The outcome of its error says whether anything was stored.
    Op<std::vector<SendConfirmation>> send(std::span<const Message> messages) const { return send_by(messages, ""); }
    Op<std::vector<SendConfirmation>> send(std::initializer_list<Message> messages) const {
        return send(std::span(messages.begin(), messages.size()));
    }

    /// Sends one message.
    Op<std::vector<SendConfirmation>> send_one(const Message& message) const { return send(std::span(&message, 1)); }

    /// Sends by another partitioning than the producer's.
    Op<std::vector<SendConfirmation>> send_with_partitioning(std::span<const Message> messages,
                                                             const Partitioning& partitioning) const {
        return send_by(messages, partitioning.json());
    }

    /// Sends to another topic, by the producer's partitioning or another.
    Op<std::vector<SendConfirmation>> send_to(const Id& stream, const Id& topic, std::span<const Message> messages,
                                              const std::optional<Partitioning>& partitioning = {}) const {
        auto outgoing = detail::outgoing(messages);
        const std::string how = partitioning ? partitioning->json() : std::string();
        return Op<std::vector<SendConfirmation>>::begin(detail::confirmations, [&](IggyDone done, void* user) {
            return iggy_producer_send_to(producer_.get(), stream.raw(), topic.raw(), outgoing.release(),
                                         detail::text_of(std::string_view(how)), done, user);
        });
    }

    /// Sends what is buffered and waits for it, within a deadline. May be called again.
    Op<void> shutdown() const {
        return Op<void>::begin(detail::nothing, [&](IggyDone done, void* user) {
            return iggy_producer_shutdown(producer_.get(), done, user);
        });
    }

    /// Where it sends to.
    [[nodiscard]] const Id& stream() const noexcept { return stream_; }
    [[nodiscard]] const Id& topic() const noexcept { return topic_; }

private:
    Op<std::vector<SendConfirmation>> send_by(std::span<const Message> messages, std::string_view how) const {
        auto outgoing = detail::outgoing(messages);
        return Op<std::vector<SendConfirmation>>::begin(detail::confirmations, [&](IggyDone done, void* user) {
            return iggy_producer_send(producer_.get(), outgoing.release(), detail::text_of(how), done, user);
        });
    }

    detail::Handle<IggyProducer, iggy_producer_free> producer_;
    Id stream_;
    Id topic_;
};

}  // namespace iggy
