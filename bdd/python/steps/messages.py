"""Sending."""

import asyncio
from typing import Any

from pytest_bdd import given, parsers, then, when

import iggy
from world import DEADLINE, Sent, World

step = parsers.re


def next_messages(world: World, partition: int, count: int, size: int = 0) -> list[Sent]:
    """The next messages of a partition, numbered on from those that were sent."""
    first = len(world.sent.setdefault(partition, []))
    return [Sent.numbered(partition, index, size) for index in range(first, first + count)]


async def send_by(world: World, client: iggy.Client, partition: int, messages: list[Sent]) -> Any:
    batch = [sent.message() for sent in messages]
    to = iggy.Partitioning.partition(partition)
    confirmations = await client.send_messages(world.stream, world.topic, to, batch)
    world.sent.setdefault(partition, []).extend(messages)
    return confirmations


async def send(world: World, partition: int, count: int, size: int = 0) -> Any:
    return await send_by(world, world.client, partition, next_messages(world, partition, count, size))


@given(step(r"(?P<count>\d+) messages in partition (?P<partition>\d+)"), converters={"count": int, "partition": int})
def messages_in(world: World, count: int, partition: int) -> None:
    world.run(send(world, partition, count))


@given(step(r"(?P<count>\d+) messages of (?P<size>\d+) bytes in partition (?P<partition>\d+)"))
def sized_messages_in(world: World, count: str, size: str, partition: str) -> None:
    for _ in range(int(count)):
        world.run(send(world, int(partition), 1, int(size)))


@given(step(r"(?P<size>\d+) bytes of messages in partition (?P<partition>\d+)"))
def bytes_in(world: World, size: str, partition: str) -> None:
    for _ in range(-(-int(size) // 100_000)):
        world.run(send(world, int(partition), 10, 10_000))


@given(step(r"(?P<count>\d+) messages in each partition"))
@when(step(r"(?P<count>\d+) messages are sent to each partition"))
def messages_in_each(world: World, count: str) -> None:
    topic = world.run(world.client.get_topic(world.stream, world.topic))
    assert topic
    for partition in range(topic.partitions_count):
        world.run(send(world, partition, int(count)))


@when(step(r"(?P<count>\d+) messages are sent to partition (?P<partition>\d+)(?: in one batch)?"))
def send_to(world: World, count: str, partition: str) -> None:
    found = world.try_(send(world, int(partition), int(count)))
    world.confirmation = found[0] if found else None


@when(step(r"a message of (?P<size>\d+) bytes is sent to partition (?P<partition>\d+)"))
def send_large(world: World, size: str, partition: str) -> None:
    world.try_(send(world, int(partition), 1, int(size)))


@when(step(r"(?P<count>\d+) messages are sent balanced, one at a time"))
def send_balanced(world: World, count: str) -> None:
    for index in range(int(count)):
        message = Sent.numbered(0, index).message()
        world.try_(world.client.send_messages(world.stream, world.topic, iggy.Partitioning.balanced(), [message]))


def send_with(world: World, partitioning: iggy.Partitioning, count: int) -> None:
    messages = [Sent.numbered(0, index).message() for index in range(count)]
    world.try_(world.client.send_messages(world.stream, world.topic, partitioning, messages))


@when(step(r'(?P<count>\d+) messages are sent with the key "(?P<key>.*)"'))
def send_with_key(world: World, count: str, key: str) -> None:
    send_with(world, iggy.Partitioning.key(key), int(count))


@when(step(r"(?P<count>\d+) messages are sent with the key number (?P<key>\d+)"))
def send_with_number(world: World, count: str, key: str) -> None:
    send_with(world, iggy.Partitioning.key(int(key)), int(count))


def header(kind: str, value: str) -> iggy.HeaderValue:
    """A header of a kind from its text."""
    if kind == "raw":
        return iggy.HeaderValue(kind, value.encode())
    if kind == "string":
        return iggy.HeaderValue(kind, value)
    if kind == "bool":
        return iggy.HeaderValue(kind, value == "true")
    if kind.startswith("float"):
        return iggy.HeaderValue(kind, float(value))
    return iggy.HeaderValue(kind, int(value))


def send_with_headers(world: World, headers: dict[str, iggy.HeaderValue]) -> None:
    plain = next_messages(world, 0, 1)[0]
    world.try_(send_by(world, world.client, 0, [Sent(plain.id, plain.payload, headers)]))


@when(step(r'a message with the header "(?P<key>.*)" of the kind "(?P<kind>.*)" and the value "(?P<value>.*)" is sent'))
def send_with_header(world: World, key: str, kind: str, value: str) -> None:
    send_with_headers(world, {key: header(kind, value)})


@when(step(r'a message with the header "(?P<key>.*)" of (?P<size>\d+) bytes is sent'))
def send_with_long_header(world: World, key: str, size: str) -> None:
    try:
        value = iggy.HeaderValue("string", "x" * int(size))
    except iggy.IggyError as error:
        return world.keep(error)
    send_with_headers(world, {key: value})


@when(step(r"a message with (?P<count>\d+) headers is sent"))
def send_with_many_headers(world: World, count: str) -> None:
    send_with_headers(world, {f"header-{index}": iggy.HeaderValue("uint32", index) for index in range(int(count))})


@then(
    step(
        r'the header "(?P<key>.*)" of message (?P<index>\d+) has the kind "(?P<kind>.*)" and the value "(?P<value>.*)"'
    )
)
def header_is(world: World, key: str, index: str, kind: str, value: str) -> None:
    world.expect_no_error()
    assert world.polled is not None
    assert world.polled[int(index)].headers[key] == header(kind, value)


@then(step(r"the confirmation names partition (?P<partition>\d+) and the base offset (?P<offset>\d+)"))
def confirmed(world: World, partition: str, offset: str) -> None:
    world.expect_no_error()
    found = world.confirmation
    assert (found.partition_id, found.base_offset) == (int(partition), int(offset))


@when(step(r"(?P<count>\d+) messages are being sent to partition (?P<partition>\d+)"))
def start_sending(world: World, count: str, partition: str) -> None:
    async def start() -> None:
        world.sending = asyncio.ensure_future(send(world, int(partition), int(count)))
        await asyncio.sleep(0)

    world.run(start())


@then("the messages being sent arrive once")
def sent_arrives(world: World) -> None:
    assert world.sending is not None
    confirmations = world.run(asyncio.wait_for(world.sending, DEADLINE))
    partition = confirmations[0].partition_id
    topic = world.run(world.client.get_topic(world.stream, world.topic))
    assert topic and topic.partitions[partition].messages_count == len(world.sent[partition])
