"""A few power cuts of the servers' file systems; `python -m tests.cluster.power_cuts` runs as many as are asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.power_cuts import run
from tests.crash.power_cuts import reason_against


@pytest.fixture(autouse=True)
def disk() -> None:
    """Where none can be mounted these tests are not run."""
    if reason := reason_against("ext4"):
        pytest.skip(reason)


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("nats_server")
def test_servers_that_sync_always_lose_nothing_with_the_power(tmp_path: Path) -> None:
    found = run(tmp_path, one=3, every=2, seed=3)
    assert found.confirmed > 2_000
    assert found.is_clean, found


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("nats_server")
def test_a_cut_of_all_takes_what_no_sync_stood_for(tmp_path: Path) -> None:
    found = run(tmp_path, one=0, every=1, seed=1, sync="2m", share_back=0.0, up_s=(6.0, 6.0))
    assert found.lost > 0
