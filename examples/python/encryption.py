"""Payloads and headers are encrypted by the client; the server never sees them."""

import asyncio
import os
import sys

import iggy


async def main(address: str) -> None:
    key = os.urandom(32)
    options = iggy.ClientOptions(encryption=iggy.Encryption(key))
    first = iggy.PollingStrategy.first()
    async with iggy.Client(address, options=options) as client:
        async with client.producer("secrets", "letters") as producer:
            await producer.send(["for your eyes only"])
        polled = await client.poll_messages("secrets", "letters", 0, "reader", first)
        print("with the key:", polled[0].text())
    async with iggy.Client(address) as stranger:
        polled = await stranger.poll_messages("secrets", "letters", 0, "reader", first)
        print("without it:", polled[0].payload.hex())
        assert b"eyes" not in polled[0].payload


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "iggy://iggy:iggy@127.0.0.1:8090"))
