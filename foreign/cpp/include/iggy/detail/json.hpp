/// @file
/// Arguments as JSON, written; nothing here reads any.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace iggy::detail {

inline std::string quoted(std::string_view text) {
    static constexpr char hexadecimal[] = "0123456789abcdef";
    std::string out = "\"";
    for (const char letter : text) {
        const auto code = static_cast<unsigned char>(letter);
        if (letter == '"' || letter == '\\') {
            out += '\\';
            out += letter;
        } else if (code < 0x20) {
            out += "\\u00";
            out += hexadecimal[code >> 4];
            out += hexadecimal[code & 15];
        } else {
            out += letter;
        }
    }
    return out += '"';
}

inline std::string base64(std::span<const std::byte> bytes) {
    static constexpr char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    for (std::size_t at = 0; at < bytes.size(); at += 3) {
        const std::size_t left = bytes.size() - at;
        std::uint32_t group = 0;
        for (std::size_t index = 0; index < 3; ++index) {
            group = group << 8 | (index < left ? std::to_integer<std::uint32_t>(bytes[at + index]) : 0);
        }
        out += letters[group >> 18];
        out += letters[group >> 12 & 63];
        out += left > 1 ? letters[group >> 6 & 63] : '=';
        out += left > 2 ? letters[group & 63] : '=';
    }
    return out;
}

/// The bytes of what the client wrote as base64.
inline std::vector<std::byte> from_base64(std::string_view text) {
    const auto value = [](char letter) -> std::uint32_t {
        if (letter >= 'A' && letter <= 'Z') return static_cast<std::uint32_t>(letter - 'A');
        if (letter >= 'a' && letter <= 'z') return static_cast<std::uint32_t>(letter - 'a' + 26);
        if (letter >= '0' && letter <= '9') return static_cast<std::uint32_t>(letter - '0' + 52);
        return letter == '+' ? 62 : 63;
    };
    while (!text.empty() && text.back() == '=') text.remove_suffix(1);
    std::vector<std::byte> out;
    out.reserve(text.size() / 4 * 3 + 2);
    std::uint32_t group = 0;
    int bits = 0;
    for (const char letter : text) {
        group = group << 6 | value(letter);
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            out.push_back(static_cast<std::byte>(group >> bits & 0xff));
        }
    }
    return out;
}

// One overload for each kind of argument. Types of the package have `json()`.

template <typename T>
concept Shown = requires(const T& value) {
    { value.json() } -> std::convertible_to<std::string>;
};

inline std::string json(std::string_view text) { return detail::quoted(text); }
inline std::string json(const char* text) { return detail::quoted(text); }
inline std::string json(const std::string& text) { return detail::quoted(text); }
template <std::same_as<bool> T>
std::string json(T value) { return value ? "true" : "false"; }
template <std::integral T>
    requires(!std::same_as<T, bool>)
std::string json(T value) { return std::to_string(value); }
inline std::string json(std::chrono::microseconds time) { return std::to_string(time.count()); }
inline std::string json(std::span<const std::byte> bytes) { return detail::quoted(base64(bytes)); }
template <Shown T>
std::string json(const T& value) { return value.json(); }

template <typename T>
std::string json(const std::vector<T>& values) {
    std::string out = "[";
    for (const auto& value : values) {
        if (out.size() > 1) out += ',';
        out += json(value);
    }
    return out += ']';
}

template <typename K, typename V>
std::string json(const std::map<K, V>& members) {
    std::string out = "{";
    for (const auto& [name, value] : members) {
        if (out.size() > 1) out += ',';
        if constexpr (std::integral<K>) {
            out += detail::quoted(std::to_string(name));
        } else {
            out += detail::quoted(name);
        }
        out += ':';
        out += json(value);
    }
    return out += '}';
}

/// An object under construction.
class Object {
public:
    template <typename T>
    Object& set(std::string_view name, const T& value) {
        return set_raw(name, detail::json(value));
    }

    template <typename T>
    Object& set(std::string_view name, const std::optional<T>& value) {
        return value ? set(name, *value) : *this;
    }

    Object& set_raw(std::string_view name, std::string_view json) {
        if (text_.size() > 1) text_ += ',';
        text_ += detail::quoted(name);
        text_ += ':';
        text_ += json;
        return *this;
    }

    [[nodiscard]] std::string json() const { return text_ + '}'; }

private:
    std::string text_ = "{";
};

}  // namespace iggy::detail
