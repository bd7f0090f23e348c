"""The asyncio face of the client. Everything here is also in :mod:`iggy`."""

from iggy.aio._client import Client, Partitioner
from iggy.aio._producer import Producer
from iggy.aio._reading import Consumer, Events, Reader

__all__ = ["Client", "Consumer", "Events", "Partitioner", "Producer", "Reader"]
