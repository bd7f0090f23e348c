"""Writes iggy/sync from iggy/aio: the same classes, with calls that wait. A test fails when they differ."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent / "iggy"
WORDS = {
    "async def": "def",
    "await ": "",
    "async with": "with",
    "async for": "for",
    "AsyncIterator": "Iterator",
    "StopAsyncIteration": "StopIteration",
    "__aiter__": "__iter__",
    "__anext__": "__next__",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "iggy.aio": "iggy.sync",
    "The asyncio face of the client. Everything here is also in :mod:`iggy`.": "The face of the client with calls "
    "that wait: on the calling thread, with the interpreter released; Ctrl-C ends them.",
}
PATTERN = re.compile("|".join(re.escape(word) for word in WORDS))


def synchronous(source: str) -> str:
    """The synchronous form of an asynchronous source."""
    return PATTERN.sub(lambda found: WORDS[found.group()], source)


def files() -> dict[Path, str]:
    """Every generated file and what belongs into it."""
    sources = sorted(path for path in (HERE / "aio").glob("*.py") if path.name != "_loop.py")
    return {HERE / "sync" / path.name: synchronous(path.read_text()) for path in sources}


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text)
