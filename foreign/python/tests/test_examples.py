"""Every example runs against a real node, and is well typed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from node import REPOSITORY, Node

EXAMPLES = sorted((REPOSITORY / "examples" / "python").glob("*.py"))


def run(example: Path, *arguments: str) -> None:
    ended = subprocess.run([sys.executable, example, *arguments], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_given_an_example_when_run_should_do_what_it_says(example: Path, address: str) -> None:
    if example.stem != "tls":
        return run(example, address)
    with Node("tcp.tls.enabled=true", "tcp.tls.self_signed=true") as node:
        run(example, node.address, str(node.data_directory / "runtime" / "self_signed.pem"))


def test_given_every_example_when_checked_should_be_well_typed() -> None:
    assert EXAMPLES
    command = [sys.executable, "-m", "mypy", "--strict", *EXAMPLES]
    checked = subprocess.run(command, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
