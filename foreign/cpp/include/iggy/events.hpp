/// @file
/// What happens to a client, a reader or a consumer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <iggy/detail/value.hpp>
#include <iggy/op.hpp>

namespace iggy {

/// Something that happened to a client: `connected`, `disconnected`, `signed_in`, `signed_out` or `shutdown`.
struct ClientEvent {
    std::string event;

    static ClientEvent read(detail::Value value) { return {value["event"].text()}; }
};

/// Something that happened to a reader or consumer: `assigned`, `revoked`, `membership_lost`, `stopped`, `sought`,
/// `read_uncertain`, `commit_failed` or `closed`.
struct ReaderEvent {
    std::string event;
    /// The partition it concerns.
    std::optional<std::uint32_t> partition_id;
    /// The partitions it concerns.
    std::vector<std::uint32_t> partitions;
    /// Of an assignment.
    std::uint64_t generation = 0;
    /// The code on the wire of what went wrong; 0 when nothing did.
    std::uint32_t code = 0;
    /// Its name.
    std::string name;

    static ReaderEvent read(detail::Value value) {
        return {
            value["event"].text(),
            value["partition_id"].optional([](detail::Value id) { return id.u32(); }),
            value["partitions"].numbers(),
            value["generation"].u64(),
            value["code"].u32(),
            value["name"].text(),
        };
    }
};

/// A subscription to what happens. One that falls 64 events behind loses the oldest.
template <typename Event>
class Events {
public:
    /// Takes one of the C library.
    explicit Events(IggyEvents* events) noexcept : events_(events) {}

    /// The next event; none when nothing can happen any more, or it was closed. Giving it up loses nothing.
    Op<std::optional<Event>> next() const {
        return Op<std::optional<Event>>::begin(convert, [&](IggyDone done, void* user) {
            return iggy_events_next(events_.get(), done, user);
        });
    }

    /// Ends the wait for the next event, and all later ones.
    void close() const noexcept { iggy_events_close(events_.get()); }

private:
    static std::optional<Event> convert(detail::Reply& reply) {
        const detail::Value value(iggy_reply_value(reply.get()));
        return value.optional([](detail::Value event) { return Event::read(event); });
    }

    detail::Handle<IggyEvents, iggy_events_free> events_;
};

}  // namespace iggy
