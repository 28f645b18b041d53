"""Every option that is read stands in the documentation."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyspark_amqp.options import (
    BadOptions,
    OptionReader,
    read_batch_options,
    read_sink_options,
    read_stream_options,
    read_stream_queue_options,
)

DOCS = Path(__file__).resolve().parents[4] / "docs"
PAGES = ("spark.md", "spark-stream-queues.md")


def test_every_option_is_documented(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: set[str] = set()
    finish = OptionReader.finish

    def note(self: OptionReader, *arguments: object, **named: object) -> None:
        asked.update(self._asked.values())
        finish(self, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(OptionReader, "finish", note)
    reads = (read_stream_options, read_stream_queue_options, read_batch_options, read_sink_options)
    for read in reads:
        for options in ({}, {"mode": "drain"}, {"mode": "replay"}, {"amqp.uri": "amqp://h"}):
            with pytest.raises(BadOptions):
                read({**options, "unknown": "1"})
    text = "".join((DOCS / page).read_text() for page in PAGES)
    missing = sorted(name for name in asked if f"`{name}`" not in text and f"`{name}=" not in text)
    assert len(asked) > 40
    assert missing == []
