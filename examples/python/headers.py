"""Messages carry typed headers beside their payload."""

import asyncio
import sys

import iggy


async def main(address: str) -> None:
    async with iggy.Client(address) as client:
        headers: dict[str, iggy.Header] = {
            "trace": "4bf92f3577b34da6",
            "attempt": 3,
            "sampled": True,
            "ratio": 0.25,
            "raw": b"\x00\x01",
            "flags": iggy.HeaderValue("uint8", 255),
        }
        async with client.producer("headers", "traced") as producer:
            await producer.send([iggy.Message("payload", headers=headers)])
        polled = await client.poll_messages("headers", "traced", 0, "reader", iggy.PollingStrategy.first())
        for key, value in polled[0].headers.items():
            print(f"{key}: {value.value!r} ({value.kind})")
        assert polled[0].headers["attempt"].value == 3


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "iggy://iggy:iggy@127.0.0.1:8090"))
