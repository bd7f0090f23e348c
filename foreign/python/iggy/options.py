"""How clients, polls, producers, consumers and readers are configured. What is left out has the default of the core."""

from __future__ import annotations

import base64
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any, Literal


def micros(time: timedelta) -> int:
    """A time in microseconds, exactly."""
    return (time.days * 86_400 + time.seconds) * 1_000_000 + time.microseconds


def _plain(value: Any) -> Any:
    if isinstance(value, timedelta):
        return micros(value)
    if isinstance(value, tuple | list | range | set | frozenset):
        return [_plain(each) for each in value]
    if hasattr(value, "_json"):
        return value._json()
    return value


def _settings(given: Any) -> dict[str, Any]:
    """The members of a record that were given."""
    members = ((field.name, getattr(given, field.name)) for field in fields(given))
    return {name: _plain(value) for name, value in members if value is not None}


@dataclass(frozen=True, slots=True)
class PollingStrategy:
    """Where a read starts."""

    _start: Any

    @classmethod
    def first(cls) -> PollingStrategy:
        """At the first message that is kept."""
        return cls("first")

    @classmethod
    def last(cls) -> PollingStrategy:
        """At the last messages, as many as the count of the read."""
        return cls("last")

    @classmethod
    def next(cls) -> PollingStrategy:
        """After the stored offset of the consumer, or at the first message."""
        return cls("next")

    @classmethod
    def offset(cls, offset: int) -> PollingStrategy:
        """At this offset."""
        return cls({"offset": offset})

    @classmethod
    def timestamp(cls, time: datetime | int) -> PollingStrategy:
        """At the first message of this time or later: a time, or microseconds since the Unix epoch."""
        if isinstance(time, datetime):
            if time.tzinfo is None:
                raise ValueError("the time has no timezone")
            epoch = datetime.fromtimestamp(0, time.tzinfo)
            return cls({"timestamp": micros(time - epoch)})
        return cls({"timestamp": time})

    def _json(self) -> Any:
        return self._start


@dataclass(frozen=True, slots=True)
class Partitioning:
    """How a send finds its partition."""

    _how: Any

    @classmethod
    def balanced(cls) -> Partitioning:
        """Each send to the next partition."""
        return cls("balanced")

    @classmethod
    def partition(cls, partition_id: int) -> Partitioning:
        """To this partition."""
        return cls({"partition": partition_id})

    @classmethod
    def key(cls, key: str | bytes | int) -> Partitioning:
        """To the partition of a key: text, 1..=255 bytes, or a number of 64 bits as its eight bytes, lowest first."""
        if isinstance(key, int):
            key = key.to_bytes(8, "little")
        if isinstance(key, str):
            key = key.encode()
        return cls({"key": base64.b64encode(key).decode()})

    def _json(self) -> Any:
        return self._how


@dataclass(frozen=True, slots=True)
class AutoCommit:
    """How often positions are stored that the client counted.

    Attributes:
        interval: After this time; not by time when zero. Default 5 s.
        every: After so many messages, each ``"message"``, each ``"batch"``, or 0 for by time alone. Default 10000.
        after: What counts as done: the application asked for the next message (``"processing"``, the default), got it
            (``"delivery"``), or marked it (``"marked"``).
    """

    interval: timedelta | None = None
    every: int | Literal["message", "batch"] | None = None
    after: Literal["processing", "delivery", "marked"] | None = None

    def _json(self) -> Any:
        return {"auto": _settings(self)}


@dataclass(frozen=True, slots=True)
class CommitPolicy:
    """When the position of a consumer is stored."""

    _policy: Any

    @classmethod
    def manual(cls) -> CommitPolicy:
        """Never by itself: the application commits what it processed. The default."""
        return cls("manual")

    @classmethod
    def on_read(cls) -> CommitPolicy:
        """By the server as part of the read: at most once."""
        return cls("on_read")

    @classmethod
    def auto(cls, auto: AutoCommit | None = None) -> CommitPolicy:
        """By the client, as it counts. Consumers and readers only."""
        return cls((auto or AutoCommit())._json())

    def _json(self) -> Any:
        return self._policy


@dataclass(frozen=True, slots=True)
class PollOptions:
    """The limits of one read and its commit policy.

    Attributes:
        count: Most messages. Default 1000.
        max_wait: How long to wait for ``min_count`` messages, at most 600 s. Default no wait; consumers and readers 5 s.
        min_count: Messages that end the wait, 1 up to ``count``. Default 1.
        max_bytes: Most bytes of the reply, at least 344; a larger first message comes alone. Default 1 MiB.
        commit: When the position is stored. Default manual.
    """

    count: int | None = None
    max_wait: timedelta | None = None
    min_count: int | None = None
    max_bytes: int | None = None
    commit: CommitPolicy | None = None

    @classmethod
    def wait(cls, max_wait: timedelta) -> PollOptions:
        """The defaults, with a wait."""
        return cls(max_wait=max_wait)

    def _json(self) -> Any:
        return _settings(self)


