"""Sends in batches, in the background, and exactly once."""

import asyncio
import sys

import iggy


async def main(address: str) -> None:
    async with iggy.Client(address) as client:
        # A producer creates what is missing, and splits long sends into batches.
        async with client.producer("producing", "direct", direct=iggy.Direct(batch_length=100)) as producer:
            confirmations = await producer.send(str(number) for number in range(250))
            print("stored in", len(confirmations), "batches")

        # In the background sends return at once; leaving the block waits until everything is stored.
        async with client.producer("producing", "background", background=iggy.Background()) as producer:
            for number in range(1000):
                await producer.send([str(number)])

        # The partition writes each batch once, even when a reply was lost and it is sent again.
        async with client.producer("producing", "idempotent", idempotent=True) as producer:
            await producer.send(["once"])

        for topic, count in {"direct": 250, "background": 1000, "idempotent": 1}.items():
            found = await client.get_topic("producing", topic)
            assert found is not None and found.messages_count == count
            print(topic, found.messages_count)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "iggy://iggy:iggy@127.0.0.1:8090"))
