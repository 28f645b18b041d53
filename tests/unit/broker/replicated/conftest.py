"""A front-end and servers in memory, for the tests of this directory."""

from __future__ import annotations

import pytest

from tests.support.cluster_bench import ClusterBench


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ClusterBench:
    """One front-end, nothing declared."""
    return ClusterBench(monkeypatch)
