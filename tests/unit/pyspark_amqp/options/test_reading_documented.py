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
)

PAGE = Path(__file__).resolve().parents[4] / "docs" / "spark.md"


def test_every_option_is_documented(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: set[str] = set()
    finish = OptionReader.finish

    def note(self: OptionReader, *arguments: object, **named: object) -> None:
        asked.update(self._asked.values())
        finish(self, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(OptionReader, "finish", note)
    for read in (read_stream_options, read_batch_options, read_sink_options):
        for options in ({}, {"mode": "drain"}, {"amqp.uri": "amqp://h"}):
            with pytest.raises(BadOptions):
                read({**options, "unknown": "1"})
    text = PAGE.read_text()
    missing = sorted(name for name in asked if f"`{name}`" not in text and f"`{name}=" not in text)
    assert len(asked) > 40
    assert missing == []
