"""Runs every scenario of bdd/features with the Python client against one node that the run starts and stops."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_bdd.parser import Feature, Scenario

from node import Node
from world import World

pytest_plugins = [
    "steps.consumers",
    "steps.messages",
    "steps.node",
    "steps.offsets",
    "steps.outcomes",
    "steps.polls",
    "steps.producers",
    "steps.readers",
    "steps.resources",
    "steps.users",
]


@pytest.fixture(scope="session")
def node() -> Iterator[Node]:
    """The node all scenarios talk to."""
    with Node() as running:
        yield running


@pytest.fixture(scope="session")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """Steps are ordinary functions; this runs what they wait for."""
    with asyncio.Runner() as runner:
        yield runner.get_loop()


@pytest.fixture
def world(node: Node, loop: asyncio.AbstractEventLoop) -> Iterator[World]:
    """What the steps of one scenario share."""
    world = World(node, loop)
    world.run(world.clean())
    yield world
    world.run(world.finish())


RESULTS = os.environ.get("IGGY_BDD_RESULTS")


def pytest_configure(config: pytest.Config) -> None:
    """Tags are markers."""
    config.addinivalue_line("markers", "slow: waits for the clock of the node; runs where IGGY_BDD_SLOW is set")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what waits for the clock of the node, unless that is wanted."""
    if os.environ.get("IGGY_BDD_SLOW"):
        return
    slow = [item for item in items if item.get_closest_marker("slow")]
    config.hook.pytest_deselected(items=slow)
    items[:] = [item for item in items if item not in slow]


def pytest_sessionstart() -> None:
    """Results are those of this run."""
    if RESULTS:
        Path(RESULTS).write_text("")


def pytest_bdd_before_scenario(request: pytest.FixtureRequest, feature: Feature, scenario: Scenario) -> None:
    """Which scenario a test runs."""
    request.node.user_properties.append(("scenario", f"{feature.name}\t{scenario.name}"))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Notes how a scenario ended, for the table of scenarios and languages."""
    if RESULTS and report.when == "call":
        name = dict(report.user_properties).get("scenario")
        with Path(RESULTS).open("a") as results:
            results.write(f"{name}\t{report.outcome}\n")
