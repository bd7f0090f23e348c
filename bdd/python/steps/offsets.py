"""Stored offsets and positions."""

from pytest_bdd import given, parsers, then, when

from steps.polls import polled
from world import DEADLINE, World

step = parsers.re
PLACE = r"in partition (?P<partition>\d+)"


def stored_offset(world: World, name: str, partition: str) -> int | None:
    found = world.run(world.client.get_consumer_offset(name, world.stream, world.topic, int(partition)))
    return None if found is None else found.stored_offset


@given(step(rf'the consumer "(?P<name>.*)" stored the offset (?P<offset>\d+) {PLACE}'))
@when(step(rf'the consumer "(?P<name>.*)" stores the offset (?P<offset>\d+) {PLACE}'))
def store(world: World, name: str, offset: str, partition: str) -> None:
    world.try_(world.client.store_consumer_offset(name, world.stream, world.topic, int(partition), int(offset)))


@when(step(rf'the offset of "(?P<name>.*)" {PLACE} is deleted'))
def delete(world: World, name: str, partition: str) -> None:
    world.try_(world.client.delete_consumer_offset(name, world.stream, world.topic, int(partition)))


@when(step(r'the checkpoint of the poll is stored for "(?P<name>.*)"'))
def store_last(world: World, name: str) -> None:
    checkpoint = polled(world).checkpoint()
    assert checkpoint
    world.try_(world.client.store_consumer_position(name, world.stream, world.topic, checkpoint))


@when(step(r'the checkpoint of message (?P<index>\d+) of the poll is stored for "(?P<name>.*)"'))
def store_at(world: World, index: str, name: str) -> None:
    checkpoint = polled(world).checkpoint_at(int(index))
    assert checkpoint
    world.try_(world.client.store_consumer_position(name, world.stream, world.topic, checkpoint))


@then(step(rf'the stored offset of "(?P<name>.*)" {PLACE} is (?P<offset>\d+)'))
def stored_is(world: World, name: str, partition: str, offset: str) -> None:
    world.expect_no_error()
    assert stored_offset(world, name, partition) == int(offset)


@then(step(rf'the stored offset of "(?P<name>.*)" {PLACE} comes to be (?P<offset>\d+)'))
def stored_comes_to_be(world: World, name: str, partition: str, offset: str) -> None:
    world.expect_no_error()
    end = world.loop.time() + DEADLINE
    while stored_offset(world, name, partition) != int(offset):
        assert world.loop.time() < end


@then(step(rf'the consumer "(?P<name>.*)" has no stored offset {PLACE}'))
def nothing_stored(world: World, name: str, partition: str) -> None:
    world.expect_no_error()
    assert stored_offset(world, name, partition) is None
