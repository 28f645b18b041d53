"""A small world for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.bench.node import NodeBench
from tests.support.bench.world import small_world


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[NodeBench]:
    """A node with `small_world`."""
    with NodeBench(tmp_path / "data") as found:
        small_world(found)
        yield found
