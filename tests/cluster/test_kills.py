"""Nothing confirmed is lost and nothing invented while servers and front-ends are killed; and what would be is seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.kills import Tally, run


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("nats_server")
def test_kills_lose_and_invent_nothing(tmp_path: Path) -> None:
    found = run(tmp_path, cycles=4, seed=2)
    assert len(found.confirmed) > 100
    assert (found.lost, found.invented, found.reordered) == (0, 0, 0), found


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("nats_server")
def test_servers_that_are_suspended_lose_nothing_and_a_minority_confirms_nothing(
    tmp_path: Path,
) -> None:
    found = run(tmp_path, cycles=3, seed=1, kinds=("suspend", "minority"))
    assert len(found.kills) == 2
    assert len(found.confirmed) > 20
    assert (found.lost, found.invented, found.minority) == (0, 0, 0), found


def test_what_goes_wrong_is_counted() -> None:
    tally = Tally(confirmed={0, 1, 2, 3}, tried=4)
    for number in (0, 2, 1, 7):
        tally.see(number, is_redelivered=False)
    assert (tally.lost, tally.invented, tally.reordered) == (1, 1, 1)
    tally.seen[0] -= 2.0
    tally.see(0, is_redelivered=True)
    assert tally.again == 1
