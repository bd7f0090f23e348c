"""Arguments on their way into the native module."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from iggy._native import Continuation
from iggy.options import Consumer, Partitioning, PollingStrategy, PollOptions, _plain, micros

Start = PollingStrategy | Continuation
"""Where a read starts."""

Option = str | int | bool | timedelta
"""A setting of a resource by its name in the catalogue; the server converts text, as ``"1 day"`` or ``"10 MiB"``."""


def arguments(given: Mapping[str, Any]) -> str:
    """The arguments that were given, as JSON."""
    return json.dumps({name: _plain(value) for name, value in given.items() if value is not None})


def options(given: Mapping[str, Option] | None) -> dict[str, Any]:
    """Settings of a resource; times are in microseconds."""
    return {key: micros(value) if isinstance(value, timedelta) else value for key, value in (given or {}).items()}


def start(given: Start) -> Continuation | str:
    """A start."""
    return given if isinstance(given, Continuation) else json.dumps(given._json())


def consumer(given: Consumer | str | int) -> tuple[str, int | str]:
    """Who reads; a bare name or number is a consumer of its own."""
    return (given.kind, given.id) if isinstance(given, Consumer) else ("consumer", given)


def consumer_json(given: Consumer | str | int) -> Any:
    """As :func:`consumer`, for operations by name."""
    kind, id = consumer(given)
    return {"id": id, "kind": kind}


def partitioning(given: Partitioning) -> str:
    """A partitioning."""
    return json.dumps(given._json())


def poll_options(given: PollOptions | None) -> str:
    """Poll options."""
    return json.dumps((given or PollOptions())._json())
