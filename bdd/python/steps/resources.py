"""Streams, topics, partitions, segments and consumer groups."""

from typing import Any

from pytest_bdd import given, parsers, then, when

import iggy
from iggy.types import TopicDetails
from values import duration, names, size
from world import World

step = parsers.re


async def create_stream(world: World, name: str) -> None:
    world.stream = name
    await world.client.create_stream(name)


async def create_topic(world: World, name: str, partitions: int, **options: Any) -> None:
    world.topic = name
    world.sent.clear()
    await world.client.create_topic(world.stream, name, partitions_count=partitions, options=options)


def topic_details(world: World) -> TopicDetails:
    found = world.run(world.client.get_topic(world.stream, world.topic))
    assert found is not None
    return found


@given(step(r'the stream "(?P<name>[^"]*)"'))
def a_stream(world: World, name: str) -> None:
    world.run(create_stream(world, name))


@given(step(r'the stream "(?P<stream>[^"]*)" with the topic "(?P<topic>[^"]*)" of (?P<partitions>\d+) partitions'))
def a_topic(world: World, stream: str, topic: str, partitions: str) -> None:
    world.run(create_stream(world, stream))
    world.run(create_topic(world, topic, int(partitions)))


@given(step(r'the topic "(?P<topic>[^"]*)" with segments of "(?P<length>.*)"'))
def a_topic_of_segments(world: World, topic: str, length: str) -> None:
    world.run(create_topic(world, topic, 1, segment_size=size(length)))


@when(step(r'the stream "(?P<name>[^"]*)" is created'))
def create(world: World, name: str) -> None:
    world.try_(create_stream(world, name))


@when(step(r"a stream with a name of (?P<length>\d+) bytes is created"))
def create_of_length(world: World, length: str) -> None:
    world.try_(world.client.create_stream("x" * int(length)))


@when(step(r'the stream "(?P<old>[^"]*)" is renamed to "(?P<new>[^"]*)"'))
def rename_stream(world: World, old: str, new: str) -> None:
    world.try_(world.client.update_stream(old, name=new))


@when(step(r'the stream "(?P<name>[^"]*)" is deleted'))
def delete_stream(world: World, name: str) -> None:
    world.try_(world.client.delete_stream(name))


@then(step(r'the stream "(?P<name>[^"]*)" exists with (?P<topics>\d+) topics'))
def stream_exists(world: World, name: str, topics: str) -> None:
    world.expect_no_error()
    found = world.run(world.client.get_stream(name))
    assert found and (found.name, len(found.topics)) == (name, int(topics))


@then(step(r'the stream "(?P<name>[^"]*)" does not exist'))
def stream_is_missing(world: World, name: str) -> None:
    world.expect_no_error()
    assert world.run(world.client.get_stream(name)) is None


@then(step(r"the streams are (?P<expected>.*)"))
def streams_are(world: World, expected: str) -> None:
    assert [stream.name for stream in world.run(world.client.get_streams())] == names(expected)


@then(step(r'the number of the stream "(?P<name>[^"]*)" finds the same stream'))
def number_of_stream(world: World, name: str) -> None:
    by_name = world.run(world.client.get_stream(name))
    assert by_name and world.run(world.client.get_stream(by_name.id)) == by_name


@when(step(r'the topic "(?P<name>[^"]*)" is created'))
def create_plain_topic(world: World, name: str) -> None:
    world.try_(create_topic(world, name, 1))


NAMES = {"offset_durability": "consumer_offset_durability"}


def setting(key: str, value: str) -> Any:
    """A setting as the table of a scenario writes it."""
    if key == "message_expiry":
        return duration(value)
    return size(value) if key.endswith("size") else value


@when(step(r'the topic "(?P<name>[^"]*)" is created with'))
def create_topic_with(world: World, name: str, datatable: list[list[str]]) -> None:
    given = {NAMES.get(key, key): setting(key, value) for key, value in datatable}
    partitions = int(given.pop("partitions"))
    world.try_(create_topic(world, name, partitions, **given))


@then(step(r'the topic "(?P<name>[^"]*)" has the settings'))
def topic_has(world: World, name: str, datatable: list[list[str]]) -> None:
    world.expect_no_error()
    world.topic = name
    topic = topic_details(world)
    found = {**topic.derived_options, **topic.options, "partitions": str(topic.partitions_count)}
    for key, value in datatable:
        wanted = setting(key, value)
        if key == "message_expiry":
            wanted = int(wanted.total_seconds() * 1_000_000)
        assert found[NAMES.get(key, key)] == str(wanted), key


@when(step(r'the message expiry of the topic "(?P<name>[^"]*)" is set to "(?P<expiry>.*)"'))
def set_expiry(world: World, name: str, expiry: str) -> None:
    world.try_(world.client.update_topic(world.stream, name, options={"message_expiry": duration(expiry)}))


