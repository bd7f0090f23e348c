"""What the package is made of: nothing is missing, nothing has drifted apart."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import iggy
import iggy.sync
from iggy import _native

HERE = Path(__file__).parent.parent

INSTEAD = {
    "builder": "ClientOptions",
    "builder_from_connection_string": "ClientOptions",
    "from_connection_string": "Client",
    "subscribe_events": "events",
    "send_binary_request_with_deadline": "send_binary_request",
    "send_binary_request_to_replica": "send_binary_request",
    "send_binary_request_to_replica_with_deadline": "send_binary_request",
}
"""What the core has under another name here: on the client, or in the package."""


def test_given_the_operations_of_the_core_when_looked_up_should_all_be_here() -> None:
    for name in _native.operation_names():
        name = INSTEAD.get(name, name)
        assert hasattr(iggy.Client, name) or hasattr(iggy, name), name


def test_given_both_faces_when_compared_should_have_the_same_calls() -> None:
    for name in ("Client", "Consumer", "Producer", "Reader"):
        asynchronous, synchronous = getattr(iggy, name), getattr(iggy.sync, name)
        calls = {call for call in vars(asynchronous) if not call.startswith("__")}
        assert calls == {call for call in vars(synchronous) if not call.startswith("__")}
        for call in calls:
            assert not inspect.iscoroutinefunction(getattr(synchronous, call)), call


def test_given_the_asynchronous_face_when_translated_should_be_the_synchronous_one() -> None:
    sys.path.insert(0, str(HERE))
    from make_sync import files

    for path, text in files().items():
        assert path.read_text() == text, f"{path.name} is old; run python make_sync.py"


def test_given_the_native_module_when_compared_with_its_stub_should_not_have_drifted() -> None:
    command = [sys.executable, "-m", "mypy.stubtest", "iggy._native", "--ignore-disjoint-bases"]
    checked = subprocess.run(command, cwd=HERE, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_given_what_reads_and_sends_when_asked_should_say_where() -> None:
    client = iggy.sync.Client("iggy://iggy:iggy@127.0.0.1:8090")
    own = client.consumer("audit", "shop", "orders", partitions=[0])
    member = client.consumer_group("billing", "shop", 7)
    producer = client.producer("shop", 7)
    assert (own.name, own.stream, own.topic, own.is_group_member) == ("audit", "shop", "orders", False)
    assert (member.name, member.stream, member.topic, member.is_group_member) == ("billing", "shop", 7, True)
    assert (producer.stream, producer.topic) == ("shop", 7)
