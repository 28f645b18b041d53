"""A served small world for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.bench.world import small_world
from tests.support.served import Served, serving


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """The HTTP API over `small_world`."""
    with serving(tmp_path / "data", small_world) as running:
        yield running


@pytest.fixture(scope="module")
def stays_stopped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The same for all tests of a module, none of which starts it."""
    with serving(tmp_path_factory.mktemp("stopped")) as running:
        running.stop_application()
        yield running


@pytest.fixture
def stopped(tmp_path: Path) -> Iterator[Served]:
    """A node whose application is stopped."""
    with serving(tmp_path / "data") as running:
        running.stop_application()
        yield running
