"""Covers: tests.support.patience."""

from __future__ import annotations

import pytest

from tests.support.patience import patient


def test_a_run_with_little_processor_waits_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BURROWMQ_TEST_PATIENCE", raising=False)
    assert patient(15) == 15
    monkeypatch.setenv("BURROWMQ_TEST_PATIENCE", "40")
    assert patient(15) == 600
