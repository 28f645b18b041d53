"""Plain values."""

from __future__ import annotations

from burrowmq.broker import inspect
from burrowmq.protocol.table import DecimalValue, Long, Timestamp
from tests.support.bench.node import NodeBench


def test_plain() -> None:
    given = {
        "l": Long(5),
        "b": b"x",
        "d": DecimalValue(2, 314),
        "t": Timestamp(7),
        "n": None,
        "a": [True, {"k": 1.5}],
    }
    assert inspect.plain(given) == {
        "l": 5,
        "b": "x",
        "d": 3.14,
        "t": 7,
        "n": None,
        "a": [True, {"k": 1.5}],
    }


def test_what_is_no_text_is_shown_in_base64() -> None:
    """RabbitMQ's words (rabbit_misc:utf8_safe) and its lines."""
    given = {"b": b"\xff\xfe", "t": "c\udcff", "a": ["\u00e9", b"\xc3\xa9"]}
    assert inspect.plain(given) == {
        "b": "Not UTF-8, base64 is: //4=",
        "t": "Not UTF-8, base64 is: Y/8=",
        "a": ["\u00e9", "\u00e9"],
    }
    long = "/" * 76
    assert inspect.plain(b"\xff" * 58) == f"Not UTF-8, base64 is: {long}\n/w=="
    assert inspect.plain(b"\xff" * 57) == f"Not UTF-8, base64 is: {long}\n"


def test_typed_keeps_order_and_types() -> None:
    table = inspect.typed({"z": Long(1), "a": {"b": True}, "l": ["x"]})
    assert table == {
        "table": [
            ["z", "long", 1],
            ["a", "table", [["b", "bool", True]]],
            ["l", "array", [["longstr", "x"]]],
        ]
    }


def test_pids_tell_objects_apart(bench: NodeBench) -> None:
    node, one, other = bench.node, object(), object()
    assert inspect.pid(node, one) != inspect.pid(node, other)
    assert inspect.pid(node, one) == inspect.pid(node, one)


def test_tables_by_their_octets_lose_nothing() -> None:
    table = {"k\udcff": "ä", "b": b"\xff", "d": DecimalValue(2, 5), "a": [Long(1), {"t": "x"}]}
    assert inspect.octets(table) == {
        "octets": [
            ["k\xff", "longstr", "\xc3\xa4"],
            ["b", "binary", "\xff"],
            ["d", "decimal", [2, 5]],
            ["a", "array", [["long", 1], ["table", [["t", "longstr", "x"]]]]],
        ]
    }
