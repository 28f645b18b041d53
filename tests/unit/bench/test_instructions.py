"""Arithmetic and reading of counted instructions, and that the rows take and lose what they say.

Covers: bench/instructions.py, bench/instructions_rows.py, bench/reference.py
"""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import instructions, instructions_rows
from bench.instructions import Row, Run

COUNTED = """==10== Cachegrind, a cache and branch-prediction profiler
==11==
==11== I   refs:      1,000
==12== I   refs:      1,010
==13== I   refs:      2,000
==14== I   refs:      2,510
==10== I   refs:      1,100
"""
RUNS = [Run(1000, 0), Run(1010, 0), Run(2000, 10), Run(2510, 20)]


def test_what_valgrind_says_is_read() -> None:
    assert instructions.parse(COUNTED, "11 0\n12 0\n13 10\n14 20\n") == RUNS


@pytest.mark.parametrize(
    ("counted", "printed"), [("", "11 0\n"), (COUNTED, "15 0\n"), (COUNTED, "")]
)
def test_what_has_no_count_is_refused(counted: str, printed: str) -> None:
    with pytest.raises(ValueError, match="valgrind gave no count"):
        instructions.parse(counted, printed)


def test_a_message_takes_what_the_longer_run_took_more_without_the_parents_part() -> None:
    assert instructions.per_message(RUNS) == [50]
    assert instructions.per_message([*RUNS, Run(3000, 10), Run(3030, 20)]) == [50, 2]


@pytest.mark.parametrize("more", [Run(2510, 10), Run(2010, 20), Run(900, 20)])
def test_a_longer_run_that_is_none_is_refused(more: Run) -> None:
    with pytest.raises(ValueError, match="took no more than the shorter one"):
        instructions.per_message([*RUNS[:3], more])


def test_the_table_names_what_takes_more() -> None:
    rows = [Row("a", 1000.0, 1019.0), Row("b", 1000.0, 1021.0), Row("c", 2000.0, 1000.0)]
    assert instructions.table(rows, 2.0).splitlines()[2:] == [
        "| a | 1,000.0 | 1,019.0 | +1.90 % |  |",
        "| b | 1,000.0 | 1,021.0 | +2.10 % | MORE |",
        "| c | 2,000.0 | 1,000.0 | -50.00 % |  |",
    ]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--only", "publish-16,none"], "no such row: none; there are publish-16,"),
        (["--reads", "0"], "--reads is 1 at least"),
        ([], "valgrind is not installed"),
    ],
)
def test_what_cannot_be_counted_is_said(
    arguments: list[str],
    text: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PATH", "")
    assert instructions.main(["--ref", "HEAD", *arguments]) == 2
    assert text in capsys.readouterr().err


def test_both_modules_have_the_same_rows() -> None:
    assert list(instructions.ROWS) == list(instructions_rows.ROWS)


@pytest.mark.parametrize("row", instructions.ROWS)
def test_a_step_takes_the_messages_that_it_counts(row: str, tmp_path: Path) -> None:
    taken = instructions_rows.ROWS[row](str(tmp_path))
    taken.take()
    taken.take()
    assert taken.published() == 2 * taken.messages > 100
    consumed = [each.session.channels[1].metrics for each in taken.others]
    assert all(
        each.ack + each.deliver_no_ack == each.deliver + each.deliver_no_ack == taken.published()
        for each in consumed
    )
    taken.close()


def test_the_rows_are_run_in_children(capfd: pytest.CaptureFixture[str]) -> None:
    instructions_rows.main(["confirms-1k:2"])
    printed = [line.split() for line in capfd.readouterr().out.splitlines()]
    assert [int(count) for _, count in printed] == [0, 0, 120, 240]
    assert len({pid for pid, _ in printed}) == 4
