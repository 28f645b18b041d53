"""The headline, back-pressure and compaction scenarios, scaled down to seconds.

The whole ones are `python -m tests.crash.headline`, `... back_pressure` and `... compaction`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash import back_pressure, compaction, headline
from tests.support.broker_process import external_target

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(external_target() is not None, reason="needs a process of its own"),
]


def test_a_lazy_queue_keeps_its_messages_on_disk_and_restarts_with_them(tmp_path: Path) -> None:
    figures = headline.measure(tmp_path, 20_000)
    assert not figures.misses(timed=False), figures


@pytest.mark.parametrize("case", range(len(back_pressure.CASES)))
def test_neither_a_stalled_consumer_nor_a_flood_costs_memory(tmp_path: Path, case: int) -> None:
    (growth,) = back_pressure.measure(tmp_path, 120, cases=back_pressure.CASES[case : case + 1])
    assert growth.holds, growth


def test_messages_gone_at_random_free_the_disk(tmp_path: Path) -> None:
    found = compaction.measure(tmp_path, 250)
    assert found.full_bytes > found.bound_bytes * 1.2, "too small to show anything"
    assert found.holds, found


@pytest.mark.long
def test_the_whole_headline(tmp_path: Path) -> None:
    figures = headline.measure(tmp_path, 1_000_000)
    assert not figures.misses(), figures


@pytest.mark.long
@pytest.mark.parametrize("case", range(len(back_pressure.CASES)))
def test_a_gigabyte_of_back_pressure(tmp_path: Path, case: int) -> None:
    (growth,) = back_pressure.measure(tmp_path, 1000, cases=back_pressure.CASES[case : case + 1])
    assert growth.holds, growth


@pytest.mark.long
@pytest.mark.parametrize("removed", [0.5, 0.75, 0.95])
def test_a_gigabyte_of_garbage(tmp_path: Path, removed: float) -> None:
    found = compaction.measure(tmp_path, 1000, removed)
    assert found.holds, found
