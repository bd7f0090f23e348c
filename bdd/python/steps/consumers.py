"""Consumers and members of consumer groups."""

import asyncio
from datetime import timedelta

from pytest_bdd import given, parsers, then, when

import iggy
from world import DEADLINE, Receiver, World

step = parsers.re
THE_CONSUMER = "the consumer"


def receiver(world: World, name: str) -> Receiver:
    world.expect_no_error()
    return world.consumers[name]


def consume(world: World, name: str, consumer: iggy.Consumer) -> None:
    async def init() -> bool:
        await consumer.init()
        return True

    if world.try_(init()):
        world.consumers[name] = Receiver(consumer)


def commit_all(world: World, name: str) -> None:
    found = receiver(world, name)
    for message in found.last_of_each().values():
        world.try_(found.consumer.commit(message.checkpoint()))


def close_consumer(world: World, name: str) -> None:
    world.try_(world.consumers.pop(name).consumer.shutdown())


def waiting(commit: iggy.CommitPolicy | None = None) -> iggy.PollOptions:
    return iggy.PollOptions(max_wait=timedelta(seconds=1), commit=commit)


@given(
    step(
        r'a consumer "(?P<name>.*)" of partition (?P<partition>\d+) with '
        r"(?P<commits>manual commits|commits on read|commits after every (?P<every>\d+) messages)"
    )
)
def a_consumer(world: World, name: str, partition: str, commits: str, every: str | None) -> None:
    if commits == "manual commits":
        policy = iggy.CommitPolicy.manual()
    elif commits == "commits on read":
        policy = iggy.CommitPolicy.on_read()
    else:
        assert every
        policy = iggy.CommitPolicy.auto(iggy.AutoCommit(interval=timedelta(0), every=int(every)))
    made = world.client.consumer(
        name, world.stream, world.topic, partitions=[int(partition)], poll_options=waiting(policy)
    )
    consume(world, THE_CONSUMER, made)


@when(step(r"the consumer receives (?P<count>\d+) messages"))
def consumer_receives(world: World, count: str) -> None:
    world.run(receiver(world, THE_CONSUMER).receive(int(count)))


@given(step(r"the consumer received (?P<count>\d+) messages and committed the last of them"))
def consumer_received(world: World, count: str) -> None:
    consumer_receives(world, count)
    commit_all(world, THE_CONSUMER)


@when("the consumer commits the last message it received")
def consumer_commits(world: World) -> None:
    commit_all(world, THE_CONSUMER)


@given("the consumer was closed")
@when("the consumer is closed")
def consumer_is_closed(world: World) -> None:
    close_consumer(world, THE_CONSUMER)


@then(step(r"the consumer received the messages (?P<first>\d+) to (?P<last>\d+)"))
def consumer_received_those(world: World, first: str, last: str) -> None:
    found = [message.message.offset for message in receiver(world, THE_CONSUMER).received]
    assert found == list(range(int(first), int(last) + 1))


@given(step(r'the member "(?P<name>.*)" of the group "(?P<group>.*)"'))
def a_member(world: World, name: str, group: str) -> None:
    world.group = group
    # A member is a client of its own, as it would be in a program of its own.
    client = world.clients[name] = world.run(world.connect("iggy:iggy"))
    consume(world, name, client.consumer_group(group, world.stream, world.topic, poll_options=waiting()))


@when(step(r'a member of the group "(?P<group>.*)" joins without creating it'))
def member_does_not_create(world: World, group: str) -> None:
    made = world.client.consumer_group(group, world.stream, world.topic, create_consumer_group=False)
    consume(world, "nobody", made)


def owned(world: World) -> list[list[int]]:
    """Partitions by owner as the members see it."""
    return sorted(found.consumer.partitions for found in world.consumers.values())


async def has_settled(world: World) -> bool:
    """Whether the members and the node agree, and every partition has its owner."""
    found = await world.client.get_consumer_group(world.stream, world.topic, world.group)
    assert found
    by_node = sorted(sorted(member.partitions) for member in found.members)
    return by_node == owned(world) and sum(map(len, by_node)) == found.partitions_count


