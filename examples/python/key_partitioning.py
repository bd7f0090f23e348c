"""Messages with the same key go to the same partition, in order."""

import asyncio
import sys

import iggy


async def main(address: str) -> None:
    async with iggy.Client(address) as client:
        await client.create_stream("keys")
        await client.create_topic("keys", "orders", partitions_count=10)
        for customer in ("alice", "bob", "alice", "alice"):
            found = await client.send_messages("keys", "orders", iggy.Partitioning.key(customer), [f"order of {customer}"])
            print(customer, "is in partition", found[0].partition_id)

        # Or the application decides.
        async with client.producer("keys", "orders", partitioner=lambda stream, topic, messages: 7) as producer:
            assert (await producer.send(["to the seventh"]))[0].partition_id == 7


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "iggy://iggy:iggy@127.0.0.1:8090"))
