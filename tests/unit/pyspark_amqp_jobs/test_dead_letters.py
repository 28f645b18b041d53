"""The report's text and page; counting is tested with Spark."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from pyspark_amqp_jobs.dead_letters import NEVER, Row, hour_at, html, text

HOUR = datetime(2026, 1, 2, 3)
ROWS = [
    Row("", NEVER, None, 2, 0),
    Row("a", "expired", HOUR, 10, 12),
    Row("b<", "rejected", HOUR.replace(hour=4), 5, 5),
    Row("b<", "strange", HOUR, 1, 1),
]


def test_hours_are_of_utc_wherever_the_machine_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        assert hour_at(int(HOUR.replace(tzinfo=UTC).timestamp())) == HOUR
        assert hour_at(None) is None
    finally:
        monkeypatch.undo()
        time.tzset()


def test_text() -> None:
    lines = text(ROWS).splitlines()
    assert lines[0].split("  ")[0] == "queue"
    assert lines[3] == "a      expired     2026-01-02 03:00        10      12"
    assert lines[-1] == "18 messages"
    assert text([]) == "no messages"


def test_page() -> None:
    made = html(ROWS, "dlq")
    assert "By hour and reason" in made
    assert "<b>16</b><span>dead messages</span>" in made
    assert "b&lt;" in made
    assert "b<" not in made.replace("<b>", "").replace("<br", "").replace("<body", "")
    assert "01-02 04:00: rejected 5" in made
    assert "hours are UTC: 2026-01-02 03:00 to 2026-01-02 04:00" in made
    assert "By hour" not in html([], "dlq")
    one_hour = html(ROWS[:2], "dlq")
    assert "By queue and reason" in one_hour
    assert "By hour" not in one_hour