@given("the members have settled")
@when("the members have settled")
def settle(world: World) -> None:
    world.expect_no_error()

    async def settling() -> None:
        async with asyncio.timeout(DEADLINE):
            while not await has_settled(world):
                for found in world.consumers.values():
                    await found.glance()

    world.run(settling())


@given(
    step(
        r'a process that is a member of the group "(?P<group>[^"]*)" of the topic "(?P<topic>[^"]*)"'
        r' in the stream "(?P<stream>[^"]*)"'
    )
)
def a_member_process(world: World, group: str, topic: str, stream: str) -> None:
    world.node.tell(f"member {stream} {topic} {group}")


@when("that process is killed")
def member_process_is_killed(world: World) -> None:
    world.node.tell("kill-member")


@then(step(r'"(?P<name>[^"]*)" owns (?P<count>\d+) partitions'))
def owns(world: World, name: str, count: str) -> None:
    assert len(receiver(world, name).consumer.partitions) == int(count)


@then(step(r'"(?P<first>[^"]*)" and "(?P<second>[^"]*)" own (?P<count>\d+) partitions each'))
def own(world: World, first: str, second: str, count: str) -> None:
    owns(world, first, count)
    owns(world, second, count)


@then("no partition has two owners")
def one_owner(world: World) -> None:
    every = [id for partitions in owned(world) for id in partitions]
    assert len(every) == len(set(every))


@given(step(r'"(?P<name>[^"]*)" received (?P<count>\d+) messages'))
@when(step(r'"(?P<name>[^"]*)" receives (?P<count>\d+) messages'))
def member_receives(world: World, name: str, count: str) -> None:
    world.run(receiver(world, name).receive(int(count)))


@given(step(r'"(?P<name>[^"]*)" received (?P<count>\d+) messages and committed them'))
def member_received(world: World, name: str, count: str) -> None:
    member_receives(world, name, count)
    commit_all(world, name)


@given(step(r'"(?P<name>[^"]*)" left'))
@when(step(r'"(?P<name>[^"]*)" leaves'))
def member_leaves(world: World, name: str) -> None:
    close_consumer(world, name)


@when(step(r'the client of "(?P<name>.*)" signs out'))
def member_signs_out(world: World, name: str) -> None:
    world.consumers.pop(name)
    world.try_(world.clients[name].logout_user())


@then(step(r'"(?P<first>[^"]*)" and "(?P<second>[^"]*)" together receive (?P<count>\d+) messages and none twice'))
def together(world: World, first: str, second: str, count: str) -> None:
    async def receiving() -> None:
        async with asyncio.timeout(DEADLINE):
            while sum(len(found.received) for found in world.consumers.values()) < int(count):
                for name in (first, second):
                    await world.consumers[name].glance()

    world.run(receiving())
    check_received(world)


def check_received(world: World) -> None:
    """Every partition was read from its start, in order, without a hole and nothing twice, whoever read it."""
    offsets: dict[int, list[int]] = {}
    for found in world.consumers.values():
        last: dict[int, int] = {}
        for message in found.received:
            partition, offset = message.partition_id, message.message.offset
            assert last.get(partition, -1) < offset
            last[partition] = offset
            assert message.message.payload == world.sent[partition][offset].payload
            offsets.setdefault(partition, []).append(offset)
    for partition, seen in offsets.items():
        assert sorted(seen) == list(range(len(world.sent[partition])))


@then("every partition was read in order and nothing twice")
def read_in_order(world: World) -> None:
    world.expect_no_error()
    check_received(world)


@then(step(r'"(?P<name>[^"]*)" received message (?P<offset>\d+) of every partition'))
def received_message(world: World, name: str, offset: str) -> None:
    found = receiver(world, name).received
    assert {message.partition_id for message in found} == set(world.sent)
    assert {message.message.offset for message in found} == {int(offset)}


@when(step(r'"(?P<name>[^"]*)" commits a message of a partition that "(?P<other>[^"]*)" owns'))
def commit_lost(world: World, name: str, other: str) -> None:
    lost = set(receiver(world, other).consumer.partitions)
    found = receiver(world, name)
    message = next(message for message in found.received if message.partition_id in lost)
    world.try_(found.consumer.commit(message.checkpoint()))
