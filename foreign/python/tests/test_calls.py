"""Calls that end early, run side by side, or meet a closed client.

Numbers are those of the threads in which users of other libraries reported the fault: see the comments.
"""

from __future__ import annotations

import asyncio
import os
import random
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

import iggy
import iggy.sync
from iggy.aio._loop import taken

FIRST = iggy.PollingStrategy.first()
LONG = iggy.PollOptions.wait(timedelta(seconds=60))
TO_FIRST = iggy.Partitioning.partition(0)
CANCELS = int(os.environ.get("IGGY_TEST_CANCELS", "1000"))


def test_given_calls_cancelled_at_random_points_when_called_again_should_work_and_lose_nothing(address: str) -> None:
    # valkey-glide#5442
    async def main() -> None:
        chance = random.Random(7)
        async with iggy.Client(address) as client:
            sent = 0
            for _ in range(CANCELS // 50):
                tasks = [asyncio.ensure_future(client.poll_messages("orders", "created", 0, "c", FIRST, LONG))]
                tasks += [asyncio.ensure_future(client.ping()) for _ in range(49)]
                await asyncio.sleep(chance.random() / 200)
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                found = await client.send_messages("orders", "created", TO_FIRST, ["kept"])
                assert found[0].base_offset == sent
                sent += 1
            polled = await client.poll_messages("orders", "created", 0, "c", FIRST)
            assert len(polled) == sent

    asyncio.run(main())


def test_given_a_reader_cancelled_while_it_reads_when_read_on_should_lose_and_repeat_nothing(address: str) -> None:
    # rust-rdkafka#490
    async def main() -> None:
        chance = random.Random(8)
        async with iggy.Client(address) as client:
            async with await client.reader("orders", "created", "r", partitions=[0, 1]) as reader:
                read: list[int] = []
                for _ in range(100):
                    await client.send_messages("orders", "created", TO_FIRST, ["one"])
                    try:
                        async with asyncio.timeout(chance.random() / 500):
                            read += [message.offset for message in await reader.next()]
                    except TimeoutError:
                        pass
                while len(read) < 100:
                    read += [message.offset for message in await reader.next()]
                assert read == list(range(100))

    asyncio.run(main())


async def given_up_on_arrival(begin: Callable[[asyncio.AbstractEventLoop], asyncio.Future[Any]]) -> None:
    """Gives a read up when it has ended and its caller has not run on yet."""

    async def read() -> None:
        task = asyncio.current_task()
        assert task is not None
        reading = begin(asyncio.get_running_loop())
        reading.add_done_callback(lambda _: task.cancel())
        await taken(reading)

    with pytest.raises(asyncio.CancelledError):
        await asyncio.ensure_future(read())


def test_given_a_read_given_up_on_arrival_when_sought_should_not_come_again(address: str) -> None:
    async def main() -> None:
        third = iggy.PollingStrategy.offset(3)
        async with iggy.Client(address) as client:
            await client.send_messages("orders", "created", TO_FIRST, ["0", "1", "2", "3"])
            async with await client.reader("orders", "created", "r", partitions=[0], start=FIRST) as reader:
                await given_up_on_arrival(reader._native.next)
                reader.seek(0, third)
                assert [message.offset for message in await reader.next()] == [3]
            async with client.consumer("c", "orders", "created", partitions=[0], start=FIRST) as consumer:
                for begin in (consumer._native.next, consumer._native.next_batch):
                    await given_up_on_arrival(begin)
                    again = await consumer.next_batch()
                    assert again is not None and again[0].offset == 0
                    consumer.seek(0, FIRST)
                    await given_up_on_arrival(begin)
                    consumer.seek(0, third)
                    received = await consumer.next()
                    assert isinstance(received, iggy.ReceivedMessage) and received.message.offset == 3
                    consumer.seek(0, FIRST)

    asyncio.run(main())


def test_given_an_event_whose_wait_was_given_up_on_arrival_when_waited_again_should_come_again(address: str) -> None:
    async def main() -> None:
        client = iggy.Client(address)
        events = client.events()
        await client.connect()
        await given_up_on_arrival(events._native.next)
        assert [(await anext(events)).name for _ in range(2)] == ["signed_in", "connected"]
        await client.shutdown()

    asyncio.run(main())


def test_given_many_short_lived_loops_when_they_end_should_leave_no_connection(address: str) -> None:
    # valkey-glide#7122
    async def once() -> None:
        async with iggy.Client(address) as client:
            await client.send_messages("orders", "created", TO_FIRST, ["from a loop of its own"])

    threads = [threading.Thread(target=lambda: asyncio.run(once())) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with iggy.sync.Client(address) as client:
        while len(client.get_clients()) > 1:
            pass
        assert len(client.poll_messages("orders", "created", 0, "c", FIRST)) == 10


def test_given_a_thread_that_waits_when_another_sends_should_neither_be_held_up(address: str) -> None:
    # opendal#8159, valkey-glide#5458: the interpreter is released while a call waits, and one wait holds up nobody.
    with iggy.sync.Client(address) as client:
        polled: list[int] = []
        waiting = threading.Thread(
            target=lambda: polled.append(len(client.poll_messages("orders", "created", 1, "c", FIRST, LONG)))
        )
        waiting.start()
        for _ in range(20):
            client.send_messages("orders", "created", TO_FIRST, ["meanwhile"])
        assert waiting.is_alive() and not polled
        client.send_messages("orders", "created", iggy.Partitioning.partition(1), ["at last"])
        waiting.join()
        assert polled == [1]


def test_given_a_closed_client_when_used_should_say_so_however_often(address: str) -> None:
    # confluent-kafka-python#255
    client = iggy.sync.Client(address)
    client.connect()
    client.shutdown()
    client.shutdown()
    for call in (client.ping, client.get_streams, client.connect):
        with pytest.raises(iggy.ClosedError):
            call()


def test_given_calls_in_flight_when_the_client_is_closed_should_each_end(address: str) -> None:
    # confluent-kafka-python#358
    client = iggy.sync.Client(address)
    client.connect()
    ended: list[str] = []

    def wait() -> None:
        try:
            client.poll_messages("orders", "created", 0, "c", FIRST, LONG)
            ended.append("polled")
        except iggy.ClosedError:
            ended.append("closed")

    threads = [threading.Thread(target=wait) for _ in range(20)]
    for thread in threads:
        thread.start()
    client.shutdown()
    for thread in threads:
        thread.join(60)
    assert len(ended) == 20 and set(ended) <= {"closed", "polled"}


def test_given_a_reader_that_waits_when_closed_from_elsewhere_should_end(address: str) -> None:
    async def main() -> None:
        async with iggy.Client(address) as client:
            reader = await client.reader("orders", "created", "r", partitions=[0])
            waiting = asyncio.ensure_future(reader.next())
            await asyncio.sleep(0)
            await reader.close()
            await reader.close()
            with pytest.raises(iggy.ClosedError):
                await waiting

    asyncio.run(main())


def test_given_a_handler_that_breaks_off_when_a_member_ends_should_leave_its_group_at_once(address: str) -> None:
    # swift-kafka-client#234
    async def main() -> None:
        async with iggy.Client(address) as client:
            await client.send_messages("orders", "created", TO_FIRST, ["one"])
            async with client.consumer_group("billing", "orders", "created") as member:
                async for _ in member:
                    break
            group = await client.get_consumer_group("orders", "created", "billing")
            assert group is not None and group.members_count == 0

    asyncio.run(main())


def test_given_a_handler_that_raises_when_a_consumer_starts_again_should_get_the_message_again(address: str) -> None:
    # apache/iggy#2928
    async def main() -> None:
        automatic = iggy.PollOptions(commit=iggy.CommitPolicy.auto(iggy.AutoCommit(every="message")))
        async with iggy.Client(address) as client:
            await client.send_messages("orders", "created", TO_FIRST, ["one"])
            for _ in range(2):
                with pytest.raises(ZeroDivisionError):
                    made = client.consumer("audit", "orders", "created", partitions=[0], poll_options=automatic)
                    async with made as consumer:
                        async for received in consumer:
                            assert received.message.payload == b"one"
                            raise ZeroDivisionError

    asyncio.run(main())


def test_given_callbacks_that_raise_when_called_should_fail_the_send_and_nothing_else(address: str) -> None:
    def refuses(stream: str, topic: str, messages: list[iggy.Message]) -> int:
        raise ZeroDivisionError("no partition")

    with iggy.sync.Client(address) as client:
        with client.producer("orders", "created", partitioner=refuses) as producer:
            with pytest.raises(iggy.IggyError, match="no partition"):
                producer.send(["one"])
        client.ping()


def test_given_a_large_payload_when_polled_again_and_again_should_keep_its_memory(address: str) -> None:
    # valkey-glide#6740
    def resident() -> int:
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    polls = int(os.environ.get("IGGY_TEST_POLLS", "500"))
    with iggy.sync.Client(address) as client:
        client.send_messages("orders", "created", TO_FIRST, [b"x" * (1 << 20)])
        options = iggy.PollOptions(max_bytes=2 << 20)
        for index in range(polls):
            polled = client.poll_messages("orders", "created", 0, "c", FIRST, options)
            assert len(polled[0].payload) == 1 << 20
            if index == polls // 10:
                warm = resident()
        assert resident() < warm + (64 << 20)
