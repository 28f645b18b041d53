"""Cells of the matrix of system calls that show each outcome: the node goes on, or ends by itself within two seconds.

The whole table: `python -m tests.crash.syscall_matrix`.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.crash.syscall_matrix import CALLS, FAULTS, TIMES, Cell, cells, fill, kind_of
from tests.support.broker_process import external_target

CELLS = (
    Cell("openat", "EIO", "burst"),
    Cell("pread", "EIO", "burst"),
    Cell("pread", "ENOSPC", "burst", version=1),
    Cell("pwrite", "EIO", "burst"),
    Cell("pwrite", "ENOSPC", "burst", version=1),
    Cell("pwrite", "SIGKILL", "burst", version=1),
    Cell("fdatasync", "EIO", "burst"),
    Cell("fdatasync", "ENOSPC", "burst", version=1),
    Cell("unlink", "EIO", "burst"),
    Cell("fstat", "EIO", "burst"),
    *(
        Cell(call, fault, "burst", has_log=True)
        for call in ("pwrite", "fdatasync", "unlink")
        for fault in ("EIO", "ENOSPC")
    ),
    Cell("pwrite", "SIGKILL", "n-th", has_log=True),
)


@pytest.mark.long
@pytest.mark.needs_server
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace makes the calls fail")
@pytest.mark.skipif(external_target() is not None, reason="breaks a process of its own")
@pytest.mark.parametrize(
    "cell", CELLS, ids=lambda one: f"{one.call}-{one.fault}-{one.times}{'-log' * one.has_log}"
)
def test_a_call_that_fails_costs_no_confirmed_message(tmp_path: Path, cell: Cell) -> None:
    found = fill(replace(cell, hit=[], violations=[]), tmp_path / "cell")
    assert found.violations == []
    assert found.outcome != "not reached"


def test_the_table_has_a_cell_for_each_call_fault_and_time() -> None:
    found = {(one.call, one.fault, one.times) for one in cells(list(CALLS), FAULTS, list(TIMES))}
    assert len(found) == len(CALLS) * len(FAULTS) * len(TIMES)


def test_a_cell_is_a_row_and_says_what_is_wrong() -> None:
    cell = Cell("pwrite", "EIO", "first", 2, False, ["index", "index", "bodies"], "goes on")
    assert str(cell) == "| pwrite | EIO | first | 2 | index, bodies | goes on |"
    cell.violations.append("lost=1")
    assert str(cell).endswith("| VIOLATION goes on: lost=1 |")


def test_lines_of_a_trace_are_told_by_their_file() -> None:
    line = 'pwrite64(23</x/data/n/queues/AB/0.%s>, "..."..., 4096, 0) = -1 EIO (I/O) (INJECTED)'
    assert kind_of(line % "qi") == "index"
    assert kind_of(line % "qs") == "bodies"
    assert kind_of("fdatasync(9</x/data/commit_log/0.log>) = -1 EIO") == "commit log"
    assert kind_of('openat(AT_FDCWD, "/proc/self/statm", O_RDONLY) = -1') == "/proc"
