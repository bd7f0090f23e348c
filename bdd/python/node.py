"""The node that scenarios talk to: a process that starts, stops and kills a server when told."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Self

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAMS = Path(os.environ.get("IGGY_PROGRAMS", REPOSITORY / "target" / "debug"))


class Node:
    """A node; its address survives restarts."""

    def __init__(self, *settings: str) -> None:
        """Starts a node with these settings, each ``key=value``."""
        self._process = subprocess.Popen(
            [PROGRAMS / "iggy-test-node", *settings], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        _, self.address, directory = self.tell("start").split(" ", 2)
        self.data_directory = Path(directory)

    def tell(self, word: str) -> str:
        """Tells the node what to do and returns what it answers."""
        assert self._process.stdin and self._process.stdout
        print(word, file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline().strip()
        assert answer and not answer.startswith("failed"), f"{word}: {answer}"
        return answer

    def connection_string(self, credentials: str) -> str:
        """A connection string of somebody."""
        return f"iggy://{credentials}@{self.address}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(60)
