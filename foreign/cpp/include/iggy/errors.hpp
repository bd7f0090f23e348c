/// @file
/// Errors: one class for each thing a caller would do about it.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <iggy/detail/handle.hpp>

// Exceptions are caught in other modules than they are thrown in, which needs one type of each.
#define IGGY_VISIBLE __attribute__((visibility("default")))

namespace iggy {

/// Whether a write took effect.
enum class Outcome : std::uint8_t { applied = 0, not_applied = 1, unknown = 2 };

/// What an error says besides its message.
struct ErrorDetails {
    /// The code on the wire; 0 for errors that have none.
    std::uint32_t code = 0;
    /// The name of the code in snake_case, as `stream_name_not_found`; of the class where there is no code.
    std::string name;
    /// The name of the class in snake_case.
    std::string class_name;
    /// Whether the same call may succeed later.
    bool retryable = false;
    /// Whether a write took effect.
    Outcome outcome = Outcome::not_applied;
    /// The operation to resolve or abandon when the outcome is unknown.
    std::optional<std::uint64_t> operation;
    /// The partition it concerns, when it is about reading one.
    std::optional<std::uint32_t> partition_id;
};

/// A call that did not bring what was asked for.
class IGGY_VISIBLE Error : public std::runtime_error {
public:
    Error(const std::string& message, ErrorDetails details)
        : std::runtime_error(message), details_(std::move(details)) {}

