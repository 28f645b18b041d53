"""Cells of the shovel's matrix: some with every run, all of them in `make test-long`."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from tests.crash.shovel_matrix import Cell, Found, Matrix, cells, compared, expected, markdown
from tests.support.broker_process import external_target
from tests.support.rabbitmq_node import is_installed

CELLS = (
    Cell("on-confirm", "here", "here", "source"),
    Cell("on-confirm", "burrow", "here", "destination"),
    Cell("on-publish", "here", "burrow", "destination's link"),
)


@pytest.mark.slow
@pytest.mark.skipif(external_target() is not None, reason="kills processes of its own")
def test_a_killed_end_loses_nothing_that_was_promised(tmp_path: Path) -> None:
    with contextlib.closing(Matrix(tmp_path, has_rabbit=False, count=1000)) as matrix:
        for cell in CELLS:
            found = matrix.run(cell)
            assert expected(cell, found) == "", (cell, found)


@pytest.mark.long
@pytest.mark.skipif(external_target() is not None, reason="kills processes of its own")
def test_every_cell_keeps_its_promise(tmp_path: Path) -> None:
    has_rabbit = is_installed()
    with contextlib.closing(Matrix(tmp_path, has_rabbit=has_rabbit)) as matrix:
        for cell in cells(("burrow", "rabbit") if has_rabbit else ("burrow",)):
            found = matrix.run(cell)
            assert expected(cell, found) == "", (cell, found)


def found(lost: int = 0, doubled: int = 0, reordered: int = 0, left: int = 0) -> Found:
    return Found(lost, doubled, reordered, left, 0)


@pytest.fixture
def to_us() -> Cell:
    return Cell("on-confirm", "burrow", "here", "source")


def test_what_arrived_is_compared() -> None:
    assert compared(4, [0, 1, 2, 3]) == (0, 0, 0)
    assert compared(4, [0, 1, 0, 1, 2, 3]) == (0, 2, 0)
    assert compared(4, [0, 2, 1]) == (1, 0, 1)


def test_what_a_mode_promises(to_us: Cell) -> None:
    assert expected(to_us, found(doubled=9)) == ""
    assert expected(to_us, found(lost=1, reordered=1)) == "order, lost"
    assert expected(to_us, found(left=1)) == "left"
    published = to_us._replace(mode="on-publish")
    assert expected(published, found(lost=1)) == "lost"
    assert expected(published._replace(victim="destination"), found(lost=1)) == ""
    assert expected(published._replace(victim="destination"), found(doubled=1)) == "doubled"
    assert expected(to_us._replace(mode="no-ack", victim="destination"), found(lost=1)) == ""


def test_the_cells_are_all_there() -> None:
    ours = list(cells(("burrow",)))
    assert len(ours) == len(set(ours)) == 3 * (1 + 3 + 3 + 4)
    assert len(list(cells(("burrow", "rabbit")))) == 3 * (1 + 6 + 6 + 4 * 3)


def test_the_table_has_a_column_for_each_pair_of_ends(to_us: Cell) -> None:
    local = Cell("no-ack", "here", "here", "source")
    assert markdown(
        [(to_us, found(doubled=9)), (local, found(lost=2, reordered=1))]
    ).splitlines() == [
        "| ack mode | killed | burrow → here | here → here |",
        "|---|---|---|---|",
        "| on-confirm | source | 0/9 |  |",
        "| no-ack | source |  | 2/0/1 |",
    ]
