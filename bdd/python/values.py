"""Values that scenarios name in words: durations, sizes, starts, names."""

from __future__ import annotations

import re
from datetime import timedelta

import iggy

UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}
SIZES = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def duration(text: str) -> timedelta:
    """``30 s``, ``50 ms``, ``1h``."""
    found = re.fullmatch(r"(\d+) ?(ms|s|m|h)", text)
    assert found, text
    return timedelta(seconds=int(found[1]) * UNITS[found[2]])


def size(text: str) -> int:
    """``2MiB``."""
    found = re.fullmatch(r"(\d+)(KiB|MiB|GiB)", text)
    assert found, text
    return int(found[1]) * SIZES[found[2]]


def start(text: str, noted_time: int) -> iggy.PollingStrategy:
    """A start in words."""
    words = {
        "the first message": iggy.PollingStrategy.first(),
        "the last messages": iggy.PollingStrategy.last(),
        "the next message": iggy.PollingStrategy.next(),
        "the noted time": iggy.PollingStrategy.timestamp(noted_time),
    }
    if text in words:
        return words[text]
    return iggy.PollingStrategy.offset(int(text.removeprefix("offset ")))


def names(text: str) -> list[str]:
    """``"a" and "b"``."""
    return [name.strip('"') for name in text.split(" and ")]
