"""Two members share the partitions of a topic and commit what they processed."""

import asyncio
import sys

import iggy


async def member(address: str, name: str, done: asyncio.Queue[str]) -> None:
    async with iggy.Client(address) as client:
        async with client.consumer_group("billing", "groups", "invoices") as consumer:
            async for received in consumer:
                await consumer.commit(received.checkpoint())
                await done.put(f"{name} processed {received.message.text()} of partition {received.partition_id}")


async def main(address: str) -> None:
    async with iggy.Client(address) as client:
        await client.create_stream("groups")
        await client.create_topic("groups", "invoices", partitions_count=4)
        for number in range(20):
            await client.send_messages("groups", "invoices", iggy.Partitioning.balanced(), [f"invoice {number}"])

    done: asyncio.Queue[str] = asyncio.Queue()
    members = [asyncio.create_task(member(address, name, done)) for name in ("first", "second")]
    processed = {await done.get() for _ in range(20)}
    print("\n".join(sorted(processed)))
    # Cancelling a member makes it leave its group at once.
    for task in members:
        task.cancel()
    await asyncio.gather(*members, return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "iggy://iggy:iggy@127.0.0.1:8090"))
