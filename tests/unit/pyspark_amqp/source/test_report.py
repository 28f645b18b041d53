from __future__ import annotations

import logging
import subprocess
import sys

import pytest

pytest.importorskip("pyarrow", reason="needs pyarrow: run by `make test-spark`")

from pyspark_amqp.source.report import figures, tell
from pyspark_amqp.spool import Mark, Offset, Outcome, Share

OFFSET = Offset("s", 7, {"a": Share(100, 2), "b": Share(20, 1)})
FIRST, SECOND, THIRD = OFFSET.pieces()
OUTCOME = Outcome(OFFSET, 4096, 1, {FIRST: Mark(30, 5, 2), SECOND: None, THIRD: Mark(None, 1)})


def test_a_batchs_figures() -> None:
    assert figures(OUTCOME) == {
        "seq": 7,
        "planned": 120,
        "pieces": 3,
        "spool_bytes": 4096,
        "in_doubt": 1,
        "redelivered": 6,
        "left_out": 2,
        "cut_short": 1,
    }


def test_a_batch_is_a_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "pyspark_amqp"):
        tell(OUTCOME, {"a": 3, "b": 4})
    assert caplog.messages == [
        "batch of stream s: seq=7 planned=120 pieces=3 spool_bytes=4096 in_doubt=1 redelivered=6 left_out=2 "
        "cut_short=1 ready=7"
    ]


CODE = """
from pyspark_amqp.source.report import tell
from pyspark_amqp.spool import Offset, Outcome
for seq in (1, 2):
    tell(Outcome(Offset("s", seq), 0, 0, {}), {})
"""


def test_where_nobody_configured_logging_it_is_on_standard_error() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], check=True, capture_output=True, text=True)
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert [line.partition("batch of stream ")[2][:8] for line in lines] == ["s: seq=1", "s: seq=2"]
