"""Two connectors' rates: round by round, and what the rounds are enough to say.

Covers: bench/spark_reference.py
"""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="needs Spark: run by `make test-spark`")

from bench.report import Change
from bench.spark_reference import CONNECTOR, mixed, table, verdict


@pytest.mark.parametrize(
    ("ratio", "low", "high", "said"),
    [
        (1.01, 0.97, 1.04, "no worse"),
        (1.02, 0.97, 1.06, "unsettled"),
        (1.20, 1.06, 1.40, "WORSE"),
        (1.04, None, None, "no worse (few rounds)"),
        (1.06, None, None, "worse (few rounds)"),
    ],
)
def test_what_the_rounds_say(
    ratio: float, low: float | None, high: float | None, said: str
) -> None:
    assert verdict(Change(ratio, low, high)) == said


def test_a_round_is_compared_with_itself() -> None:
    old = [{"sink_1": 100.0 * speed} for speed in (1, 2, 3, 4, 5, 6)]
    new = [{"sink_1": 102.0 * speed, "drain": 1.0} for speed in (1, 2, 3, 4, 5, 6)]
    lines = table(old, new).splitlines()
    assert len(lines) == 3, "a row that only one side has is not compared"
    assert lines[2].endswith("| 350 | 357 | -2.0% | -2.0% to -2.0% | no worse |")


def test_the_connector_alone_is_another(tmp_path: Path) -> None:
    place = mixed("HEAD", tmp_path)
    assert sorted(each.name for each in place.iterdir()) == ["bench", *CONNECTOR, "tests"]
    assert not (place / CONNECTOR[0]).is_symlink()
    assert (place / "bench").is_symlink()
    again = tmp_path / "again"
    again.mkdir()
    with pytest.raises(SystemExit, match=r"git archive nothing-of-this: .*not a valid"):
        mixed("nothing-of-this", again)