    /// The code on the wire; 0 for errors that have none.
    [[nodiscard]] std::uint32_t code() const noexcept { return details_.code; }
    /// The name of the code in snake_case; of the class where there is no code.
    [[nodiscard]] const std::string& name() const noexcept { return details_.name; }
    /// The name of the class in snake_case.
    [[nodiscard]] const std::string& class_name() const noexcept { return details_.class_name; }
    /// Whether the same call may succeed later.
    [[nodiscard]] bool retryable() const noexcept { return details_.retryable; }
    /// Whether a write took effect.
    [[nodiscard]] Outcome outcome() const noexcept { return details_.outcome; }
    /// The operation to resolve or abandon when the outcome is unknown.
    [[nodiscard]] std::optional<std::uint64_t> operation() const noexcept { return details_.operation; }
    /// The partition it concerns, when it is about reading one.
    [[nodiscard]] std::optional<std::uint32_t> partition_id() const noexcept { return details_.partition_id; }

private:
    ErrorDetails details_;
};

/// The server cannot be reached, or the link broke: check the address, or wait.
class IGGY_VISIBLE ConnectionFailedError : public Error { using Error::Error; };
/// Sign in, or sign in as somebody else.
class IGGY_VISIBLE AuthenticationError : public Error { using Error::Error; };
/// The user may not do this.
class IGGY_VISIBLE PermissionDeniedError : public Error { using Error::Error; };
/// What was named does not exist.
class IGGY_VISIBLE NotFoundError : public Error { using Error::Error; };
/// What was to be created exists.
class IGGY_VISIBLE AlreadyExistsError : public Error { using Error::Error; };
/// The call itself is wrong: fix its arguments.
class IGGY_VISIBLE InvalidInputError : public Error { using Error::Error; };
/// A limit was reached: wait, or ask for less.
class IGGY_VISIBLE LimitReachedError : public Error { using Error::Error; };
/// The server did not take the call this time: the same call may succeed later.
class IGGY_VISIBLE UnavailableError : public Error { using Error::Error; };
/// Nobody can say whether the write was applied: resolve or abandon its operation.
class IGGY_VISIBLE UncertainError : public Error { using Error::Error; };
/// The position, owner or epoch belongs to the past: look it up again.
class IGGY_VISIBLE StaleError : public Error { using Error::Error; };
/// The server failed.
class IGGY_VISIBLE ServerError : public Error { using Error::Error; };
/// The client, producer, consumer or reader was closed.
class IGGY_VISIBLE ClosedError : public Error { using Error::Error; };
/// The call was given up; a write may have been applied all the same.
class IGGY_VISIBLE CancelledCallError : public Error { using Error::Error; };
/// The call was given up because it was not over in the time its caller gave it.
class IGGY_VISIBLE DeadlineError : public CancelledCallError { using CancelledCallError::CancelledCallError; };
/// The object was made before the process forked: make a new client.
class IGGY_VISIBLE InheritedClientError : public Error { using Error::Error; };
/// The client failed inside; please report it.
class IGGY_VISIBLE InternalError : public Error { using Error::Error; };

namespace detail {

/// The error of a failure, of its class.
inline std::exception_ptr error_of(const IggyFailure* failure) {
    const IggyClass error_class = iggy_failure_class(failure);
    ErrorDetails details;
    details.code = iggy_failure_code(failure);
    details.name = text_of(iggy_failure_name(failure));
    details.class_name = text_of(iggy_class_name(static_cast<std::uint32_t>(error_class)));
    details.retryable = iggy_failure_retryable(failure);
    details.outcome = static_cast<Outcome>(iggy_failure_outcome(failure));
    if (const std::uint64_t operation = iggy_failure_operation(failure); operation != 0) {
        details.operation = operation;
    }
    if (const std::int64_t partition = iggy_failure_partition_id(failure); partition >= 0) {
        details.partition_id = static_cast<std::uint32_t>(partition);
    }
    const std::string message(text_of(iggy_failure_message(failure)));
    switch (error_class) {
        case IGGY_CLASS_CONNECTION: return std::make_exception_ptr(ConnectionFailedError(message, details));
        case IGGY_CLASS_AUTHENTICATION: return std::make_exception_ptr(AuthenticationError(message, details));
        case IGGY_CLASS_PERMISSION: return std::make_exception_ptr(PermissionDeniedError(message, details));
        case IGGY_CLASS_NOT_FOUND: return std::make_exception_ptr(NotFoundError(message, details));
        case IGGY_CLASS_ALREADY_EXISTS: return std::make_exception_ptr(AlreadyExistsError(message, details));
        case IGGY_CLASS_INVALID_INPUT: return std::make_exception_ptr(InvalidInputError(message, details));
        case IGGY_CLASS_LIMIT_REACHED: return std::make_exception_ptr(LimitReachedError(message, details));
        case IGGY_CLASS_UNAVAILABLE: return std::make_exception_ptr(UnavailableError(message, details));
        case IGGY_CLASS_UNCERTAIN: return std::make_exception_ptr(UncertainError(message, details));
        case IGGY_CLASS_STALE: return std::make_exception_ptr(StaleError(message, details));
        case IGGY_CLASS_SERVER: return std::make_exception_ptr(ServerError(message, details));
        case IGGY_CLASS_CLOSED: return std::make_exception_ptr(ClosedError(message, details));
        case IGGY_CLASS_CANCELLED: return std::make_exception_ptr(CancelledCallError(message, details));
        case IGGY_CLASS_INHERITED: return std::make_exception_ptr(InheritedClientError(message, details));
        case IGGY_CLASS_INTERNAL: break;
    }
    return std::make_exception_ptr(InternalError(message, details));
}

/// Where a function that does not wait says what went wrong; throws it.
class FailurePlace {
public:
    IggyFailure** place() noexcept { return &raw_; }

    void raise() {
        if (const Handle<IggyFailure, iggy_failure_free> failure(std::exchange(raw_, nullptr)); failure) {
            std::rethrow_exception(error_of(failure.get()));
        }
    }

private:
    IggyFailure* raw_ = nullptr;
};

[[noreturn]] inline void refuse(const std::string& message) {
    ErrorDetails details;
    details.name = details.class_name = "invalid_input";
    throw InvalidInputError(message, std::move(details));
}

}  // namespace detail
}  // namespace iggy
