"""Forks, ends and interrupts of processes."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from datetime import timedelta

import pytest

import iggy
import iggy.sync

TO_FIRST = iggy.Partitioning.partition(0)
FIRST = iggy.PollingStrategy.first()
RUNS = int(os.environ.get("IGGY_TEST_EXITS", "5"))


def in_child(address: str, client: iggy.sync.Client) -> None:
    """Runs in a forked child."""
    with pytest.raises(iggy.InheritedClientError):
        client.ping()
    with iggy.sync.Client(address) as own:
        own.send_messages("orders", "created", TO_FIRST, ["from a child"])

    async def asynchronous() -> None:
        async with iggy.Client(address) as another:
            await another.ping()

    asyncio.run(asynchronous())


def test_given_a_forked_child_when_it_uses_what_it_inherited_should_be_told_and_can_make_its_own(address: str) -> None:
    # valkey-glide#6672, valkey-glide#6673, confluent-kafka-python#172
    with iggy.sync.Client(address) as client:
        client.ping()
        for forks in range(1, 21):
            child = os.fork()
            if child == 0:
                try:
                    in_child(address, client)
                    os._exit(0)
                except BaseException:
                    sys.excepthook(*sys.exc_info())
                    os._exit(1)
            assert os.waitpid(child, 0)[1] == 0
            assert len(client.poll_messages("orders", "created", 0, "c", FIRST)) == forks


IN_FLIGHT = """
import asyncio, datetime, sys, iggy
async def main():
    client = iggy.Client(sys.argv[1])
    await client.connect()
    first, wait = iggy.PollingStrategy.first(), iggy.PollOptions.wait(datetime.timedelta(seconds=60))
    for _ in range(60):
        asyncio.ensure_future(client.poll_messages("orders", "created", 0, "c", first, wait))
    for _ in range(940):
        asyncio.ensure_future(client.ping())
    await asyncio.sleep(0)
    globals()["kept"] = client
asyncio.run(main())
"""


def test_given_calls_in_flight_when_the_interpreter_ends_should_end_quietly(address: str) -> None:
    # pyo3-async-runtimes#40, xbbg#270
    for _ in range(RUNS):
        ended = subprocess.run([sys.executable, "-c", IN_FLIGHT, address], capture_output=True, text=True, timeout=120)
        assert (ended.returncode, ended.stderr) == (0, "")


WAITING = """
import datetime, signal, sys, iggy, iggy.sync
# A job in the background of a shell starts deaf to it.
signal.signal(signal.SIGINT, signal.default_int_handler)
client = iggy.sync.Client(sys.argv[1])
client.connect()
print("waiting", flush=True)
wait = iggy.PollOptions.wait(datetime.timedelta(seconds=300))
client.poll_messages("orders", "created", 0, "c", iggy.PollingStrategy.first(), wait)
"""


def test_given_a_call_that_waits_when_interrupted_should_raise_keyboard_interrupt(address: str) -> None:
    # confluent-kafka-python#807
    process = subprocess.Popen(
        [sys.executable, "-c", WAITING, address], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout and process.stdout.readline() == "waiting\n"
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert "KeyboardInterrupt" in stderr and process.returncode != 0


def test_given_a_client_that_nobody_closed_when_collected_should_not_block(address: str) -> None:
    # confluent-kafka-python#107, rust-rdkafka#453
    for _ in range(20):
        client = iggy.sync.Client(address, options=iggy.ClientOptions(heartbeat_interval=timedelta(seconds=1)))
        client.connect()
        producer = client.producer("orders", "created", background=iggy.Background())
        producer.init()
        producer.send(["left behind"])
        del producer, client
