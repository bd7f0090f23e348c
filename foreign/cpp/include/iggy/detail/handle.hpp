/// @file
/// Objects of the C library, owned.
#pragma once

#include <memory>
#include <string_view>

#include <iggy/iggy.h>

namespace iggy::detail {

template <auto Free>
struct Freeing {
    template <typename T>
    void operator()(T* object) const noexcept {
        Free(object);
    }
};

/// An object of the C library; frees it.
template <typename T, auto Free>
using Handle = std::unique_ptr<T, Freeing<Free>>;

inline std::string_view text_of(IggyText text) noexcept {
    return text.length == 0 ? std::string_view() : std::string_view(text.data, text.length);
}

inline IggyText text_of(std::string_view text) noexcept { return {text.data(), text.size()}; }

}  // namespace iggy::detail
