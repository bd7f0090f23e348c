"""How this face waits: on the calling thread."""

from __future__ import annotations

from typing import Any


def event_loop() -> object:
    """No loop."""
    return None


def taken(delivered: Any) -> Any:
    """What was read."""
    return delivered.take()
