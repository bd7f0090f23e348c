/// @file
/// The partition reader, and the consumer.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <iterator>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include <iggy/events.hpp>
#include <iggy/message.hpp>
#include <iggy/op.hpp>

namespace iggy {

namespace detail {

/// Items of a blocking `next` for a range-based `for`, until there are none.
template <typename Next>
class Range {
    using Item = typename decltype(std::declval<Next&>()())::value_type;

public:
    explicit Range(Next next) : next_(std::move(next)) {}

    class Iterator {
    public:
        using value_type = Item;
        using difference_type = std::ptrdiff_t;

        Iterator() = default;
        explicit Iterator(Range* range) : range_(range) { ++*this; }

        Item& operator*() const noexcept { return *range_->item_; }
        Iterator& operator++() {
            range_->item_ = range_->next_();
            return *this;
        }
        void operator++(int) { ++*this; }
        bool operator==(std::default_sentinel_t /*end*/) const noexcept { return !range_->item_; }

    private:
        Range* range_ = nullptr;
    };

    Iterator begin() { return Iterator(this); }
    [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

private:
    Next next_;
    std::optional<Item> item_;
};

template <typename Object>
std::vector<std::uint32_t> numbers(std::size_t (*list)(const Object*, std::uint32_t*, std::size_t), const Object* object) {
    std::vector<std::uint32_t> out;
    std::size_t count = list(object, nullptr, 0);
    // There may be more of them by now.
    while (out.size() < count) {
        out.resize(count);
        count = list(object, out.data(), out.size());
    }
    out.resize(count);
    return out;
}

inline std::optional<PolledMessages> batch(Reply& reply) {
    Batch taken(iggy_reply_take_batch(reply.get()));
    if (!taken) return std::nullopt;
    return PolledMessages(std::move(taken));
}

inline PolledMessages polled(Reply& reply) { return PolledMessages(Batch(iggy_reply_take_batch(reply.get()))); }

inline std::optional<ReceivedMessage> received(Reply& reply) {
    Batch taken(iggy_reply_take_batch(reply.get()));
    if (!taken) return std::nullopt;
    return ReceivedMessage(std::move(taken));
}

}  // namespace detail

/// Reads many partitions of one topic in batches. An error of a read that names a partition concerns that partition
/// alone: read on.
class Reader {
public:
    /// Takes one of the C library.
    explicit Reader(IggyReader* reader) noexcept : reader_(reader) {}

    /// The next batch, all of one partition; waits until there is one. Giving it up loses and repeats nothing.
    Op<PolledMessages> next() const {
        return Op<PolledMessages>::begin(detail::polled, [&](IggyDone done, void* user) {
            return iggy_reader_next(reader_.get(), done, user);
        });
    }

    /// Batches for a range-based `for` on a thread that may block, without end: leave the loop, or let an error.
    auto batches() const {
        return detail::Range([this] { return std::optional(next().get()); });
    }

    /// Stores a position. One at or below the last stored, or of an older history, stores nothing.
    Op<void> commit(const Checkpoint& checkpoint) const {
        return Op<void>::begin(detail::nothing, [&](IggyDone done, void* user) {
            return iggy_reader_commit(reader_.get(), checkpoint.raw(), done, user);
        });
    }

    /// Notes that the application is done up to a position, for automatic commits after marks.
    void mark(const Checkpoint& checkpoint) const {
        detail::FailurePlace failure;
        iggy_reader_mark(reader_.get(), checkpoint.raw(), failure.place());
        failure.raise();
    }

    /// Goes on somewhere else in a partition; what was read ahead is dropped. Wakes a stopped partition.
    void seek(std::uint32_t partition_id, const ReadStart& to) const {
        detail::FailurePlace failure;
        iggy_reader_seek(reader_.get(), partition_id, to.raw(), failure.place());
        failure.raise();
    }

    /// Whether a position belongs to the ordering in which its partition is handed out now: neither a seek nor a new
    /// assignment came since.
    [[nodiscard]] bool is_current(const Checkpoint& checkpoint) const noexcept {
        return iggy_reader_is_current(reader_.get(), checkpoint.raw());
    }

