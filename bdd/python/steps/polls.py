"""Polling."""

import asyncio
import re
from dataclasses import replace
from datetime import timedelta

from pytest_bdd import given, parsers, then, when

import iggy
from values import duration, start
from world import DEADLINE, World

step = parsers.re
PLENTY = iggy.PollOptions(count=10_000, max_bytes=16 << 20)
"""What a poll of a scenario asks for unless it says more."""

FROM = r"(?P<start>the [a-z ]+?|offset \d+)"
ON_READ = iggy.CommitPolicy.on_read()


def poll_by(
    world: World,
    client: iggy.Client,
    partition: int,
    consumer: str,
    at: iggy.PollingStrategy | iggy.Continuation,
    options: iggy.PollOptions,
) -> None:
    found = world.try_(client.poll_messages(world.stream, world.topic, partition, consumer, at, options))
    if found is not None:
        world.polled, world.polled_partition = found, partition


def poll(world: World, partition: str, at: str, options: iggy.PollOptions, consumer: str = "reader") -> None:
    poll_by(world, world.client, int(partition), consumer, start(at, world.noted_time), options)


def polled(world: World) -> iggy.PolledMessages:
    world.expect_no_error()
    assert world.polled is not None
    return world.polled


def check(found: iggy.PolledMessages, first: int, last: int) -> None:
    assert [message.offset for message in found] == list(range(first, last + 1))


@when(step(rf"partition (?P<partition>\d+) is polled from {FROM}"))
def poll_from(world: World, partition: str, start: str) -> None:
    poll(world, partition, start, PLENTY)


@when(step(rf"partition (?P<partition>\d+) is polled from {FROM} with a count of (?P<count>\d+)"))
def poll_count(world: World, partition: str, start: str, count: str) -> None:
    poll(world, partition, start, replace(PLENTY, count=int(count)))


@given(step(rf'partition (?P<partition>\d+) was polled by "(?P<name>.*)" from {FROM} with a count of (?P<count>\d+)'))
@when(step(rf'partition (?P<partition>\d+) is polled by "(?P<name>.*)" from {FROM} with a count of (?P<count>\d+)'))
def poll_by_name(world: World, partition: str, name: str, start: str, count: str) -> None:
    poll(world, partition, start, replace(PLENTY, count=int(count)), name)


@when(
    step(
        rf'partition (?P<partition>\d+) is polled by "(?P<name>.*)" from {FROM} with a count of (?P<count>\d+)'
        r" and a commit on read"
    )
)
def poll_committing(world: World, partition: str, name: str, start: str, count: str) -> None:
    poll(world, partition, start, replace(PLENTY, count=int(count), commit=ON_READ), name)


@when(step(r'partition (?P<partition>\d+) is polled by "(?P<name>.*)" with automatic commits'))
def poll_counting(world: World, partition: str, name: str) -> None:
    poll(world, partition, "the next message", replace(PLENTY, commit=iggy.CommitPolicy.auto()), name)


@when(step(r"the same partition is polled from its continuation with a count of (?P<count>\d+)"))
def poll_on(world: World, count: str) -> None:
    continuation = polled(world).continuation()
    poll_by(world, world.client, world.polled_partition, "reader", continuation, replace(PLENTY, count=int(count)))


@when(step(rf"partition (?P<partition>\d+) is polled from {FROM} with a wait of (?P<wait>.*)"))
def poll_waiting(world: World, partition: str, start: str, wait: str) -> None:
    poll(world, partition, start, replace(PLENTY, max_wait=duration(wait)))


@when(
    step(
        rf"partition (?P<partition>\d+) is polled from {FROM} for at least (?P<least>\d+) messages"
        r" with a wait of (?P<wait>.*)"
    )
)
def poll_waiting_for(world: World, partition: str, start: str, least: str, wait: str) -> None:
    poll(world, partition, start, replace(PLENTY, max_wait=duration(wait), min_count=int(least)))


@when(step(rf"partition (?P<partition>\d+) is polled from {FROM} with room for (?P<room>\d+) bytes"))
def poll_bounded(world: World, partition: str, start: str, room: str) -> None:
    poll(world, partition, start, replace(PLENTY, max_bytes=int(room)))


