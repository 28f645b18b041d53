"""Nodes that come to the end of their memory under load. The command runs more of them: tests/crash/no_memory.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.no_memory import SCENARIOS, squeeze
from tests.support.broker_process import external_target

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(external_target() is not None, reason="breaks a process of its own"),
]


@pytest.mark.parametrize("number", range(len(SCENARIOS)))
def test_a_node_without_memory_ends_and_has_what_it_confirmed(tmp_path: Path, number: int) -> None:
    cycle = squeeze(tmp_path, number, 500)
    assert not cycle.violations
    assert cycle.outcome == "goes on" or cycle.outcome.startswith("ends with ")
