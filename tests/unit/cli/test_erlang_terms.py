"""Tables as Erlang prints them; each expectation was printed by rabbitmqctl 3.10.8."""

from __future__ import annotations

from typing import Any

import pytest

from burrowmq.cli import render
from burrowmq.cli.erlang_terms import printed


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ([], ""),
        (
            [["x-queue-type", "longstr", "classic"], ["x-max-length", "signedint", 7]],
            '{<<"x-queue-type">>,longstr,<<"classic">>}{<<"x-max-length">>,signedint,7}',
        ),
        ([["x", "bool", True], ["y", "bool", False]], '{<<"x">>,bool,true}{<<"y">>,bool,false}'),
        ([["x", "void", None]], '{<<"x">>,void,undefined}'),
        ([["x", "timestamp", 1600000000]], '{<<"x">>,timestamp,1600000000}'),
        ([["x", "binary", "gr\xfc"]], '{<<"x">>,binary,<<"gr\xfc">>}'),
        ([["x", "binary", "\0\xff"]], '{<<"x">>,binary,<<0,255>>}'),
        ([["x", "longstr", ""]], '{<<"x">>,longstr,<<>>}'),
        ([["x", "longstr", 'a"b\\\n']], '{<<"x">>,longstr,<<"a\\"b\\\\\\n">>}'),
        ([["x", "table", []], ["y", "array", []]], '{<<"x">>,table,[]}{<<"y">>,array,[]}'),
        ([["x", "decimal", [2, 314]]], '{<<"x">>,decimal,{2,314}}'),
    ],
)
def test_fields_stand_side_by_side(fields: list[Any], line: str) -> None:
    assert printed(fields) == [line]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"), (-0.0, "-0.0"), (0.1, "0.1"), (1.5, "1.5"), (2.0, "2.0"), (1000.0, "1.0e3"), (100.0, "100.0"),
        (123456.0, "123456.0"), (1e5, "1.0e5"), (12e5, "1.2e6"), (1e20, "1.0e20"), (1.25e-7, "1.25e-7"),
        (0.001, "0.001"), (0.0123, "0.0123"), (-4.5, "-4.5"), (0.10000000149011612, "0.10000000149011612"),
    ],
)  # fmt: skip
def test_numbers_have_the_fewest_digits(value: float, text: str) -> None:
    assert printed([["x", "double", value]]) == [f'{{<<"x">>,double,{text}}}']


def test_what_is_too_long_is_broken_at_its_structure() -> None:
    table = [["k", "signedint", 1], ["s", "longstr", "x"], ["n", "table", [["m", "bool", True]]]]
    assert printed([["x-a", "table", table]]) == [
        '{<<"x-a">>,table,',
        ' [{<<"k">>,signedint,1},',
        '  {<<"s">>,longstr,<<"x">>},',
        '  {<<"n">>,table,[{<<"m">>,bool,true}]}]}',
    ]
    array = [["signedint", 1], ["longstr", "two"], ["table", [["k", "signedint", 3]]],
             ["array", [["bool", True], ["void", None]]]]  # fmt: skip
    assert printed([["x-a", "array", array]]) == [
        '{<<"x-a">>,array,',
        " [{signedint,1},",
        '  {longstr,<<"two">>},',
        '  {table,[{<<"k">>,signedint,3}]},',
        "  {array,[{bool,true},{void,undefined}]}]}",
    ]


def test_octets_are_broken_where_the_line_ends() -> None:
    first, *rest = printed([["x", "binary", bytes(range(70)).decode("latin-1")]])
    assert first == '{<<"x">>,binary,'
    assert [line[:5] for line in rest] == [" <<0,", "   28", "   53"]
    assert all(len(line) <= 80 for line in rest)


def test_a_cell_of_several_lines_makes_its_row_as_high() -> None:
    inner = [[f"key-{number}", "longstr", "v" * 20] for number in range(3)]
    value = {"octets": [["x", "table", inner]]}
    lines = list(
        render.lines(
            "pretty_table", ["name", "a"], [["q", value], ["r", {"octets": []}]], headers=True
        )
    )
    assert [line.split("│")[1].strip() for line in lines if line.startswith("│")] == [
        "name", "q", "", "", "", "r",
    ]  # fmt: skip
    assert len({len(line) for line in lines}) == 1
