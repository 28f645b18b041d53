"""Cells of the matrix of system calls that show each outcome: the node goes on, or ends by itself within two seconds.

The whole table: `python -m tests.crash.syscall_matrix --jobs 4`, with `--commit-log` and `--starts` too, then `--write`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.crash.syscall_cycles import TIMES, Cell, fill, without_way_out
from tests.crash.syscall_matrix import (
    BEGIN,
    END,
    FAULTS,
    PAGE,
    cells,
    census,
    result_of,
    tables,
    write,
)
from tests.crash.syscall_sites import CALLS, STORE, Site, kind_of, missing, paths_of, seen, unknown
from tests.support.broker_process import external_target

CELLS = (
    Cell(Site("openat"), "EIO", "burst"),
    Cell(Site("pread"), "EIO", "burst"),
    Cell(Site("pread", "shared store"), "ENOSPC", "burst", version=1),
    Cell(Site("pwrite"), "EIO", "burst"),
    Cell(Site("pwrite", "version 1"), "ENOSPC", "burst", version=1),
    Cell(Site("pwrite"), "SIGKILL", "burst", version=1),
    Cell(Site("fdatasync"), "EIO", "burst"),
    Cell(Site("fdatasync"), "ENOSPC", "burst", version=1),
    Cell(Site("unlink"), "EIO", "burst"),
    Cell(Site("fstat"), "EIO", "burst"),
    Cell(Site("close"), "EIO", "n-th"),
    *(
        Cell(Site(call), fault, "burst", has_log=True)
        for call in ("pwrite", "fdatasync", "unlink")
        for fault in ("EIO", "ENOSPC")
    ),
    Cell(Site("pwrite"), "SIGKILL", "n-th", has_log=True),
    Cell(Site("pread", "index"), "EIO", "burst", in_start=True),
    Cell(Site("pwrite", "definitions"), "ENOSPC", "burst", in_start=True),
    Cell(Site("openat", "commit log"), "SIGKILL", "first", has_log=True, in_start=True),
)
NEEDS = (
    pytest.mark.long,
    pytest.mark.needs_server,
    pytest.mark.skipif(shutil.which("strace") is None, reason="strace makes the calls fail"),
    pytest.mark.skipif(external_target() is not None, reason="breaks a process of its own"),
)


def needing_strace(test: Callable[..., None]) -> Callable[..., None]:
    """Long, with a node of its own."""
    for mark in NEEDS:
        test = mark(test)
    return test


@needing_strace
@pytest.mark.parametrize("cell", CELLS, ids=lambda one: one.name)
def test_a_call_that_fails_costs_no_confirmed_message(tmp_path: Path, cell: Cell) -> None:
    found = fill(replace(cell, hit=[], violations=[]), tmp_path / "cell")
    assert found.violations == []
    assert found.outcome != "not reached"


@needing_strace
@pytest.mark.parametrize("has_log", [False, True])
def test_every_call_of_a_node_has_its_row(tmp_path: Path, has_log: bool) -> None:
    """A node that serves is traced, and the start after its death."""
    text, without = census(tmp_path, has_log=has_log, version=2)
    assert "serving" in text
    assert "NO ROW" not in text
    assert without == set()


@pytest.mark.parametrize("in_start", [False, True])
def test_the_table_has_a_cell_for_each_site_fault_and_time(in_start: bool) -> None:
    found = list(cells(list(CALLS), FAULTS, list(TIMES), has_log=True, in_start=in_start))
    assert len({one.name for one in found}) == len(found)
    each = {one.site for one in found}
    assert len(found) == len(each) * len(FAULTS) * len(TIMES)
    assert in_start or {Site(call) for call in CALLS} < each
    assert Site("pwrite", "commit log") in each
    without_log = {one.site for one in cells(list(CALLS), FAULTS, list(TIMES), in_start=in_start)}
    assert {site.kind for site in each - without_log} == {"commit log"}


def test_a_cell_is_a_row_and_says_what_is_wrong() -> None:
    cell = Cell(Site("pwrite"), "EIO", "first", 2, False, False, ["index", "bodies"], "goes on")
    assert str(cell) == "| pwrite | EIO | first | 2 | index, bodies | goes on |"
    cell.violations.append("lost=1")
    assert str(cell).endswith("| VIOLATION goes on: lost=1 |")


def test_a_node_that_ends_has_to_say_what_to_do() -> None:
    told = "burrowmq-server: cannot start: a.db: open failed: no (EIO); look at the disk and at"
    untold = "2026 [critical] store_failed reason='a.db: commit failed: no' effect='the node ends'"
    assert without_way_out(f"{told}\n2026 [info] node_stopped\n") == []
    assert without_way_out(f"{told}\n{untold}\n") == [f"it does not say what to do: {untold}"]


def test_what_came_of_the_cells_is_two_tables(tmp_path: Path) -> None:
    found = [
        Cell(Site("pwrite"), "EIO", "first", hit=["index"], outcome="goes on"),
        Cell(Site("pwrite"), "EIO", "n-th", hit=["index"], outcome="ends with 74"),
        Cell(Site("pwrite"), "EIO", "burst", hit=["index"], outcome="goes on"),
        Cell(Site("pwrite", "index"), "EIO", "burst"),
        Cell(Site("pread", "index"), "SIGKILL", "first", in_start=True, outcome="killed"),
        Cell(Site("pread", "index"), "EIO", "first", in_start=True, outcome="goes on"),
    ]
    found[-1].violations.append("lost=1")
    text = tables([result_of(cell) for cell in found])
    assert "While it serves: 4 cells, 3 with a call that failed, 0 violations." in text
    assert "| `pwrite` | goes on 2, ends with 74 1 |  |  |  |" in text
    assert "In a start after a kill: 2 cells, 2 with a call that failed, 1 violations." in text
    assert "| `pread`: index | VIOLATION 1 |  |  | killed 1 |" in text
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}old\n{END}after\n")
    write(page, [result_of(cell) for cell in found])
    assert page.read_text() == f"before\n{BEGIN}{text}{END}after\n"


def test_the_page_has_a_place_for_the_tables_and_they_have_no_violation() -> None:
    text = PAGE.read_text()
    assert text.count(BEGIN) == text.count(END) == 1
    assert "VIOLATION" not in text


def test_lines_of_a_trace_are_told_by_their_file() -> None:
    line = 'pwrite64(23</x/data/n/queues/AB/0.%s>, "..."..., 4096, 0) = -1 EIO (I/O) (INJECTED)'
    assert kind_of(line % "qi") == "index"
    assert kind_of(line % "qs") == "bodies"
    assert kind_of("fdatasync(9</x/data/commit_log/0.log>) = -1 EIO") == "commit log"
    assert kind_of('openat(AT_FDCWD, "/proc/self/statm", O_RDONLY) = -1') == "/proc"


def test_a_kind_has_the_files_that_are_there_and_the_next_ones(tmp_path: Path) -> None:
    queue, store = tmp_path / "data" / "v" / "queues" / "q", tmp_path / "data" / "v" / "msg_store_p"
    for place in (queue, store):
        place.mkdir(parents=True)
    for path in (queue / "3.qi", queue / ".queue_name", store / "7.g2.seg"):
        path.touch()
    data = tmp_path / "data"
    assert str(queue / "4.qi") in paths_of("index", data)
    assert {str(store), str(store / "7.g2.seg"), str(store / "8.g2.seg")} <= set(
        paths_of("shared store", data)
    )
    assert paths_of("bodies", data) == []
    assert {str(data), str(queue / ".queue_name"), str(queue / "3.qi")} <= set(
        paths_of(STORE, data)
    )


def test_calls_without_a_row_are_told() -> None:
    lines = [
        '12 pwrite64(3</x/data/v/queues/q/0.qi>, "", 1, 0) = 1',
        '12 1.5 pwritev2(3</x/data/v/queues/q/0.qi>, "", 1, 0) = 1',
        "13 copy_file_range(3</x/data/a>, 4) = 1",
        "13 futex(0x1, FUTEX_WAIT) = 0",
        '14 link("/x/data/v/queues/q/0.qi", "b") = 0',
    ]
    trace = "\n".join(lines)
    assert unknown(trace) == {"copy_file_range"}
    assert seen(trace) == {Site("pwrite", "index"): 2, Site("link", "index"): 1}
    assert missing(seen(trace), in_start=False) == []
    assert missing(seen(trace), in_start=True) == [Site("link", "index"), Site("pwrite", "index")]
