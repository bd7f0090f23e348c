/// @file
/// A coroutine for programs that bring none of their own.
#pragma once

#include <coroutine>
#include <exception>
#include <future>
#include <utility>

namespace iggy {

/// A coroutine that begins at once and whose end may be waited for. It runs on even when nobody waits.
///
/// After its first `co_await` of a call it runs on a thread of the client: nothing may block there.
template <typename T = void>
class Task {
    struct Promise;

public:
    /// Waits for the end; throws what the coroutine threw.
    T get() { return future_.get(); }
    /// The end as a future.
    std::future<T> future() && { return std::move(future_); }

    using promise_type = Promise;

private:
    explicit Task(std::future<T> future) : future_(std::move(future)) {}

    struct Common {
        std::promise<T> promise;

        Task get_return_object() { return Task(promise.get_future()); }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_never final_suspend() noexcept { return {}; }
        void unhandled_exception() { promise.set_exception(std::current_exception()); }
    };

    std::future<T> future_;
};

template <typename T>
struct Task<T>::Promise : Task<T>::Common {
    void return_value(T value) { this->promise.set_value(std::move(value)); }
};

template <>
struct Task<void>::Promise : Task<void>::Common {
    void return_void() { this->promise.set_value(); }
};

}  // namespace iggy