    /// The partitions it reads, ascending.
    [[nodiscard]] std::vector<std::uint32_t> partitions() const {
        return detail::numbers(iggy_reader_partitions, reader_.get());
    }
    /// The partitions that wait for a seek, ascending.
    [[nodiscard]] std::vector<std::uint32_t> stopped() const {
        return detail::numbers(iggy_reader_stopped, reader_.get());
    }

    /// Subscribes to what happens from now on.
    [[nodiscard]] Events<ReaderEvent> subscribe_events() const {
        detail::FailurePlace failure;
        Events<ReaderEvent> events(iggy_reader_subscribe_events(reader_.get(), failure.place()));
        failure.raise();
        return events;
    }

    /// Ends the reads and stores what automatic commits still owe, within a deadline. May be called again.
    Op<void> close() const {
        return Op<void>::begin(detail::nothing, [&](IggyDone done, void* user) {
            return iggy_reader_close(reader_.get(), done, user);
        });
    }

private:
    detail::Handle<IggyReader, iggy_reader_free> reader_;
};

/// Reads message by message: named partitions, or those a group assigns to this member. Calls that read wait for each
/// other; commits and seeks wait for nobody.
class Consumer {
public:
    /// Takes one of the C library.
    Consumer(IggyConsumer* consumer, ConsumerId id, Id stream, Id topic)
        : consumer_(consumer), id_(std::move(id)), stream_(std::move(stream)), topic_(std::move(topic)) {}

    /// Joins the group, or looks the partitions up. Must succeed before anything else.
    Op<void> init() const {
        return Op<void>::begin(detail::nothing, [&](IggyDone done, void* user) {
            return iggy_consumer_init(consumer_.get(), done, user);
        });
    }

    /// The next message; none once the consumer was shut down, or every named partition stopped. Giving it up loses and
    /// repeats nothing.
    Op<std::optional<ReceivedMessage>> next() const {
        return Op<std::optional<ReceivedMessage>>::begin(detail::received, [&](IggyDone done, void* user) {
            return iggy_consumer_next(consumer_.get(), done, user);
        });
    }

    /// The next messages of one partition at once.
    Op<std::optional<PolledMessages>> next_batch() const {
        return Op<std::optional<PolledMessages>>::begin(detail::batch, [&](IggyDone done, void* user) {
            return iggy_consumer_next_batch(consumer_.get(), done, user);
        });
    }

    /// Messages for a range-based `for` on a thread that may block, until the consumer is shut down.
    auto messages() const {
        return detail::Range([this] { return next().get(); });
    }

    /// Batches for a range-based `for` on a thread that may block, until the consumer is shut down.
    auto batches() const {
        return detail::Range([this] { return next_batch().get(); });
    }

    /// Calls `handle` with each message, on this thread, until `stop` is asked for or the consumer is shut down. Errors
    /// of single partitions are passed over.
    /// @throws Error One that concerns the whole consumer. What `handle` throws goes through; its message is read again.
    template <std::invocable<const ReceivedMessage&> Handle>
    void consume_messages(Handle&& handle, const std::stop_token& stop = {}) const {
        while (!stop.stop_requested()) {
            auto next = this->next();
            const std::stop_callback cancel(stop, [&next]() noexcept { next.cancel(); });
            std::optional<ReceivedMessage> received;
            try {
                received = next.get();
            } catch (const CancelledCallError&) {
                return;
            } catch (const Error& error) {
                if (!error.partition_id() && !error.retryable()) throw;
                continue;
            }
            if (!received) return;
            try {
                handle(std::as_const(*received));
            } catch (...) {
                seek(received->partition_id(), PollingStrategy::offset(received->message().offset()));
                throw;
            }
        }
    }

    /// Stores a position. One at or below the last stored, or of an earlier assignment, stores nothing.
    Op<void> commit(const Checkpoint& checkpoint) const {
        return Op<void>::begin(detail::nothing, [&](IggyDone done, void* user) {
            return iggy_consumer_commit(consumer_.get(), checkpoint.raw(), done, user);
        });
    }

