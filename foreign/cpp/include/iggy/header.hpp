/// @file
/// User headers: typed values by typed keys.
#pragma once

#include <bit>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <iggy/errors.hpp>

namespace iggy {

/// Whole numbers of 128 bits, which the compiler has and the standard has not.
__extension__ using Int128 = __int128;
__extension__ using Uint128 = unsigned __int128;

/// The kind of a header; values above 15 are of a later version and passed on.
enum class HeaderKind : std::uint8_t {
    raw = 1, string, boolean, int8, int16, int32, int64, int128, uint8, uint16, uint32, uint64, uint128, float32, float64,
};

/// A value of a header with its kind: 1 to 255 bytes. A wrong length is refused when it is put into headers.
class HeaderValue {
public:
    /// A value from the bytes of its kind, lowest first.
    HeaderValue(HeaderKind kind, std::span<const std::byte> bytes)
        : kind_(kind), bytes_(reinterpret_cast<const char*>(bytes.data()), bytes.size()) {}

    static HeaderValue raw(std::span<const std::byte> bytes) { return {HeaderKind::raw, bytes}; }
    static HeaderValue string(std::string_view text) { return {HeaderKind::string, std::as_bytes(std::span(text))}; }
    static HeaderValue boolean(bool value) { return of(HeaderKind::boolean, static_cast<std::uint8_t>(value)); }
    static HeaderValue int8(std::int8_t value) { return of(HeaderKind::int8, value); }
    static HeaderValue int16(std::int16_t value) { return of(HeaderKind::int16, value); }
    static HeaderValue int32(std::int32_t value) { return of(HeaderKind::int32, value); }
    static HeaderValue int64(std::int64_t value) { return of(HeaderKind::int64, value); }
    static HeaderValue int128(Int128 value) { return of(HeaderKind::int128, value); }
    static HeaderValue uint8(std::uint8_t value) { return of(HeaderKind::uint8, value); }
    static HeaderValue uint16(std::uint16_t value) { return of(HeaderKind::uint16, value); }
    static HeaderValue uint32(std::uint32_t value) { return of(HeaderKind::uint32, value); }
    static HeaderValue uint64(std::uint64_t value) { return of(HeaderKind::uint64, value); }
    static HeaderValue uint128(Uint128 value) { return of(HeaderKind::uint128, value); }
    static HeaderValue float32(float value) { return of(HeaderKind::float32, value); }
    static HeaderValue float64(double value) { return of(HeaderKind::float64, value); }

    [[nodiscard]] HeaderKind kind() const noexcept { return kind_; }
    /// The bytes of the value, lowest first.
    [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return std::as_bytes(std::span(bytes_)); }

    /// The value as what its kind is.
    /// @throws InvalidInputError It is of another kind.
    [[nodiscard]] std::string_view as_string() const {
        check(HeaderKind::string);
        return bytes_;
    }
    [[nodiscard]] bool as_boolean() const { return read<std::uint8_t>(HeaderKind::boolean) != 0; }
    [[nodiscard]] std::int8_t as_int8() const { return read<std::int8_t>(HeaderKind::int8); }
    [[nodiscard]] std::int16_t as_int16() const { return read<std::int16_t>(HeaderKind::int16); }
    [[nodiscard]] std::int32_t as_int32() const { return read<std::int32_t>(HeaderKind::int32); }
    [[nodiscard]] std::int64_t as_int64() const { return read<std::int64_t>(HeaderKind::int64); }
    [[nodiscard]] Int128 as_int128() const { return read<Int128>(HeaderKind::int128); }
    [[nodiscard]] std::uint8_t as_uint8() const { return read<std::uint8_t>(HeaderKind::uint8); }
    [[nodiscard]] std::uint16_t as_uint16() const { return read<std::uint16_t>(HeaderKind::uint16); }
    [[nodiscard]] std::uint32_t as_uint32() const { return read<std::uint32_t>(HeaderKind::uint32); }
    [[nodiscard]] std::uint64_t as_uint64() const { return read<std::uint64_t>(HeaderKind::uint64); }
    [[nodiscard]] Uint128 as_uint128() const { return read<Uint128>(HeaderKind::uint128); }
    [[nodiscard]] float as_float32() const { return read<float>(HeaderKind::float32); }
    [[nodiscard]] double as_float64() const { return read<double>(HeaderKind::float64); }

