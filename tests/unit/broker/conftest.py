"""A node whose queues have files of their own, for tests of several directories."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from burrowmq.config.store import StoreConfig
from tests.support.bench.node import NodeBench


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[NodeBench]:
    """It has no commit log, so that a disk that refuses one queue's files refuses that queue's messages."""
    with NodeBench(tmp_path, store=StoreConfig(commit_log="off")) as found:
        yield found