    /// Notes that the application is done up to a position, for automatic commits after marks.
    void mark(const Checkpoint& checkpoint) const {
        detail::FailurePlace failure;
        iggy_consumer_mark(consumer_.get(), checkpoint.raw(), failure.place());
        failure.raise();
    }

    /// Stores an offset, whatever was read.
    Op<void> store_offset(std::uint32_t partition_id, std::uint64_t offset) const {
        return Op<void>::begin(detail::nothing, [&](IggyDone done, void* user) {
            return iggy_consumer_store_offset(consumer_.get(), partition_id, offset, done, user);
        });
    }

    /// Forgets the stored offset of a partition.
    Op<void> delete_offset(std::uint32_t partition_id) const {
        return Op<void>::begin(detail::nothing, [&](IggyDone done, void* user) {
            return iggy_consumer_delete_offset(consumer_.get(), partition_id, done, user);
        });
    }

    /// Goes on somewhere else in a partition; what was read ahead is dropped. Wakes a stopped partition.
    void seek(std::uint32_t partition_id, const ReadStart& to) const {
        detail::FailurePlace failure;
        iggy_consumer_seek(consumer_.get(), partition_id, to.raw(), failure.place());
        failure.raise();
    }

    /// Whether a position belongs to the ordering in which its partition is handed out now: neither a seek nor a new
    /// assignment came since.
    [[nodiscard]] bool is_current(const Checkpoint& checkpoint) const noexcept {
        return iggy_consumer_is_current(consumer_.get(), checkpoint.raw());
    }

    /// The partitions it reads now, ascending.
    [[nodiscard]] std::vector<std::uint32_t> partitions() const {
        return detail::numbers(iggy_consumer_partitions, consumer_.get());
    }
    /// The partitions that wait for a seek, ascending.
    [[nodiscard]] std::vector<std::uint32_t> stopped() const {
        return detail::numbers(iggy_consumer_stopped, consumer_.get());
    }
    /// The partition of the message handed out last.
    [[nodiscard]] std::optional<std::uint32_t> partition_id() const noexcept {
        const std::int64_t found = iggy_consumer_partition_id(consumer_.get());
        if (found < 0) return std::nullopt;
        return static_cast<std::uint32_t>(found);
    }
    /// The offset of the last message of a partition that was handed out.
    [[nodiscard]] std::optional<std::uint64_t> last_consumed_offset(std::uint32_t partition_id) const noexcept {
        std::uint64_t offset = 0;
        if (!iggy_consumer_last_consumed_offset(consumer_.get(), partition_id, &offset)) return std::nullopt;
        return offset;
    }
    /// The last offset of a partition that this consumer stored.
    [[nodiscard]] std::optional<std::uint64_t> last_stored_offset(std::uint32_t partition_id) const noexcept {
        std::uint64_t offset = 0;
        if (!iggy_consumer_last_stored_offset(consumer_.get(), partition_id, &offset)) return std::nullopt;
        return offset;
    }

    /// Its name.
    [[nodiscard]] const Id& name() const noexcept { return id_.id(); }
    /// Who it is.
    [[nodiscard]] const ConsumerId& consumer() const noexcept { return id_; }
    /// Whether it is a member of a group.
    [[nodiscard]] bool is_group_member() const noexcept { return id_.is_group(); }
    /// What it reads.
    [[nodiscard]] const Id& stream() const noexcept { return stream_; }
    [[nodiscard]] const Id& topic() const noexcept { return topic_; }

    /// Subscribes to what happens from now on. Only after @ref init.
    [[nodiscard]] Events<ReaderEvent> subscribe_events() const {
        detail::FailurePlace failure;
        Events<ReaderEvent> events(iggy_consumer_subscribe_events(consumer_.get(), failure.place()));
        failure.raise();
        return events;
    }

    /// Ends the reads, stores what automatic commits still owe, leaves the group. May be called again.
    Op<void> shutdown() const {
        return Op<void>::begin(detail::nothing, [&](IggyDone done, void* user) {
            return iggy_consumer_shutdown(consumer_.get(), done, user);
        });
    }

private:
    detail::Handle<IggyConsumer, iggy_consumer_free> consumer_;
    ConsumerId id_;
    Id stream_;
    Id topic_;
};

}  // namespace iggy
