"""The producer."""

from __future__ import annotations

import json
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from iggy import _native
from iggy._arguments import partitioning as partitioning_json
from iggy._native import Message
from iggy.sync._loop import event_loop
from iggy.options import Partitioning
from iggy.types import Id, SendConfirmation


class Producer:
    """Sends messages to one topic. Made by :meth:`Client.producer`; a context manager initialises and shuts it down."""

    def __init__(self, native: _native.Producer, stream: Id, topic: Id) -> None:
        self._native = native
        self._stream = stream
        self._topic = topic

    @property
    def stream(self) -> Id:
        """Where it sends to."""
        return self._stream

    @property
    def topic(self) -> Id:
        """Where it sends to."""
        return self._topic

    def init(self) -> None:
        """Creates what is missing, unless told otherwise. Must succeed before the first send."""
        self._native.init(event_loop())

    def send(
        self,
        messages: Iterable[Message | str | bytes],
        *,
        partitioning: Partitioning | None = None,
        stream: Id | None = None,
        topic: Id | None = None,
    ) -> list[SendConfirmation]:
        """Sends messages, in order per partition, and says where they are; nothing when sent in the background.

        Args:
            messages: Messages, or bare payloads.
            partitioning: Another partitioning than the producer's.
            stream: Another stream, with ``topic``.
            topic: Another topic, with ``stream``.

        Raises:
            IggyError: ``outcome`` says whether anything was stored.
        """
        if (stream is None) != (topic is None):
            raise ValueError("give stream and topic, or neither")
        target = None if stream is None or topic is None else (stream, topic)
        batch = [each if isinstance(each, Message) else Message(each) for each in messages]
        how = None if partitioning is None else partitioning_json(partitioning)
        found: str = self._native.send(event_loop(), batch, how, target)
        return [SendConfirmation._of(each) for each in json.loads(found)]

    def shutdown(self) -> None:
        """Sends what is buffered and waits for it, within a deadline. May be called again."""
        self._native.shutdown(event_loop())

    def __enter__(self) -> Self:
        self.init()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shutdown()
