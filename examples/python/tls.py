"""Talks TLS with a server whose certificate is signed by an authority of its own.

Takes the address of the server and the file with the certificate to trust.
"""

import asyncio
import sys

import iggy


async def main(server: str, ca_file: str) -> None:
    tls = iggy.Tls(domain="localhost", ca_file=ca_file)
    options = iggy.ClientOptions(server_address=server, username="iggy", password="iggy", tls=tls)
    async with iggy.Client(options=options) as client:
        async with client.producer("private", "letters") as producer:
            await producer.send(["over TLS"])
        polled = await client.poll_messages("private", "letters", 0, "reader", iggy.PollingStrategy.first())
        print(polled[0].text())
        assert polled[0].text() == "over TLS"

    stranger = iggy.Client(options=iggy.ClientOptions(server_address=server, tls=iggy.Tls(domain="localhost")))
    try:
        await stranger.connect()
        raise AssertionError("an unknown authority was trusted")
    except iggy.ConnectionFailedError as error:
        print("without the authority:", error)
    finally:
        await stranger.shutdown()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
