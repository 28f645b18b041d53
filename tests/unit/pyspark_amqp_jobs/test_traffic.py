"""The traffic page; counting is tested with Spark."""

from __future__ import annotations

import argparse
import io

import pytest

from pyspark_amqp_jobs.arguments import BadArguments
from pyspark_amqp_jobs.traffic import Row, add_arguments, html, run

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


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(list(words))


def test_windows_need_an_archive() -> None:
    with pytest.raises(BadArguments, match="--window goes with --from"):
        run(None, parsed("--queue", "traced", "--window", "1 minute"), io.StringIO())


def test_no_option_of_a_store_that_cannot_be_named() -> None:
    with pytest.raises(SystemExit):
        parsed("--queue", "traced", "--queues", "a")
