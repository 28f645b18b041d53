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


@pytest.fixture
def stopped(tmp_path: Path) -> Iterator[Served]:
    """A node whose application is stopped."""
    with serving(tmp_path / "data") as running:
        running.stop_application()
        yield running
