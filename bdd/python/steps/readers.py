"""The partition reader."""

import asyncio
from datetime import timedelta

import pytest
from pytest_bdd import given, parsers, then, when

import iggy
from steps.resources import topic_details
from values import start
from world import DEADLINE, Received, World

step = parsers.re
WHICH = r"a reader of the partitions (?P<which>\d+ (?:to|and) \d+)"


def partitions(text: str) -> list[int]:
    """``0 to 3``, ``0 and 9``."""
    if " to " in text:
        first, last = text.split(" to ")
        return list(range(int(first), int(last) + 1))
    return [int(id) for id in text.split(" and ")]


def open_reader(world: World, which: str, name: str = "reader", count: int = 1_000) -> None:
    options = iggy.PollOptions(count=count, max_wait=timedelta(seconds=1))
    world.reader = world.run(
        world.client.reader(world.stream, world.topic, name, partitions=partitions(which), options=options)
    )


@given(step(WHICH))
def a_reader(world: World, which: str) -> None:
    open_reader(world, which)


@given(step(WHICH + r' named "(?P<name>.*)"'))
def a_named_reader(world: World, which: str, name: str) -> None:
    open_reader(world, which, name)


@given(step(WHICH + r" with a count of (?P<count>\d+)"))
def a_counting_reader(world: World, which: str, count: str) -> None:
    open_reader(world, which, count=int(count))


def reader(world: World) -> iggy.Reader:
    assert world.reader
    return world.reader


def read_once(world: World) -> None:
    """One more batch, or one more report."""
    try:
        batch = world.run(asyncio.wait_for(reader(world).next(), DEADLINE))
    except iggy.IggyError as error:
        world.reported.append(error)
        return
    checkpoint = batch.checkpoint()
    assert checkpoint
    world.checkpoints.append(checkpoint)
    world.read += [Received(batch.partition_id, message.offset, message.payload) for message in batch]


@given(step(r"the reader has read (?P<count>\d+) messages"))
@when(step(r"the reader has read (?P<count>\d+) messages"))
def has_read(world: World, count: str) -> None:
    while len(world.read) < int(count):
        read_once(world)


@when(step(r"the reader has read (?P<count>\d+) more messages"))
def has_read_more(world: World, count: str) -> None:
    has_read(world, str(len(world.read) + int(count)))


def check_partition(world: World, partition: int, count: int) -> None:
    found = [read for read in world.read if read.partition == partition]
    assert [read.offset for read in found] == list(range(count))
    assert [read.payload for read in found] == [sent.payload for sent in world.sent[partition][:count]]


@then(step(r"it read (?P<count>\d+) messages of partition (?P<partition>\d+)"))
def read_of(world: World, count: str, partition: str) -> None:
    check_partition(world, int(partition), int(count))


@then(step(r"it read (?P<count>\d+) messages of each partition in order"))
def read_of_each(world: World, count: str) -> None:
    for partition in range(topic_details(world).partitions_count):
        check_partition(world, partition, int(count))


@then(step(r"the last (?P<count>\d+) messages are (?P<first>\d+) to (?P<last>\d+) of partition (?P<partition>\d+)"))
def last_are(world: World, count: str, first: str, last: str, partition: str) -> None:
    found = [(read.partition, read.offset) for read in world.read[-int(count) :]]
    assert found == [(int(partition), offset) for offset in range(int(first), int(last) + 1)]


@when("the reader commits what it read")
def commit(world: World) -> None:
    for checkpoint in world.checkpoints:
        world.try_(reader(world).commit(checkpoint))


@when(step(r"the reader seeks partition (?P<partition>\d+) to (?P<to>offset \d+|the [a-z ]+)"))
def seek(world: World, partition: str, to: str) -> None:
    reader(world).seek(int(partition), start(to, world.noted_time))


@then(step(r'the reader reported "(?P<code>\w+)" for partition (?P<partition>\d+)'))
def reported(world: World, code: str, partition: str) -> None:
    while not world.reported:
        read_once(world)
    assert (world.reported[0].partition_id, world.reported[0].name) == (int(partition), code)


@then(step(r'the reader stops partition (?P<partition>\d+) with "(?P<code>\w+)"'))
def stops(world: World, partition: str, code: str) -> None:
    while not any(error.partition_id == int(partition) for error in world.reported):
        read_once(world)
    assert [error.name for error in world.reported if error.partition_id == int(partition)][-1] == code
    assert int(partition) in reader(world).stopped


@when("the reader is closed")
def close(world: World) -> None:
    world.try_(reader(world).close())


@then(step(r'reading fails with the class "(?P<name>\w+)"'))
def reading_fails(world: World, name: str) -> None:
    with pytest.raises(iggy.IggyError) as raised:
        world.run(reader(world).next())
    assert raised.value.class_name == name
