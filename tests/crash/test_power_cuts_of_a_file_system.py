"""A few power cuts of a real ext4 and XFS; `python -m tests.crash.power_cuts` runs as many as are asked for."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.crash.kill_cycles import SCENARIOS, WITH_LOG, run
from tests.crash.power_cuts import CUT, KINDS, PowerCycle, reason_against
from tests.support.broker_process import external_target

pytestmark = pytest.mark.skipif(external_target() is not None, reason="cuts a disk of its own")
# With compaction and a consumer; with declarations and a commit log.
CHOSEN = (SCENARIOS[1], next(one for one in WITH_LOG if one.disturbance == "declare"))


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """Each kind of file system that can be mounted here."""
    if reason := reason_against(request.param):
        pytest.skip(reason)
    return str(request.param)


@pytest.mark.slow
def test_nothing_confirmed_is_lost_with_the_power(tmp_path: Path, kind: str) -> None:
    report = run(2, 1500, 1, tmp_path, CHOSEN, partial(PowerCycle, kind))
    assert report.is_clean, (report.summary(), report.problems)
    assert report.confirmed >= 3000


@pytest.mark.slow
def test_a_cut_takes_what_no_sync_stood_for(tmp_path: Path, kind: str) -> None:
    without_sync = (replace(SCENARIOS[0], confirm="written"),)
    report = run(1, 1500, 1, tmp_path, without_sync, partial(PowerCycle, kind, share_back=0.0))
    assert report.verdict.lost > 0
    assert replace(report.verdict, lost=0).is_clean
    assert not report.problems


@pytest.mark.long
def test_forty_cuts(tmp_path: Path, kind: str) -> None:
    report = run(40, 3000, 1, tmp_path, CUT, partial(PowerCycle, kind))
    assert report.is_clean, (report.summary(), report.problems)
