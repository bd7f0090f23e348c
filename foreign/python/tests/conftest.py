"""A real node for the tests of the package."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import iggy.sync
from node import Node


@pytest.fixture(scope="session")
def node() -> Iterator[Node]:
    """One node for all tests."""
    with Node() as running:
        yield running


@pytest.fixture
def address(node: Node) -> Iterator[str]:
    """The connection string of a node that holds the stream "orders" with the topic "created" of two partitions."""
    text = node.connection_string("iggy:iggy")
    with iggy.sync.Client(text) as client:
        for stream in client.get_streams():
            client.delete_stream(stream.id)
        client.create_stream("orders")
        client.create_topic("orders", "created", partitions_count=2)
    yield text
