"""A standalone cluster of two workers, the spool on an S3-compatible server, everything killed (-9) in turn."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="needs Spark: run by `make test-spark`")

from tests.spark.cluster import run
from tests.support.broker_process import external_target
from tests.support.versitygw import program

pytestmark = [
    pytest.mark.needs_server,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(external_target() is not None, reason="kills the broker"),
]


@pytest.mark.parametrize(("messages", "kills"), [(20_000, 4)])
def test_nothing_is_lost_and_nothing_comes_twice(
    messages: int, kills: int, tmp_path: Path, tell: Callable[[str], None]
) -> None:
    """`python -m tests.spark.cluster` takes other numbers."""
    gateway = program()
    if gateway is None:
        pytest.skip("needs versitygw: install Go, or set BURROWMQ_TEST_VERSITYGW")
    seed = random.randrange(1 << 32)
    tell(f"seed {seed}")
    found = run(tmp_path, gateway, messages, kills, seed, tell)
    assert (found["rows"], found["lost"], found["twice"], found["left"]) == (messages, 0, 0, 0)
    assert found["kills"] == kills
