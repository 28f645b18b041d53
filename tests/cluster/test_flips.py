"""Bits flipped in one server's files cost no confirmed message; what would be lost, or changed, is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.flips import run


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("nats_server")
def test_a_bit_in_one_of_three_replicas_loses_nothing(tmp_path: Path) -> None:
    found = run(tmp_path, flips=24, queues=12, seed=5)
    assert sum(row.flips for row in found.values()) == 24
    assert len(found) > 4
    assert not any(row.lost or row.changed for row in found.values()), found