    [[nodiscard]] IggyTyped raw_value() const noexcept {
        return {static_cast<std::uint8_t>(kind_),
                {reinterpret_cast<const std::uint8_t*>(bytes_.data()), bytes_.size()}};
    }

    auto operator<=>(const HeaderValue&) const = default;

private:
    static_assert(std::endian::native == std::endian::little, "the bytes of a value are lowest first");

    template <typename T>
    static HeaderValue of(HeaderKind kind, T value) {
        return {kind, std::as_bytes(std::span(&value, 1))};
    }

    void check(HeaderKind kind) const {
        if (kind_ != kind) detail::refuse("this header is of another kind");
    }

    template <typename T>
    [[nodiscard]] T read(HeaderKind kind) const {
        check(kind);
        T value{};
        std::memcpy(&value, bytes_.data(), std::min(sizeof value, bytes_.size()));
        return value;
    }

    HeaderKind kind_;
    std::string bytes_;
};

/// Headers of a message: at most 100000 bytes encoded.
class Headers {
public:
    Headers() = default;
    /// By text keys.
    Headers(std::initializer_list<std::pair<std::string_view, HeaderValue>> headers) {
        for (const auto& [key, value] : headers) set(key, value);
    }

    /// Sets a header, in place of one with the same key.
    void set(std::string_view key, HeaderValue value) { set(HeaderValue::string(key), std::move(value)); }
    void set(HeaderValue key, HeaderValue value) { values_.insert_or_assign(std::move(key), std::move(value)); }

    /// A header by a text key, or none.
    [[nodiscard]] const HeaderValue* find(std::string_view key) const { return find(HeaderValue::string(key)); }
    [[nodiscard]] const HeaderValue* find(const HeaderValue& key) const {
        const auto found = values_.find(key);
        return found == values_.end() ? nullptr : &found->second;
    }

    [[nodiscard]] std::size_t size() const noexcept { return values_.size(); }
    [[nodiscard]] bool empty() const noexcept { return values_.empty(); }
    [[nodiscard]] auto begin() const noexcept { return values_.begin(); }
    [[nodiscard]] auto end() const noexcept { return values_.end(); }

    bool operator==(const Headers&) const = default;

    /// From the block of a message that was read.
    /// @throws InvalidInputError It is malformed.
    static Headers decode(IggyBytes block) {
        Headers out;
        if (block.length == 0) return out;
        detail::FailurePlace failure;
        const detail::Handle<IggyHeaders, iggy_headers_free> decoded(iggy_headers_decode(block, failure.place()));
        failure.raise();
        IggyTyped key{};
        IggyTyped value{};
        for (std::size_t index = 0; iggy_headers_at(decoded.get(), index, &key, &value); ++index) {
            out.set(owned(key), owned(value));
        }
        return out;
    }

    /// For the C library.
    /// @throws InvalidInputError A kind and its bytes do not fit.
    [[nodiscard]] detail::Handle<IggyHeaders, iggy_headers_free> raw() const {
        detail::Handle<IggyHeaders, iggy_headers_free> made(iggy_headers_new());
        for (const auto& [key, value] : values_) {
            detail::FailurePlace failure;
            iggy_headers_set(made.get(), key.raw_value(), value.raw_value(), failure.place());
            failure.raise();
        }
        return made;
    }

private:
    static HeaderValue owned(const IggyTyped& typed) {
        return {static_cast<HeaderKind>(typed.kind),
                std::as_bytes(std::span(typed.bytes.data, typed.bytes.length))};
    }

    std::map<HeaderValue, HeaderValue> values_;
};

}  // namespace iggy
