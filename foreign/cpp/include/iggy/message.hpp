/// @file
/// Messages to send, messages that came, and positions among them.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <iggy/header.hpp>
#include <iggy/options.hpp>

namespace iggy {

/// The id of a message, of 128 bits. The client makes one when it is 0.
struct MessageId {
    std::uint64_t low = 0;
    std::uint64_t high = 0;

    auto operator<=>(const MessageId&) const = default;
};

/// A message to send. Its payload of 1 to 64000000 bytes is copied once, when a call that sends it begins.
class Message {
public:
    /// Of bytes that live until the message is sent.
    Message(std::span<const std::byte> payload) : view_(payload) {}
    Message(std::string_view payload) : view_(std::as_bytes(std::span(payload))) {}
    Message(const char* payload) : Message(std::string_view(payload)) {}
    Message(const std::string& payload) : Message(std::string_view(payload)) {}
    /// Of bytes that it keeps.
    Message(std::string&& payload)
        : owned_(std::make_shared<const std::string>(std::move(payload))),
          view_(std::as_bytes(std::span(*owned_))) {}

    /// Sets the id; 0, the default, is replaced when it is sent.
    Message& id(MessageId id) & { return id_ = id, *this; }
    Message&& id(MessageId id) && { return id_ = id, std::move(*this); }
    /// Sets the headers.
    Message& headers(Headers headers) & { return headers_ = std::move(headers), *this; }
    Message&& headers(Headers headers) && { return headers_ = std::move(headers), std::move(*this); }
    /// Sets when it was made, in microseconds since the Unix epoch. Default when it is sent.
    Message& origin_timestamp(std::uint64_t micros) & { return origin_timestamp_ = micros, *this; }
    Message&& origin_timestamp(std::uint64_t micros) && { return origin_timestamp_ = micros, std::move(*this); }

    [[nodiscard]] std::span<const std::byte> payload() const noexcept { return view_; }
    [[nodiscard]] MessageId id() const noexcept { return id_; }
    [[nodiscard]] const Headers& headers() const noexcept { return headers_; }

    /// Adds it to messages of the C library.
    /// @throws InvalidInputError It breaks a limit.
    void add_to(IggyMessages* messages) const {
        detail::Handle<IggyHeaders, iggy_headers_free> headers;
        if (!headers_.empty()) headers = headers_.raw();
        const IggyNewMessage raw{
            {reinterpret_cast<const std::uint8_t*>(view_.data()), view_.size()},
            id_.low,
            id_.high,
            origin_timestamp_,
            headers.get(),
            {nullptr, 0},
        };
        detail::FailurePlace failure;
        iggy_messages_add(messages, &raw, failure.place());
        failure.raise();
    }

private:
    std::shared_ptr<const std::string> owned_;
    std::span<const std::byte> view_;
    MessageId id_;
    std::uint64_t origin_timestamp_ = 0;
    Headers headers_;
};

/// A message that was read. It lives as long as what it was asked of.
class MessageView {
public:
    explicit MessageView(const IggyMessageView& raw) noexcept : raw_(raw) {}

    [[nodiscard]] std::span<const std::byte> payload() const noexcept {
        return std::as_bytes(std::span(raw_.payload.data, raw_.payload.length));
    }
    /// The payload as text, unchecked.
    [[nodiscard]] std::string_view text() const noexcept {
        return {reinterpret_cast<const char*>(raw_.payload.data), raw_.payload.length};
    }
    [[nodiscard]] MessageId id() const noexcept { return {raw_.id_low, raw_.id_high}; }
    /// Its place in its partition.
    [[nodiscard]] std::uint64_t offset() const noexcept { return raw_.offset; }
    /// When the server took it: microseconds since the Unix epoch.
    [[nodiscard]] std::uint64_t timestamp() const noexcept { return raw_.timestamp; }
    /// When the sender made it: microseconds since the Unix epoch.
    [[nodiscard]] std::uint64_t origin_timestamp() const noexcept { return raw_.origin_timestamp; }
    [[nodiscard]] std::uint64_t checksum() const noexcept { return raw_.checksum; }
    /// Its headers, decoded now. @throws InvalidInputError What came is malformed.
    [[nodiscard]] Headers headers() const { return Headers::decode(raw_.headers_block); }

private:
    IggyMessageView raw_;
};

/// The messages of a send, as a partitioner sees them.
class MessageList {
public:
    explicit MessageList(const IggyMessageList* list) noexcept : list_(list) {}

