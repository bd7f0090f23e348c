"""Creates a stream and a topic, sends a few messages and reads them back."""

import asyncio
import sys
from datetime import timedelta

import iggy


async def main(address: str) -> None:
    async with iggy.Client(address) as client:
        await client.create_stream("getting-started")
        await client.create_topic("getting-started", "greetings", partitions_count=1)
        to = iggy.Partitioning.partition(0)
        await client.send_messages("getting-started", "greetings", to, [f"hello {number}" for number in range(3)])

        options = iggy.PollOptions(count=10, max_wait=timedelta(seconds=1))
        first = iggy.PollingStrategy.first()
        polled = await client.poll_messages("getting-started", "greetings", 0, "reader", first, options)
        for message in polled:
            print(message.offset, message.text())
        assert [message.text() for message in polled] == ["hello 0", "hello 1", "hello 2"]


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "iggy://iggy:iggy@127.0.0.1:8090"))
