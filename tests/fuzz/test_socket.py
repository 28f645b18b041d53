"""The socket fuzz, scaled down; `python -m tests.fuzz.socket_fuzz` is the whole of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.socket_fuzz import run
from tests.support.broker_process import external_target

pytestmark = [
    pytest.mark.needs_server,
    pytest.mark.slow,
    pytest.mark.skipif(external_target() is not None, reason="needs a process of its own"),
]


@pytest.mark.parametrize("seed", [1, 2])
def test_bad_frames_neither_kill_nor_fatten_the_broker(tmp_path: Path, seed: int) -> None:
    outcome = run(tmp_path, 4000, seed)
    assert outcome.holds, outcome
    assert outcome.frames >= 4000


@pytest.mark.long
def test_a_hundred_thousand_bad_frames(tmp_path: Path) -> None:
    outcome = run(tmp_path, 100_000, seed=3)
    assert outcome.holds, outcome
