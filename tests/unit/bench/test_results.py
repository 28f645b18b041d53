"""The result file keeps every measurement and refuses what it does not know."""

import json
from pathlib import Path

import pytest

from bench.results import Measure, Results, read


def test_a_written_file_reads_back_equal(tmp_path: Path) -> None:
    found = Results(True, 3, "now", {"cores": "2"}, {"rabbitmq": "3.10.8"})
    found.measures.append(Measure("restart", "rabbitmq", 1, {"clean_s": 6.5}, "lazy", "broker"))
    path = tmp_path / "deep" / "results.json"
    found.write(path)
    assert read(path) == found


def test_another_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    path.write_text(json.dumps({"format": 0}))
    with pytest.raises(ValueError, match="format 0"):
        read(path)


def test_values_are_found_by_round() -> None:
    found = Results(False, 2, "now", {}, {})
    found.measures = [Measure("idle", "burrowmq", n, {"open_s": n / 2}) for n in (0, 1)]
    assert found.of("idle", "burrowmq", "open_s") == {0: 0.0, 1: 0.5}
    assert found.of("idle", "rabbitmq", "open_s") == {}


def test_a_round_of_several_turns_has_their_median() -> None:
    found = Results(False, 1, "now", {}, {})
    found.measures = [
        Measure("idle", "burrowmq", 0, {"s": s}, turn=t) for t, s in enumerate((1.0, 9.0, 2.0))
    ]
    assert found.of("idle", "burrowmq", "s") == {0: 2.0}
    assert found.by_turn("idle", "burrowmq", "s") == {(0, 0): 1.0, (0, 1): 9.0, (0, 2): 2.0}
