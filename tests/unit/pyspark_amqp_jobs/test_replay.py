"""What a replay refuses, and what it does to headers; publishing is tested with Spark."""

from __future__ import annotations

import argparse

import pytest

from pyspark_amqp.wire.table import decode_table, encode_table
from pyspark_amqp_jobs import replay
from pyspark_amqp_jobs.arguments import BadArguments


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    replay.add_arguments(parser)
    return parser.parse_args(["--from", "/a", *words])


def test_what_does_not_go_together() -> None:
    replay.check(parsed("--to-queue", "q", "--drop", "expiration, user_id"))
    for words, text in (
        (["--to-queue", "q", "--routing-key", "k"], "--routing-key goes with --to-exchange"),
        (["--to-queue", "q", "--rate", "0"], "--rate is at least 1"),
        (["--to-queue", "q", "--rate", "3", "--tasks", "4"], "--rate is at least --tasks"),
        (["--to-queue", "q", "--drop", "colour"], "no property colour"),
    ):
        with pytest.raises(BadArguments, match=text):
            replay.check(parsed(*words))


def test_headers_are_changed() -> None:
    deaths = {"x-first-death-queue": "q", "x-last-death-reason": "expired"}
    table = encode_table({"k": 5, "x-death": [{"queue": "q"}], **deaths})
    only = encode_table({"x-death": [{"queue": "q"}]})
    bad = b"\x00\x00\x00\x09bad"
    stripped = replay.Change(parsed("--to-queue", "q", "--strip-deaths"))
    assert decode_table(stripped(table) or b"") == {"k": 5}
    assert [stripped(one) for one in (None, only, bad)] == [None, None, bad]
    marked = replay.Change(parsed("--to-queue", "q", "--mark", "me"))
    for one in (table, None, only):
        assert decode_table(marked(one) or b"")["x-replayed-from"] == "me"
    assert stripped.is_needed
    assert marked.is_needed
    assert not replay.Change(parsed("--to-queue", "q")).is_needed
