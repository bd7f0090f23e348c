"""Client for a persistent, replicated message-streaming server.

asyncio is here; :mod:`iggy.sync` has the same classes with calls that wait.

    async with iggy.Client("iggy://iggy:iggy@127.0.0.1:8090") as client:
        async with client.producer("orders", "created") as producer:
            await producer.send(["hello"])
"""

import atexit as _atexit

from iggy import _native
from iggy._native import Checkpoint, Continuation, HeaderValue, Message, PolledMessages, ReceivedMessage
from iggy.aio import Client, Consumer, Events, Partitioner, Producer, Reader
from iggy.errors import (
    AlreadyExistsError,
    AuthenticationError,
    CancelledCallError,
    ClosedError,
    ConnectionFailedError,
    IggyError,
    InheritedClientError,
    InternalError,
    InvalidInputError,
    LimitReachedError,
    NotFoundError,
    PermissionDeniedError,
    ServerError,
    StaleError,
    UnavailableError,
    UncertainError,
)
from iggy.options import (
    AutoCommit,
    Background,
    ClientOptions,
    CommitPolicy,
    Consumer as ConsumerId,
    Direct,
    Encryption,
    NewTopic,
    Partitioning,
    PollingStrategy,
    PollOptions,
    Tls,
)
from iggy.types import Header, Permissions, StreamPermissions

# No thread of the client may call into an interpreter that is ending.
_atexit.register(_native.stop_runtime)

__all__ = [
    "AlreadyExistsError",
    "AuthenticationError",
    "AutoCommit",
    "Background",
    "CancelledCallError",
    "Checkpoint",
    "Client",
    "ClientOptions",
    "ClosedError",
    "CommitPolicy",
    "ConnectionFailedError",
    "Consumer",
    "ConsumerId",
    "Continuation",
    "Direct",
    "Encryption",
    "Events",
    "Header",
    "HeaderValue",
    "IggyError",
    "InheritedClientError",
    "InternalError",
    "InvalidInputError",
    "LimitReachedError",
    "Message",
    "NewTopic",
    "NotFoundError",
    "Partitioner",
    "Partitioning",
    "PermissionDeniedError",
    "Permissions",
    "PollOptions",
    "PolledMessages",
    "PollingStrategy",
    "Producer",
    "Reader",
    "ReceivedMessage",
    "ServerError",
    "StaleError",
    "StreamPermissions",
    "Tls",
    "UnavailableError",
    "UncertainError",
]