@when(step(r'the topic "(?P<old>[^"]*)" is renamed to "(?P<new>[^"]*)"'))
def rename_topic(world: World, old: str, new: str) -> None:
    world.try_(world.client.update_topic(world.stream, old, name=new))


@when(step(r'the topic "(?P<name>[^"]*)" is deleted'))
def delete_topic(world: World, name: str) -> None:
    world.try_(world.client.delete_topic(world.stream, name))


@when(step(r'the topic "(?P<name>[^"]*)" is deleted and created again with (?P<partitions>\d+) partitions'))
def recreate_topic(world: World, name: str, partitions: str) -> None:
    world.run(world.client.delete_topic(world.stream, name))
    world.run(create_topic(world, name, int(partitions)))


@then(step(r'the topic "(?P<name>[^"]*)" exists with (?P<partitions>\d+) partitions'))
def topic_exists(world: World, name: str, partitions: str) -> None:
    world.expect_no_error()
    world.topic = name
    assert len(topic_details(world).partitions) == int(partitions)


@then(step(r'the topic "(?P<name>[^"]*)" does not exist'))
def topic_is_missing(world: World, name: str) -> None:
    world.expect_no_error()
    assert world.run(world.client.get_topic(world.stream, name)) is None


@then(step(r"the topics are (?P<expected>.*)"))
def topics_are(world: World, expected: str) -> None:
    assert [topic.name for topic in world.run(world.client.get_topics(world.stream))] == names(expected)


@then(step(r'the number of the topic "(?P<name>[^"]*)" finds the same topic'))
def number_of_topic(world: World, name: str) -> None:
    world.topic = name
    by_name = topic_details(world)
    assert world.run(world.client.get_topic(world.stream, by_name.id)) == by_name


@when(step(r"(?P<count>\d+) partitions are added"))
def add_partitions(world: World, count: str) -> None:
    world.try_(world.client.create_partitions(world.stream, world.topic, int(count)))


@when(step(r"(?P<count>\d+) partitions are removed"))
def remove_partitions(world: World, count: str) -> None:
    world.try_(world.client.delete_partitions(world.stream, world.topic, int(count)))


@when(step(r"(?P<count>\d+) segments of partition (?P<partition>\d+) are deleted"))
def delete_segments(world: World, count: str, partition: str) -> None:
    world.try_(world.client.delete_segments(world.stream, world.topic, int(partition), int(count)))


@then(step(r"partition (?P<partition>\d+) holds (?P<count>\d+) messages"))
def partition_holds(world: World, partition: str, count: str) -> None:
    world.expect_no_error()
    topic = topic_details(world)
    assert topic.partitions[int(partition)].messages_count == int(count)
    assert topic.messages_count == int(count), "and no other partition holds any"


@then(step(r"every partition holds (?P<count>\d+) messages"))
def every_partition_holds(world: World, count: str) -> None:
    world.expect_no_error()
    assert {partition.messages_count for partition in topic_details(world).partitions} == {int(count)}


@then(step(r"the partitions hold (?P<count>\d+) messages in all"))
def partitions_hold(world: World, count: str) -> None:
    world.expect_no_error()
    assert topic_details(world).messages_count == int(count)


@given(step(r'the consumer group "(?P<name>[^"]*)"'))
def a_group(world: World, name: str) -> None:
    world.run(world.client.create_consumer_group(world.stream, world.topic, name))


@when(step(r'the consumer group "(?P<name>[^"]*)" is created'))
def create_group(world: World, name: str) -> None:
    world.try_(world.client.create_consumer_group(world.stream, world.topic, name))


@when(step(r'the consumer group "(?P<name>[^"]*)" is deleted'))
def delete_group(world: World, name: str) -> None:
    world.try_(world.client.delete_consumer_group(world.stream, world.topic, name))


@then(step(r'the consumer group "(?P<name>[^"]*)" exists with (?P<members>\d+) members'))
def group_exists(world: World, name: str, members: str) -> None:
    world.expect_no_error()
    found = world.run(world.client.get_consumer_group(world.stream, world.topic, name))
    assert found and len(found.members) == int(members)


@then(step(r'the consumer group "(?P<name>[^"]*)" does not exist'))
def group_is_missing(world: World, name: str) -> None:
    world.expect_no_error()
    assert world.run(world.client.get_consumer_group(world.stream, world.topic, name)) is None


@then(step(r'the options of "(?P<scope>stream|topic|user)" include "(?P<name>.*)"'))
def options_include(world: World, scope: Any, name: str) -> None:
    assert name in {option.key for option in world.run(world.client.describe_options(scope))}
