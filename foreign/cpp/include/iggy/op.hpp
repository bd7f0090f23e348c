/// @file
/// Calls under way.
#pragma once

#include <chrono>
#include <condition_variable>
#include <coroutine>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>

#include <iggy/errors.hpp>

namespace iggy {
namespace detail {

/// What a call brought; read once.
class Reply {
public:
    explicit Reply(IggyReply* reply) noexcept : reply_(reply) {}
    [[nodiscard]] IggyReply* get() const noexcept { return reply_.get(); }

private:
    Handle<IggyReply, iggy_reply_free> reply_;
};

/// What a call and its caller share. It lives until the call has ended, however soon the caller gave it up.
class State {
public:
    using Then = std::function<void(State&)>;

    /// The function of the C library that is called once, with a `std::shared_ptr<State>` of its own.
    static void finish(void* user, IggyFailure* failure, IggyReply* reply) noexcept {
        const std::unique_ptr<std::shared_ptr<State>> held(static_cast<std::shared_ptr<State>*>(user));
        State& state = **held;
        std::coroutine_handle<> waiting;
        Then then;
        {
            const std::lock_guard lock(state.mutex_);
            state.failure_.reset(failure);
            state.reply_.reset(reply);
            state.done_ = true;
            if (state.abandoned_) state.reply_.reset();
            waiting = std::exchange(state.waiting_, nullptr);
            then = std::exchange(state.then_, nullptr);
        }
        state.ended_.notify_all();
        if (then) then(state);
        if (waiting) waiting.resume();
    }

    void started(IggyCall* call) noexcept {
        const std::lock_guard lock(mutex_);
        call_.reset(call);
    }

    void cancel() noexcept {
        const std::lock_guard lock(mutex_);
        iggy_call_cancel(call_.get());
    }

    /// The caller does not want it any more: what was read goes back, and no coroutine is resumed.
    void abandon() noexcept {
        Handle<IggyReply, iggy_reply_free> reply;
        const std::lock_guard lock(mutex_);
        abandoned_ = true;
        waiting_ = nullptr;
        reply = std::move(reply_);
        iggy_call_cancel(call_.get());
    }

    [[nodiscard]] bool ready() const noexcept {
        const std::lock_guard lock(mutex_);
        return done_;
    }

    void wait() {
        refuse_to_block();
        std::unique_lock lock(mutex_);
        ended_.wait(lock, [this] { return done_; });
    }

    bool wait_for(std::chrono::nanoseconds limit) {
        refuse_to_block();
        std::unique_lock lock(mutex_);
        return ended_.wait_for(lock, limit, [this] { return done_; });
    }

    /// Whether it has to wait: a call that has ended goes on at once.
    bool suspend(std::coroutine_handle<> waiting) {
        const std::lock_guard lock(mutex_);
        if (!done_) waiting_ = waiting;
        return !done_;
    }

    /// Runs `then` when the call has ended, at the latest now.
    void on_end(Then then) {
        {
            const std::lock_guard lock(mutex_);
            if (!done_) {
                then_ = std::move(then);
                return;
            }
        }
        then(*this);
    }

    /// The reply, accepted, or the error.
    Reply take() {
        Handle<IggyFailure, iggy_failure_free> failure;
        Handle<IggyReply, iggy_reply_free> reply;
        {
            const std::lock_guard lock(mutex_);
            failure = std::move(failure_);
            reply = std::move(reply_);
        }
        if (failure) std::rethrow_exception(error_of(failure.get()));
        if (!reply) refuse("the result of this call was taken already");
        iggy_reply_accept(reply.get());
        return Reply(reply.release());
    }

private:
    static void refuse_to_block() {
        if (iggy_on_client_thread()) {
            refuse("a blocking call was made on a thread of the client; use co_await there");
        }
    }

    mutable std::mutex mutex_;
    std::condition_variable ended_;
    bool done_ = false;
    bool abandoned_ = false;
    Handle<IggyCall, iggy_call_free> call_;
    Handle<IggyFailure, iggy_failure_free> failure_;
    Handle<IggyReply, iggy_reply_free> reply_;
    std::coroutine_handle<> waiting_;
    Then then_;
};

}  // namespace detail

/// A call under way. Wait for it with `co_await`, with @ref get, or take a @ref future.
///
/// Its destructor gives the call up and never blocks: what a read brought goes back and is read again, a write may have
/// been applied all the same. A coroutine resumes on a thread of the client, where nothing may block.
template <typename T>
class [[nodiscard("a call that nobody holds is given up")]] Op {
public:
    using Convert = T (*)(detail::Reply&);

