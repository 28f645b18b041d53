"""A served small world for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from burrowmq.config.store import StoreConfig
from tests.support.bench.node import NodeBench
from tests.support.bench.world import small_world
from tests.support.served import Served, serving


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """The HTTP API over `small_world`."""
    with serving(tmp_path / "data", small_world) as running:
        yield running


@pytest.fixture
def served_files(tmp_path: Path) -> Iterator[Served]:
    """The same, of a node whose queues have files of their own, however small: a test damages them."""
    store = StoreConfig(commit_log="off")
    with serving(tmp_path / "data", small_world, store=store) as running:
        yield running


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[NodeBench]:
    """The same node without a server."""
    with NodeBench(tmp_path / "data") as found:
        small_world(found)
        yield found
