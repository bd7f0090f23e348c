"""Consumers, readers and events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from iggy import _native
from iggy._arguments import Start, start
from iggy._native import Checkpoint, PolledMessages, ReceivedMessage
from iggy.sync._loop import event_loop, taken
from iggy.types import Event, Id


class Events:
    """A subscription to what happens. One that falls 64 events behind loses the oldest. Giving a wait up loses nothing."""

    def __init__(self, native: _native.Events) -> None:
        self._native = native

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        found: str | None = taken(self._native.next(event_loop()))
        if found is None:
            raise StopIteration
        return Event._of(json.loads(found))


class Reader:
    """Reads many partitions of one topic in batches. Made by :meth:`Client.reader`.

    It is an iterator of batches and a context manager that closes it. An exception concerns one partition and does not
    end the reader: iterate on.
    """

    def __init__(self, native: _native.Reader) -> None:
        self._native = native

    def next(self) -> PolledMessages:
        """The next batch, all of one partition; waits until there is one. Giving it up loses and repeats nothing.

        Raises:
            IggyError: What keeps a partition from being read (``partition_id`` says which), or a position from being
                stored; the reader goes on with the next call.
            ClosedError: The reader was closed.
        """
        batch: PolledMessages = taken(self._native.next(event_loop()))
        return batch

    def commit(self, checkpoint: Checkpoint) -> None:
        """Stores a position. One at or below the last stored, or of an older history, stores nothing."""
        self._native.commit(event_loop(), checkpoint)

    def mark(self, checkpoint: Checkpoint) -> None:
        """Notes that the application is done up to a position, for automatic commits after marks."""
        self._native.mark(checkpoint)

    def seek(self, partition_id: int, to: Start) -> None:
        """Goes on somewhere else in a partition; what was read ahead is dropped. Wakes a stopped partition."""
        self._native.seek(partition_id, start(to))

    @property
    def partitions(self) -> list[int]:
        """The partitions it reads, ascending."""
        return self._native.partitions()

    @property
    def stopped(self) -> list[int]:
        """The partitions that wait for a seek, ascending."""
        return self._native.stopped()

    def events(self) -> Events:
        """Subscribes to what happens to the reader from now on."""
        return Events(self._native.subscribe_events())

    def close(self) -> None:
        """Ends the reads and stores what automatic commits still owe, within a deadline. May be called again."""
        self._native.close(event_loop())

    def __iter__(self) -> Iterator[PolledMessages]:
        return self

    def __next__(self) -> PolledMessages:
        return self.next()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Consumer:
    """Reads message by message: named partitions, or those a group assigns to this member.

    Made by :meth:`Client.consumer` and :meth:`Client.consumer_group`. It is an iterator of messages and a context manager
    that initialises and shuts it down.
    """

    def __init__(self, native: _native.Consumer, name: Id, stream: Id, topic: Id, is_group: bool) -> None:
        self._native = native
        self._name = name
        self._stream = stream
        self._topic = topic
        self._is_group = is_group

    @property
    def name(self) -> Id:
        """Its name, or that of its group."""
        return self._name

    @property
    def stream(self) -> Id:
        """What it reads."""
        return self._stream

    @property
    def topic(self) -> Id:
        """What it reads."""
        return self._topic

    @property
    def is_group_member(self) -> bool:
        """Whether it is a member of a group."""
        return self._is_group

    def init(self) -> None:
        """Joins the group, or looks the partitions up; creates a missing group unless told otherwise."""
        self._native.init(event_loop())

    def next(self) -> ReceivedMessage | None:
        """The next message; ``None`` once the consumer was shut down, or every named partition stopped.

        Giving it up loses and repeats nothing. An exception concerns one partition; the next call goes on.
        """
        received: ReceivedMessage | None = taken(self._native.next(event_loop()))
        return received

    def next_batch(self) -> PolledMessages | None:
        """The next messages of one partition at once."""
        batch: PolledMessages | None = taken(self._native.next_batch(event_loop()))
        return batch

    def commit(self, checkpoint: Checkpoint) -> None:
        """Stores a position. One at or below the last stored, or of an earlier assignment, stores nothing."""
        self._native.commit(event_loop(), checkpoint)

    def mark(self, checkpoint: Checkpoint) -> None:
        """Notes that the application is done up to a position, for automatic commits after marks."""
        self._native.mark(checkpoint)

    def store_offset(self, partition_id: int, offset: int) -> None:
        """Stores an offset, whatever was read."""
        self._native.store_offset(event_loop(), partition_id, offset)

    def delete_offset(self, partition_id: int) -> None:
        """Forgets the stored offset of a partition."""
        self._native.delete_offset(event_loop(), partition_id)

    def seek(self, partition_id: int, to: Start) -> None:
        """Goes on somewhere else in a partition; what was read ahead is dropped. Wakes a stopped partition."""
        self._native.seek(partition_id, start(to))

    @property
    def partitions(self) -> list[int]:
        """The partitions it reads now, ascending."""
        return self._native.partitions()

    @property
    def stopped(self) -> list[int]:
        """The partitions that wait for a seek, ascending."""
        return self._native.stopped()

    def last_consumed_offset(self, partition_id: int) -> int | None:
        """The offset of the last message of a partition that was handed out."""
        return self._native.last_consumed_offset(partition_id)

    def last_stored_offset(self, partition_id: int) -> int | None:
        """The last offset of a partition that this consumer stored."""
        return self._native.last_stored_offset(partition_id)

    def events(self) -> Events:
        """Subscribes to what happens to the consumer from now on: assigned, revoked, stopped and so on."""
        return Events(self._native.subscribe_events())

    def shutdown(self) -> None:
        """Ends the reads, stores what automatic commits still owe, leaves the group. May be called again."""
        self._native.shutdown(event_loop())

    def __iter__(self) -> Iterator[ReceivedMessage]:
        return self

    def __next__(self) -> ReceivedMessage:
        received = self.next()
        if received is None:
            raise StopIteration
        return received

    def __enter__(self) -> Self:
        self.init()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shutdown()
