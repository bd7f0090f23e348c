"""The face of the client with calls that wait: on the calling thread, with the interpreter released; Ctrl-C ends them."""

from iggy.sync._client import Client, Partitioner
from iggy.sync._producer import Producer
from iggy.sync._reading import Consumer, Events, Reader

__all__ = ["Client", "Consumer", "Events", "Partitioner", "Producer", "Reader"]
