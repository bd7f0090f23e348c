"""Reads many partitions in batches and goes on where it stopped."""

import asyncio
import sys

import iggy


async def read(client: iggy.Client, count: int) -> list[str]:
    texts: list[str] = []
    async with await client.reader("reading", "events", "audit", partitions=range(3)) as reader:
        async for batch in reader:
            texts += [message.text() for message in batch]
            checkpoint = batch.checkpoint()
            if checkpoint is not None:
                await reader.commit(checkpoint)
            if len(texts) >= count:
                break
    return texts


async def main(address: str) -> None:
    async with iggy.Client(address) as client:
        await client.create_stream("reading")
        await client.create_topic("reading", "events", partitions_count=3)
        for run in range(2):
            for partition in range(3):
                to = iggy.Partitioning.partition(partition)
                await client.send_messages("reading", "events", to, [f"run {run}, partition {partition}"])
            # The second run starts after what the first one committed.
            texts = await read(client, 3)
            print(texts)
            assert sorted(texts) == [f"run {run}, partition {partition}" for partition in range(3)]


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "iggy://iggy:iggy@127.0.0.1:8090"))
