"""Arithmetic and reading of counted instructions, and that the rows take and lose what they say.

Covers: bench/instructions.py, bench/instructions_rows.py, bench/reference.py
"""

from __future__ import annotations

import pytest

from bench import instructions, instructions_rows
from bench.instructions import Row, Run

SAID = """==13321== Cachegrind, a cache and branch-prediction profiler
==13321== Command: python row 40
==13321==
==13321== I   refs:      790,187,831
"""


def test_what_valgrind_says_is_read() -> None:
    assert instructions.parse(SAID, "40000\n") == Run(790_187_831, 40_000)


@pytest.mark.parametrize("said", ["", SAID + SAID, "==1== Valgrind: cannot execute"], ids=repr)
def test_what_has_no_one_count_is_refused(said: str) -> None:
    with pytest.raises(ValueError, match="valgrind gave no count"):
        instructions.parse(said, "1")


def test_a_message_takes_what_the_longer_run_took_more() -> None:
    assert instructions.per_message(Run(1000, 10), Run(1500, 20)) == 50


@pytest.mark.parametrize("more", [Run(1500, 10), Run(1000, 20), Run(900, 20)])
def test_a_longer_run_that_is_none_is_refused(more: Run) -> None:
    with pytest.raises(ValueError, match="took no more than the shorter one"):
        instructions.per_message(Run(1000, 10), more)


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
        (["--reads", "0"], "--reads and --jobs are 1 at least"),
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
def test_a_step_takes_the_messages_that_it_counts(row: str) -> None:
    taken = instructions_rows.ROWS[row]()
    taken.take()
    taken.take()
    assert taken.published() == 2 * taken.messages > 100
    consumed = [each.session.channels[1].metrics for each in taken.others]
    assert all(
        each.ack + each.deliver_no_ack == each.deliver + each.deliver_no_ack == taken.published()
        for each in consumed
    )
    taken.close()