    [[nodiscard]] std::size_t size() const noexcept { return iggy_message_list_count(list_); }
    /// By its place, which must be below the size.
    MessageView operator[](std::size_t index) const noexcept {
        IggyMessageView raw{};
        iggy_message_list_view(list_, index, &raw);
        return MessageView(raw);
    }

private:
    const IggyMessageList* list_;
};

/// Where the next read of a partition starts, in the history that was read.
class Continuation {
public:
    explicit Continuation(const IggyStart& raw) noexcept : raw_(raw) {}

    [[nodiscard]] std::uint32_t partition_id() const noexcept { return raw_.partition_id; }
    /// The offset it starts at, when it starts at one.
    [[nodiscard]] std::optional<std::uint64_t> offset() const noexcept {
        if (raw_.kind != IGGY_START_OFFSET) return std::nullopt;
        return raw_.value;
    }
    [[nodiscard]] const IggyStart& raw() const noexcept { return raw_; }

    bool operator==(const Continuation& other) const noexcept {
        return raw_.kind == other.raw_.kind && raw_.value == other.raw_.value &&
               raw_.partition_id == other.raw_.partition_id && raw_.has_history == other.raw_.has_history &&
               raw_.incarnation == other.raw_.incarnation && raw_.owner_generation == other.raw_.owner_generation;
    }

private:
    IggyStart raw_;
};

/// Where a read starts: by strategy, or where another read ended.
class ReadStart {
public:
    ReadStart(const PollingStrategy& strategy) noexcept : raw_(strategy.raw()) {}
    ReadStart(const Continuation& continuation) noexcept : raw_(continuation.raw()) {}

    [[nodiscard]] const IggyStart& raw() const noexcept { return raw_; }

private:
    IggyStart raw_;
};

/// A position to commit: every message up to its offset was processed.
class Checkpoint {
public:
    /// From its parts, as an application kept them.
    Checkpoint(std::uint32_t partition_id, std::uint64_t offset, std::uint64_t incarnation,
               std::uint64_t owner_generation = 0)
        : Checkpoint(iggy_checkpoint_new(partition_id, offset, incarnation, owner_generation)) {}
    /// Takes one of the C library.
    explicit Checkpoint(IggyCheckpoint* checkpoint) : held_(checkpoint, iggy_checkpoint_free) {
        iggy_checkpoint_view(checkpoint, &view_);
    }

    [[nodiscard]] std::uint32_t partition_id() const noexcept { return view_.partition_id; }
    [[nodiscard]] std::uint64_t offset() const noexcept { return view_.offset; }
    /// The history it belongs to: a partition that was deleted and made again has another.
    [[nodiscard]] std::uint64_t incarnation() const noexcept { return view_.incarnation; }
    /// The ownership within its group; 0 for none.
    [[nodiscard]] std::uint64_t owner_generation() const noexcept { return view_.owner_generation; }
    /// The same position at another message of the same read.
    [[nodiscard]] Checkpoint at(std::uint64_t offset) const { return Checkpoint(iggy_checkpoint_at(raw(), offset)); }
    /// Where a read goes on after it.
    [[nodiscard]] Continuation continuation() const noexcept {
        IggyStart start{};
        iggy_checkpoint_continuation(raw(), &start);
        return Continuation(start);
    }
    [[nodiscard]] const IggyCheckpoint* raw() const noexcept { return held_.get(); }

