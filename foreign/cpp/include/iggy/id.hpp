/// @file
/// How streams, topics, groups and users are named, and who reads.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <iggy/detail/json.hpp>
#include <iggy/errors.hpp>

namespace iggy {

/// A stream, topic, group or user: its number, or its name of 1 to 255 bytes.
class Id {
public:
    /// By number. @throws InvalidInputError It is outside 0..=4294967295.
    template <std::integral T>
        requires(!std::same_as<T, bool>)
    Id(T number) {
        if (!std::in_range<std::uint32_t>(number)) {
            detail::refuse("a number of something is 0..=4294967295, not " + std::to_string(number));
        }
        number_ = static_cast<std::uint32_t>(number);
    }
    /// By name.
    Id(std::string name) : name_(std::move(name)) {}
    Id(std::string_view name) : name_(name) {}
    Id(const char* name) : name_(name) {}

    /// For the C library; it lives as long as this.
    [[nodiscard]] IggyId raw() const noexcept {
        if (!name_) return {{nullptr, 0}, number_};
        return {detail::text_of(std::string_view(*name_)), 0};
    }

    [[nodiscard]] std::string json() const { return name_ ? detail::quoted(*name_) : std::to_string(number_); }

    /// The name, or the number as text.
    [[nodiscard]] std::string text() const { return name_ ? *name_ : std::to_string(number_); }

    bool operator==(const Id&) const = default;

private:
    std::optional<std::string> name_;
    std::uint32_t number_ = 0;
};

/// Who reads; a bare name or number is a consumer of its own.
class ConsumerId {
public:
    template <typename T>
        requires std::constructible_from<Id, T> && (!std::same_as<std::remove_cvref_t<T>, ConsumerId>)
    ConsumerId(T&& id) : id_(std::forward<T>(id)) {}

    /// A consumer of its own.
    static ConsumerId consumer(Id id) { return {IGGY_CONSUMER_ALONE, std::move(id)}; }
    /// A consumer group.
    static ConsumerId group(Id id) { return {IGGY_CONSUMER_GROUP, std::move(id)}; }
    /// A consumer whose offsets something else keeps.
    static ConsumerId external(Id id) { return {IGGY_CONSUMER_EXTERNAL, std::move(id)}; }

    /// Its name or number.
    [[nodiscard]] const Id& id() const noexcept { return id_; }
    /// Whether it is a consumer group.
    [[nodiscard]] bool is_group() const noexcept { return kind_ == IGGY_CONSUMER_GROUP; }

    [[nodiscard]] IggyConsumerId raw() const noexcept { return {kind_, id_.raw()}; }
    [[nodiscard]] std::string json() const {
        static constexpr const char* names[] = {"consumer", "group", "external"};
        return detail::Object().set("id", id_).set("kind", names[kind_]).json();
    }

    bool operator==(const ConsumerId&) const = default;

private:
    ConsumerId(std::uint8_t kind, Id id) : kind_(kind), id_(std::move(id)) {}

    std::uint8_t kind_ = IGGY_CONSUMER_ALONE;
    Id id_;
};

/// A setting of a resource by its name in the catalogue of the server, which also takes text: `"1 day"`, `"10 MiB"`.
/// Numbers are microseconds and bytes.
class Setting {
public:
    template <typename T>
        requires(std::integral<T> || std::constructible_from<std::string_view, T>)
    Setting(const T& value) {
        if constexpr (std::integral<T>) {
            json_ = detail::json(value);
        } else {
            json_ = detail::quoted(std::string_view(value));
        }
    }

    [[nodiscard]] const std::string& json() const noexcept { return json_; }

private:
    std::string json_;
};

/// Settings by name.
using Settings = std::map<std::string, Setting>;

}  // namespace iggy
