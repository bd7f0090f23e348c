"""What the steps of one scenario share."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

import iggy
from node import Node

T = TypeVar("T")

DEADLINE = 90.0
"""Seconds, against hanging only."""


@dataclass(frozen=True)
class Sent:
    """A message as it was sent; its place in its partition is its offset."""

    id: int
    payload: bytes
    headers: dict[str, iggy.HeaderValue]

    @classmethod
    def numbered(cls, partition: int, index: int, size: int = 0) -> Sent:
        """The message of this place in its partition, with a payload of at least ``size`` bytes."""
        payload = f"message {index} of partition {partition}".encode().ljust(size, b".")
        headers = {
            "index": iggy.HeaderValue("uint64", index),
            "origin": iggy.HeaderValue("string", "scenario"),
        }
        return cls((partition << 64) | (index + 1), payload, headers)

    def message(self) -> iggy.Message:
        """The message."""
        return iggy.Message(self.payload, id=self.id, headers=self.headers)

    def check(self, arrived: iggy.Message) -> None:
        """Whether this is what arrived."""
        assert (arrived.id, arrived.payload, arrived.headers) == (self.id, self.payload, self.headers)


@dataclass
class Received:
    """A message that a reader read."""

    partition: int
    offset: int
    payload: bytes


@dataclass
class Receiver:
    """A consumer and what the application received from it."""

    consumer: iggy.Consumer
    received: list[iggy.ReceivedMessage] = field(default_factory=list)

    async def receive(self, count: int) -> None:
        """Receives so many more."""
        wanted = len(self.received) + count
        async with asyncio.timeout(DEADLINE):
            while len(self.received) < wanted:
                await self._take()

    async def glance(self) -> None:
        """Receives what comes within a moment: a member has to be listened to for the group to settle."""
        try:
            async with asyncio.timeout(0.02):
                await self._take()
        except TimeoutError:
            pass

    async def _take(self) -> None:
        try:
            message = await self.consumer.next()
        except iggy.IggyError as error:
            # A partition that moved while it was read is read by its new owner.
            assert error.retryable or isinstance(error, iggy.StaleError), error
            return
        assert message is not None, "the consumer is closed"
        self.received.append(message)

    def last_of_each(self) -> dict[int, iggy.ReceivedMessage]:
        """The last message of each partition."""
        return {message.partition_id: message for message in self.received}


class World:
    """What the steps of one scenario share."""

    def __init__(self, node: Node, loop: asyncio.AbstractEventLoop) -> None:
        self.node = node
        self.loop = loop
        self._client: iggy.Client | None = None
        self.clients: dict[str, iggy.Client] = {}
        self.stream = ""
        self.topic = ""
        self.group = ""
        self.sent: dict[int, list[Sent]] = {}
        self.polled: iggy.PolledMessages | None = None
        self.polled_partition = 0
        self.confirmation: Any = None
        self.waiting: tuple[int, asyncio.Task[iggy.PolledMessages]] | None = None
        self.sending: asyncio.Task[Any] | None = None
        self.noted_time = 0
        self.noted_changes = ""
        self.producer: iggy.Producer | None = None
        self.reader: iggy.Reader | None = None
        self.read: list[Received] = []
        self.checkpoints: list[iggy.Checkpoint] = []
        self.reported: list[iggy.IggyError] = []
        self.consumers: dict[str, Receiver] = {}
        self.tokens: dict[str, str] = {}
        self.answer = b""
        self._error: iggy.IggyError | None = None

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        """Waits for a call."""
        return self.loop.run_until_complete(call)

    async def connect(self, credentials: str) -> iggy.Client:
        """A client of somebody."""
        client = iggy.Client(self.node.connection_string(credentials))
        try:
            await client.connect()
        except iggy.IggyError:
            await client.shutdown()
            raise
        return client

    async def clean(self) -> None:
        """Removes what the scenario before left at the node."""
        async with iggy.Client(self.node.connection_string("iggy:iggy")) as client:
            for stream in await client.get_streams():
                await client.delete_stream(stream.id)
            for user in await client.get_users():
                if user.username != "iggy":
                    await client.delete_user(user.id)
            for token in await client.get_personal_access_tokens():
                await client.delete_personal_access_token(token.name)

    async def sign_in(self) -> None:
        """Signs the client of the scenario in."""
        self._client = await self.connect("iggy:iggy")

    @property
    def client(self) -> iggy.Client:
        """The client of the scenario."""
        assert self._client is not None, "a signed-in client"
        return self._client

    def try_(self, call: Coroutine[Any, Any, T]) -> T | None:
        """Keeps how a request ended. The next step that cares says whether that was right."""
        self.expect_no_error()
        try:
            return self.run(call)
        except iggy.IggyError as error:
            self._error = error
            return None

    def keep(self, error: iggy.IggyError) -> None:
        """Keeps an error."""
        self.expect_no_error()
        self._error = error

    def take_error(self) -> iggy.IggyError:
        """The error of the last request; it counts as looked at."""
        error, self._error = self._error, None
        assert error is not None, "nothing failed"
        return error

    def expect_no_error(self) -> None:
        """Nothing may have failed."""
        assert self._error is None, f"an earlier request failed: {self._error}"

    async def finish(self) -> None:
        """Ends the scenario: nothing may be left that failed and was not looked at."""
        if self.waiting is not None:
            self.waiting[1].cancel()
        for receiver in self.consumers.values():
            await receiver.consumer.shutdown()
        if self.reader is not None:
            await self.reader.close()
        if self.producer is not None:
            await self.producer.shutdown()
        for client in (*self.clients.values(), *([self._client] if self._client else [])):
            await client.shutdown()
        self.expect_no_error()