@when(
    step(
        r"partition (?P<partition>\d+) is polled with (?P<limits>a count of 0|at least \d+ messages and a count of \d+|"
        r"a wait of \d+ s|room for \d+ bytes)"
    )
)
def poll_senseless(world: World, partition: str, limits: str) -> None:
    numbers = [int(number) for number in re.findall(r"\d+", limits)]
    if limits.startswith("at least"):
        options = replace(PLENTY, min_count=numbers[0], count=numbers[1])
    elif limits.startswith("room"):
        options = replace(PLENTY, max_bytes=numbers[0])
    elif limits.startswith("a count"):
        options = replace(PLENTY, count=numbers[0])
    else:
        options = replace(PLENTY, max_wait=timedelta(seconds=numbers[0]))
    poll(world, partition, "the first message", options)


@given("the time is noted")
def note_time(world: World) -> None:
    # The server's clock, not ours: the time of the newest message, and a microsecond more.
    poll(world, "0", "the last messages", replace(PLENTY, count=1))
    world.noted_time = polled(world)[0].timestamp + 1


def start_waiting(world: World, partition: str, options: iggy.PollOptions, consumer: str = "reader") -> None:
    async def begin() -> None:
        call = world.client.poll_messages(
            world.stream, world.topic, int(partition), consumer, iggy.PollingStrategy.first(), options
        )
        world.waiting = (int(partition), asyncio.ensure_future(call))
        await asyncio.sleep(0)

    world.run(begin())


@given(step(r"a poll of partition (?P<partition>\d+) is waiting for up to (?P<wait>\d+ s)"))
def waiting_poll(world: World, partition: str, wait: str) -> None:
    start_waiting(world, partition, replace(PLENTY, max_wait=duration(wait)))


@given(
    step(
        r"a poll of partition (?P<partition>\d+) is waiting for up to (?P<wait>\d+ s) for at least (?P<least>\d+) messages"
    )
)
def waiting_poll_for(world: World, partition: str, wait: str, least: str) -> None:
    start_waiting(world, partition, replace(PLENTY, max_wait=duration(wait), min_count=int(least)))


@given(
    step(
        r'a poll of partition (?P<partition>\d+) by "(?P<name>.*)" that stores what it reads'
        r" is waiting for up to (?P<wait>\d+ s)"
    )
)
def waiting_poll_that_stores(world: World, partition: str, name: str, wait: str) -> None:
    start_waiting(world, partition, replace(PLENTY, max_wait=duration(wait), commit=ON_READ), name)


@when("the waiting poll is given up")
def give_up(world: World) -> None:
    assert world.waiting is not None
    task = world.waiting[1]
    world.waiting = None
    task.cancel()
    world.run(asyncio.wait([task]))
    assert task.cancelled()


@then(step(r"the waiting poll returns the messages (?P<first>\d+) to (?P<last>\d+)"))
def waiting_returns(world: World, first: str, last: str) -> None:
    world.expect_no_error()
    assert world.waiting is not None
    world.polled_partition, task = world.waiting
    world.waiting = None
    world.polled = world.run(asyncio.wait_for(task, DEADLINE))
    check(world.polled, int(first), int(last))


@then(step(r"the poll returns the messages (?P<first>\d+) to (?P<last>\d+)"))
def returns(world: World, first: str, last: str) -> None:
    check(polled(world), int(first), int(last))


@then("the poll returns no messages")
def returns_nothing(world: World) -> None:
    assert len(polled(world)) == 0


@then(step(r"the poll returns some of the messages from (?P<first>\d+) on"))
def returns_some(world: World, first: str) -> None:
    found = polled(world)
    assert 0 < len(found) < len(world.sent[world.polled_partition])
    check(found, int(first), int(first) + len(found) - 1)


@then(step(r"the poll returns messages from later than offset (?P<offset>\d+)"))
def returns_later(world: World, offset: str) -> None:
    assert polled(world)[0].offset > int(offset)


@then("every message has the payload, the id and the headers it was sent with")
def as_sent(world: World) -> None:
    found = polled(world)
    assert len(found) > 0
    for message in found:
        world.sent[world.polled_partition][message.offset].check(message)


@then("no payload is readable")
def unreadable(world: World) -> None:
    for message in polled(world):
        assert world.sent[world.polled_partition][message.offset].payload[:8] not in message.payload
