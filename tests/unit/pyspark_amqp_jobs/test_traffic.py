"""The traffic page; counting is tested with Spark."""

from __future__ import annotations

from pyspark_amqp_jobs.traffic import Row, html

ROWS = [
    Row("", "deliver", "q", 5, 50),
    Row("", "publish", "", 7, 70),
    Row("", "publish", "ex", 9, 90),
]


def test_page() -> None:
    made = html(ROWS, ("window (UTC)", "kind", "exchange", "messages", "bytes"), "trace")
    assert "<b>16</b><span>published</span>" in made
    assert "<b>5</b><span>delivered</span>" in made
    assert "(default): publish 7" in made
    assert "Messages by exchange" in made