    bool operator==(const Checkpoint& other) const noexcept {
        return partition_id() == other.partition_id() && offset() == other.offset() &&
               incarnation() == other.incarnation() && owner_generation() == other.owner_generation();
    }

private:
    // Positions are never changed, so copies share one.
    std::shared_ptr<IggyCheckpoint> held_;
    IggyCheckpointView view_{};
};

namespace detail {

using Batch = Handle<IggyBatch, iggy_batch_free>;
using Outgoing = Handle<IggyMessages, iggy_messages_free>;

inline Outgoing outgoing(std::span<const Message> messages) {
    Outgoing made(iggy_messages_new(messages.size()));
    for (const Message& message : messages) message.add_to(made.get());
    return made;
}

}  // namespace detail

/// What one read returned: messages of one partition, in order. Its messages live as long as this does.
class PolledMessages {
public:
    /// Takes one of the C library.
    explicit PolledMessages(detail::Batch batch) noexcept : batch_(std::move(batch)) {}

    /// Goes over the messages.
    class Iterator {
    public:
        using value_type = MessageView;
        using difference_type = std::ptrdiff_t;

        Iterator() = default;
        Iterator(const PolledMessages* batch, std::size_t index) noexcept : batch_(batch), index_(index) {}

        MessageView operator*() const noexcept { return (*batch_)[index_]; }
        Iterator& operator++() noexcept { return ++index_, *this; }
        Iterator operator++(int) noexcept { return {batch_, index_++}; }
        bool operator==(const Iterator& other) const noexcept { return index_ == other.index_; }

    private:
        const PolledMessages* batch_ = nullptr;
        std::size_t index_ = 0;
    };

    [[nodiscard]] std::size_t size() const noexcept { return iggy_batch_count(batch_.get()); }
    [[nodiscard]] bool empty() const noexcept { return size() == 0; }
    /// By its place, which must be below the size.
    MessageView operator[](std::size_t index) const noexcept {
        IggyMessageView raw{};
        iggy_batch_view(batch_.get(), index, &raw);
        return MessageView(raw);
    }
    [[nodiscard]] Iterator begin() const noexcept { return {this, 0}; }
    [[nodiscard]] Iterator end() const noexcept { return {this, size()}; }

    [[nodiscard]] std::uint32_t partition_id() const noexcept { return iggy_batch_partition_id(batch_.get()); }
    /// The newest offset of the partition.
    [[nodiscard]] std::uint64_t current_offset() const noexcept { return iggy_batch_current_offset(batch_.get()); }
    /// The position after the last message; none when nothing came.
    [[nodiscard]] std::optional<Checkpoint> checkpoint() const {
        return empty() ? std::nullopt : checkpoint_at(size() - 1);
    }
    /// The position after the message of this place; none beyond the end.
    [[nodiscard]] std::optional<Checkpoint> checkpoint_at(std::size_t index) const {
        IggyCheckpoint* found = iggy_batch_checkpoint(batch_.get(), index);
        if (found == nullptr) return std::nullopt;
        return Checkpoint(found);
    }
    /// Where the next read of the partition starts.
    [[nodiscard]] Continuation continuation() const noexcept {
        IggyStart start{};
        iggy_batch_continuation(batch_.get(), &start);
        return Continuation(start);
    }

private:
    detail::Batch batch_;
};

/// A message as a consumer hands it out.
class ReceivedMessage {
public:
    /// Takes one of the C library.
    explicit ReceivedMessage(detail::Batch batch) noexcept : batch_(std::move(batch)) {}

    /// The message, which lives as long as this does.
    [[nodiscard]] MessageView message() const noexcept {
        IggyMessageView raw{};
        iggy_batch_view(batch_.get(), 0, &raw);
        return MessageView(raw);
    }
    [[nodiscard]] std::uint32_t partition_id() const noexcept { return iggy_batch_partition_id(batch_.get()); }
    /// The newest offset of the partition when it was read.
    [[nodiscard]] std::uint64_t current_offset() const noexcept { return iggy_batch_current_offset(batch_.get()); }
    /// The position after it.
    [[nodiscard]] Checkpoint checkpoint() const { return Checkpoint(iggy_batch_checkpoint(batch_.get(), 0)); }

private:
    detail::Batch batch_;
};

}  // namespace iggy
