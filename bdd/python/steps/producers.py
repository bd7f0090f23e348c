"""Producers and encryption."""

from typing import Any

from pytest_bdd import given, parsers, when

import iggy
from steps.messages import next_messages, send_by
from steps.polls import PLENTY, poll_by
from world import World

step = parsers.re


def use_producer(world: World, **settings: Any) -> None:
    producer = world.client.producer(world.stream, world.topic, **settings)
    world.try_(producer.init())
    world.producer = producer


@given(step(r'a producer with the key "(?P<key>.*)"'))
def keyed(world: World, key: str) -> None:
    use_producer(world, partitioning=iggy.Partitioning.key(key))


@given(step(r"a producer whose partitioner always says (?P<partition>\d+)"))
def partitioned(world: World, partition: str) -> None:
    use_producer(world, partitioner=lambda stream, topic, messages: int(partition))


@given(step(r'a producer for the stream "(?P<stream>.*)" and the topic "(?P<topic>.*)"'))
def creating(world: World, stream: str, topic: str) -> None:
    world.stream, world.topic = stream, topic
    use_producer(world)


@when(step(r'a producer for the stream "(?P<stream>.*)" and the topic "(?P<topic>.*)" starts without creating them'))
def not_creating(world: World, stream: str, topic: str) -> None:
    world.stream, world.topic = stream, topic
    use_producer(world, create_stream=False, create_topic=False)


@given(step(r"a producer with batches of (?P<length>\d+) messages"))
def batching(world: World, length: str) -> None:
    use_producer(world, direct=iggy.Direct(batch_length=int(length)))


@given("a producer in the background")
def background(world: World) -> None:
    use_producer(world, background=iggy.Background())


@given("an idempotent producer")
def idempotent(world: World) -> None:
    use_producer(world, idempotent=True)


def for_producer(world: World, count: int) -> list[iggy.Message]:
    """Numbered as if they all went to partition 0, where those scenarios look that care."""
    messages = next_messages(world, 0, count)
    world.sent[0].extend(messages)
    return [sent.message() for sent in messages]


@when(step(r"the producer sends (?P<count>\d+) messages"))
def send(world: World, count: str) -> None:
    assert world.producer
    world.try_(world.producer.send(for_producer(world, int(count))))


@when(step(r"the producer sends (?P<count>\d+) messages one by one"))
def send_singly(world: World, count: str) -> None:
    assert world.producer
    for message in for_producer(world, int(count)):
        world.try_(world.producer.send([message]))


@when("the producer is closed")
def close(world: World) -> None:
    assert world.producer
    world.try_(world.producer.shutdown())


@given(step(r'a client that encrypts with (?P<cipher>AES-256-GCM|AES-256-GCM-SIV) and the key "(?P<key>.*)"'))
def encrypting(world: World, cipher: str, key: str) -> None:
    name: Any = cipher.lower()
    options = iggy.ClientOptions(encryption=iggy.Encryption(key.encode(), name))
    client = iggy.Client(world.node.connection_string("iggy:iggy"), options=options)
    world.run(client.connect())
    world.clients["encrypting"] = client


@when(step(r"the encrypting client sends (?P<count>\d+) messages to partition (?P<partition>\d+)"))
def send_encrypted(world: World, count: str, partition: str) -> None:
    messages = next_messages(world, int(partition), int(count))
    world.try_(send_by(world, world.clients["encrypting"], int(partition), messages))


@when(step(r"the encrypting client polls partition (?P<partition>\d+)"))
def poll_encrypted(world: World, partition: str) -> None:
    first = iggy.PollingStrategy.first()
    poll_by(world, world.clients["encrypting"], int(partition), "reader", first, PLENTY)
