"""Completes futures on the thread of their loop. Called by the native module."""

from __future__ import annotations

import asyncio
from typing import Any

from iggy._native import Delivered


def result(future: asyncio.Future[Any], value: Any) -> None:
    """Unless the future was cancelled meanwhile; what was read then goes back."""
    if not future.done():
        future.set_result(value)
    elif isinstance(value, Delivered):
        value.give_back()


def exception(future: asyncio.Future[Any], error: BaseException) -> None:
    """Unless the future was cancelled meanwhile."""
    if not future.done():
        future.set_exception(error)
