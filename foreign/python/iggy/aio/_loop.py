"""How this face waits. The synchronous face has a file of its own in this place."""

from __future__ import annotations

import asyncio
from typing import Any


def event_loop() -> asyncio.AbstractEventLoop:
    """The running loop."""
    return asyncio.get_running_loop()


async def taken(reading: asyncio.Future[Any]) -> Any:
    """What was read. A task may be cancelled when its read has already ended: then the next read returns it."""
    try:
        delivered = await reading
    except BaseException:
        if reading.done() and not reading.cancelled() and reading.exception() is None:
            reading.result().give_back()
        raise
    return delivered.take()
