/// @file
/// Results, looked into.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <iggy/detail/handle.hpp>

namespace iggy::detail {

/// A value that lives as long as its reply.
class Value {
public:
    explicit Value(const IggyValue* value) noexcept : value_(value) {}

    [[nodiscard]] bool is_null() const noexcept { return iggy_value_kind(value_) == IGGY_VALUE_KIND_NULL; }
    Value operator[](std::string_view name) const noexcept { return Value(iggy_value_get(value_, text_of(name))); }
    [[nodiscard]] std::size_t size() const noexcept { return iggy_value_length(value_); }
    [[nodiscard]] Value at(std::size_t index) const noexcept { return Value(iggy_value_at(value_, index)); }
    [[nodiscard]] std::string name_at(std::size_t index) const {
        return std::string(text_of(iggy_value_name_at(value_, index)));
    }

    [[nodiscard]] bool truth() const noexcept { return iggy_value_bool(value_); }
    [[nodiscard]] std::uint64_t u64() const noexcept { return iggy_value_unsigned(value_); }
    [[nodiscard]] std::uint32_t u32() const noexcept { return static_cast<std::uint32_t>(u64()); }
    [[nodiscard]] double number() const noexcept { return iggy_value_float(value_); }
    [[nodiscard]] std::string text() const { return std::string(text_of(iggy_value_text(value_))); }
    /// As JSON.
    [[nodiscard]] std::string json() const {
        const Handle<char, iggy_json_free> text(iggy_value_json(value_));
        return text ? std::string(text.get()) : std::string("null");
    }

    template <typename F>
    auto optional(F&& read) const -> std::optional<decltype(read(*this))> {
        if (is_null()) return std::nullopt;
        return read(*this);
    }

    template <typename F>
    auto list(F&& read) const -> std::vector<decltype(read(*this))> {
        std::vector<decltype(read(*this))> out;
        const std::size_t count = size();
        out.reserve(count);
        for (std::size_t index = 0; index < count; ++index) out.push_back(read(at(index)));
        return out;
    }

    [[nodiscard]] std::vector<std::uint32_t> numbers() const {
        return list([](Value each) { return each.u32(); });
    }

    [[nodiscard]] std::vector<std::string> texts() const {
        return list([](Value each) { return each.text(); });
    }

    [[nodiscard]] std::map<std::string, std::string> strings() const {
        std::map<std::string, std::string> out;
        for (std::size_t index = 0; index < size(); ++index) out.emplace(name_at(index), at(index).text());
        return out;
    }

private:
    const IggyValue* value_;
};

}  // namespace iggy::detail