    /// Starts a call; `start(done, user)` is a function of the C library.
    template <typename Start>
    static Op begin(Convert convert, Start&& start) {
        auto state = std::make_shared<detail::State>();
        auto held = std::make_unique<std::shared_ptr<detail::State>>(state);
        state->started(start(&detail::State::finish, static_cast<void*>(held.release())));
        return Op(std::move(state), convert);
    }

    Op(Op&&) noexcept = default;
    Op& operator=(Op&& other) noexcept {
        if (this != &other) {
            give_up();
            state_ = std::move(other.state_);
            convert_ = other.convert_;
        }
        return *this;
    }
    Op(const Op&) = delete;
    Op& operator=(const Op&) = delete;
    ~Op() { give_up(); }

    /// Whether the call has ended.
    [[nodiscard]] bool ready() const { return state().ready(); }

    /// Asks for an early end: waiting for it throws @ref CancelledCallError, unless it ended before.
    void cancel() noexcept {
        if (state_) state_->cancel();
    }

    /// Waits for the end.
    /// @throws Error What the call failed with. It must not be called on a thread of the client.
    T get() {
        state().wait();
        return result();
    }

    /// Waits for the end, but not longer than `limit`, and gives the call up then.
    /// @throws DeadlineError It was not over in time.
    template <typename Rep, typename Period>
    T get(std::chrono::duration<Rep, Period> limit) {
        if (!state().wait_for(std::chrono::ceil<std::chrono::nanoseconds>(limit))) {
            give_up();
            ErrorDetails details;
            details.name = "task_timeout";
            details.class_name = "cancelled";
            details.outcome = Outcome::unknown;
            throw DeadlineError("the call was not over in time", std::move(details));
        }
        return result();
    }

    /// The result as a future, which the call outlives: it is not given up when nobody waits for it, and what it reads
    /// then is lost.
    std::future<T> future() && {
        auto promise = std::make_shared<std::promise<T>>();
        auto made = promise->get_future();
        const auto held = std::exchange(state_, nullptr);
        if (!held) detail::refuse("this call was moved away");
        held->on_end([promise = std::move(promise), convert = convert_](detail::State& state) {
            try {
                auto reply = state.take();
                if constexpr (std::is_void_v<T>) {
                    convert(reply);
                    promise->set_value();
                } else {
                    promise->set_value(convert(reply));
                }
            } catch (...) {
                promise->set_exception(std::current_exception());
            }
        });
        return made;
    }

    /// Waits without blocking.
    auto operator co_await() {
        struct Awaiter {
            std::shared_ptr<detail::State> state;
            Convert convert;

            [[nodiscard]] bool await_ready() const noexcept { return false; }
            bool await_suspend(std::coroutine_handle<> waiting) { return state->suspend(waiting); }
            T await_resume() {
                auto reply = state->take();
                return convert(reply);
            }
        };
        static_cast<void>(state());
        return Awaiter{state_, convert_};
    }

private:
    Op(std::shared_ptr<detail::State> state, Convert convert) noexcept : state_(std::move(state)), convert_(convert) {}

    [[nodiscard]] detail::State& state() const {
        if (!state_) detail::refuse("this call was moved away or given up");
        return *state_;
    }

    T result() {
        auto reply = state_->take();
        return convert_(reply);
    }

    void give_up() noexcept {
        if (state_) state_->abandon();
        state_.reset();
    }

    std::shared_ptr<detail::State> state_;
    Convert convert_;
};

namespace detail {

inline void nothing(Reply& /*reply*/) noexcept {}

/// An operation of the C library by its name.
template <typename T>
using Convert = T (*)(Reply&);

}  // namespace detail

/// Ends all calls of this process without waiting for them: for programs that end while calls are under way. Whoever
/// waits for one gets @ref CancelledCallError. A later call starts anew.
inline void stop() noexcept { iggy_stop(); }

}  // namespace iggy