@dataclass(frozen=True, slots=True)
class Consumer:
    """Who reads: a consumer of its own (the default), or a group."""

    id: int | str
    kind: Literal["consumer", "group", "external"] = "consumer"

    @classmethod
    def group(cls, id: int | str) -> Consumer:
        """A consumer group."""
        return cls(id, "group")

    def _json(self) -> Any:
        return {"id": self.id, "kind": self.kind}


@dataclass(frozen=True, slots=True)
class Encryption:
    """End-to-end encryption of payloads and headers: a key of 32 bytes."""

    key: bytes
    cipher: Literal["aes-256-gcm", "aes-256-gcm-siv"] = "aes-256-gcm"

    def _json(self) -> Any:
        return {"key": base64.b64encode(self.key).decode(), "cipher": self.cipher}


@dataclass(frozen=True, slots=True)
class Tls:
    """TLS: the name the certificate must be for, and certificates to trust besides those of the system, in PEM."""

    domain: str | None = None
    ca_file: str | None = None
    validate_certificate: bool | None = None

    def _json(self) -> Any:
        return _settings(self)


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """How a client reaches and treats its server; each overrides what a connection string says.

    Attributes:
        server_address: ``host:port``, IPv6 in brackets. Default 127.0.0.1:8090.
        username: Who signs in on connect, with ``password``.
        password: The password.
        token: A personal access token, instead of username and password.
        tls: TLS. Default plain TCP.
        nodelay: Whether small frames are sent at once. Default true.
        reconnection_max_retries: Passes over all nodes before a connect gives up. Default unlimited.
        reconnection_interval: Ceiling of the first random pause between passes; it doubles up to 10 s. Default 1 s.
        reestablish_after: A link that held so long starts again with the first pause. Default 5 s.
        heartbeat_interval: Time between two pings. Default 5 s.
        request_timeout: Deadline of a call that names none; polls have their wait and 10 s. Default 30 s.
        max_pending_operations: Writes under way or unresolved at once. Default 256.
        max_pending_operation_bytes: Bytes of their frames. Default 64 MiB.
        max_frame_bytes: Largest request. Default 64 MiB.
        encryption: Encrypts what is sent and decrypts what is read.
    """

    server_address: str | None = None
    username: str | None = None
    password: str | None = None
    token: str | None = None
    tls: Tls | None = None
    nodelay: bool | None = None
    reconnection_max_retries: int | None = None
    reconnection_interval: timedelta | None = None
    reestablish_after: timedelta | None = None
    heartbeat_interval: timedelta | None = None
    request_timeout: timedelta | None = None
    max_pending_operations: int | None = None
    max_pending_operation_bytes: int | None = None
    max_frame_bytes: int | None = None
    encryption: Encryption | None = None

    def _json(self) -> Any:
        return _settings(self)


@dataclass(frozen=True, slots=True)
class Direct:
    """Sends from the calling task.

    Attributes:
        batch_length: Most messages of one request; a longer send is split; 0 for as many as fit. Default 1000.
        linger_time: Least time between two sends. Default none.
    """

    batch_length: int | None = None
    linger_time: timedelta | None = None

    def _json(self) -> Any:
        return _settings(self)


@dataclass(frozen=True, slots=True)
class Background:
    """Sends in the background.

    Attributes:
        num_shards: Workers. Default 1.
        sharding: Which worker takes a send: the same for each topic (``"ordered"``), or each in turn. Default ordered.
        batch_size: Bytes that are sent without waiting for more; 0 for no such threshold. Default 1 MiB.
        batch_length: Sends that are sent without waiting for more; 0 for no such threshold. Default 1000.
        linger_time: How long a worker waits for more. Default 1 ms.
        max_buffer_size: Bytes all buffered sends may take; 0 for no limit but the queues. Default 32 MiB.
        failure_mode: What a send does when the buffer is full: ``"block"``, ``"fail_immediately"``, or a time after
            which it fails. Default it waits.
        max_in_flight: Requests a worker has under way at once; above 1 their order is not kept. Default 1.
    """

    num_shards: int | None = None
    sharding: Literal["ordered", "balanced"] | None = None
    batch_size: int | None = None
    batch_length: int | None = None
    linger_time: timedelta | None = None
    max_buffer_size: int | None = None
    failure_mode: Literal["block", "fail_immediately"] | timedelta | None = None
    max_in_flight: int | None = None

    def _json(self) -> Any:
        settings = _settings(self)
        if isinstance(self.failure_mode, timedelta):
            settings["failure_mode"] = {"block_with_timeout": micros(self.failure_mode)}
        return settings


@dataclass(frozen=True, slots=True)
class NewTopic:
    """How a producer creates a topic that is missing. Zero expiry is never, zero size unlimited."""

    partitions_count: int | None = None
    message_expiry: timedelta | None = None
    max_topic_size: int | None = None
    durability: Literal["replicated", "persisted"] | None = None

    def _json(self) -> Any:
        return _settings(self)
