"""Networks are cut and servers suspended: nothing confirmed is lost, and who has no majority confirms nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.partitions import run


@pytest.mark.timeout(400)
@pytest.mark.usefixtures("nats_server")
def test_networks_that_are_cut_lose_nothing_and_a_minority_confirms_nothing(tmp_path: Path) -> None:
    kinds = ("minority", "split", "front-end", "server", "two-paused")
    found = run(tmp_path, cuts=5, seed=5, kinds=kinds)
    assert found.confirmed > 5_000
    assert found.is_clean, found
