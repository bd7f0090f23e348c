"""Why a call failed: one exception per thing a caller would do about it."""

from __future__ import annotations

from typing import ClassVar, Literal

Outcome = Literal["applied", "not_applied", "unknown"]


class IggyError(Exception):
    """A call that did not bring what was asked for.

    Attributes:
        code: The code on the wire; 0 for failures that have none.
        name: The name of the code in snake_case, as ``stream_name_not_found``.
        retryable: Whether the same call may succeed later.
        outcome: Whether a write took effect.
        operation: The operation to resolve or abandon when the outcome is unknown.
        partition_id: The partition it concerns, when it is about reading one.
    """

    class_name: ClassVar[str] = "error"

    def __init__(
        self,
        message: str,
        *,
        code: int = 0,
        name: str = "error",
        retryable: bool = False,
        outcome: Outcome = "not_applied",
        operation: int | None = None,
        partition_id: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.name = name
        self.retryable = retryable
        self.outcome = outcome
        self.operation = operation
        self.partition_id = partition_id


class ConnectionFailedError(IggyError):
    """The server cannot be reached, or the link broke: check the address, or wait."""

    class_name = "connection"


class AuthenticationError(IggyError):
    """Sign in, or sign in as somebody else."""

    class_name = "authentication"


class PermissionDeniedError(IggyError):
    """The user may not do this."""

    class_name = "permission"


class NotFoundError(IggyError):
    """What was named does not exist."""

    class_name = "not_found"


class AlreadyExistsError(IggyError):
    """What was to be created exists."""

    class_name = "already_exists"


class InvalidInputError(IggyError):
    """The call itself is wrong: fix its arguments."""

    class_name = "invalid_input"


class LimitReachedError(IggyError):
    """A limit was reached: wait, or ask for less."""

    class_name = "limit_reached"


class UnavailableError(IggyError):
    """The server did not take the call this time: the same call may succeed later."""

    class_name = "unavailable"


class UncertainError(IggyError):
    """Nobody can say whether the write was applied: resolve or abandon its operation."""

    class_name = "uncertain"


class StaleError(IggyError):
    """The position, owner or epoch belongs to the past: look it up again."""

    class_name = "stale"


class ServerError(IggyError):
    """The server failed."""

    class_name = "server"


class ClosedError(IggyError):
    """The client, producer, consumer or reader was closed."""

    class_name = "closed"


class CancelledCallError(IggyError):
    """The call was given up."""

    class_name = "cancelled"


class InheritedClientError(IggyError):
    """The object was made before the process forked: make a new client in the child."""

    class_name = "inherited"


class InternalError(IggyError):
    """The client failed inside; please report it."""

    class_name = "internal"


CLASSES: dict[str, type[IggyError]] = {
    error.class_name: error
    for error in (
        ConnectionFailedError,
        AuthenticationError,
        PermissionDeniedError,
        NotFoundError,
        AlreadyExistsError,
        InvalidInputError,
        LimitReachedError,
        UnavailableError,
        UncertainError,
        StaleError,
        ServerError,
        ClosedError,
        CancelledCallError,
        InheritedClientError,
        InternalError,
    )
}


def from_failure(
    class_name: str,
    message: str,
    *,
    code: int,
    name: str,
    retryable: bool,
    outcome: Outcome,
    operation: int | None,
    partition_id: int | None,
) -> IggyError:
    """The exception of a failure. Called by the native module."""
    return CLASSES[class_name](
        message,
        code=code,
        name=name,
        retryable=retryable,
        outcome=outcome,
        operation=operation,
        partition_id=partition_id,
    )
