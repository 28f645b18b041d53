"""burrowmq.broker.words.resource: names in texts, keys and arguments in rows."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burrowmq.broker.words.resource import (
    Rows,
    check_same_argument,
    check_same_fields,
    describe,
    erlang_term,
    not_found,
    pack_arguments,
    row_key,
    unpack_arguments,
)
from burrowmq.protocol.errors import PreconditionFailed
from burrowmq.protocol.table import (
    Byte,
    DecimalValue,
    FieldTable,
    FieldValue,
    Long,
    Timestamp,
    encode_table,
)
from tests.support.bench.engine import BenchEngine


def test_texts() -> None:
    assert describe("queue", "q{}%s", "/") == "queue 'q{}%s' in vhost '/'"
    assert not_found("exchange", "x", "v").text == "no exchange 'x' in vhost 'v'"


def test_keys_are_unambiguous() -> None:
    assert row_key("a", "b,c") != row_key("a,b", "c")
    assert row_key('a","b') != row_key("a", "b")


@given(st.lists(st.text(st.characters())))
def test_keys_are_json_as_earlier_releases_wrote_it(parts: list[str]) -> None:
    assert row_key(*parts) == json.dumps(parts, ensure_ascii=True, separators=(",", ":"))


def test_arguments_keep_their_types() -> None:
    arguments: FieldTable = {
        "a": Byte(1),
        "b": Long(2),
        "c": Timestamp(3),
        "d": [1, "x", None, {"n": True}],
        "e": b"\xff",
        "f": 1.5,
    }
    assert encode_table(unpack_arguments(pack_arguments(arguments))) == encode_table(arguments)
    assert unpack_arguments(pack_arguments({})) == {}


def test_what_differs_is_told_in_rabbitmqs_words() -> None:
    check_same_fields("queue 'q' in vhost '/'", ("durable", True, True))
    with pytest.raises(PreconditionFailed) as caught:
        check_same_fields("exchange 'e' in vhost '/'", ("durable", True, True), ("type", "x", "y"))
    assert str(caught.value).endswith(
        "inequivalent arg 'type' for exchange 'e' in vhost '/': received 'x' but current is 'y'"
    )
    with pytest.raises(PreconditionFailed, match="received 'true' but current is 'false'"):
        check_same_fields("queue 'q' in vhost '/'", ("durable", True, False))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, "true"),
        (False, "false"),
        (None, "undefined"),
        (12, "12"),
        (1.5, "1.5"),
        ("", "<<>>"),
        (b"", "<<>>"),
        ('a"\\b', '<<"a\\"\\\\b">>'),
        (b"a\xff", '<<"a\ufffd">>'),
        (DecimalValue(scale=2, value=314), "{2,314}"),
        ([1, "x"], '[{signedint,1},{longstr,<<"x">>}]'),
        ({"k": True, "l": []}, '[{<<"k">>,bool,true},{<<"l">>,array,[]}]'),
    ],
)
def test_values_are_printed_as_erlang_does(value: FieldValue, expected: str) -> None:
    assert erlang_term(value) == expected


@pytest.mark.parametrize(
    ("current", "received", "told"),
    [
        ({"k": 1}, {"k": 2}, "received '2' but current is '1'"),
        ({"k": "a"}, {"k": b"b"}, "received 'b' but current is 'a'"),
        ({"k": 1}, {"k": None}, "received none but current is '1'"),
        ({}, {"k": 1}, "received the value '1' of type 'signedint' but current is none"),
        ({"k": "v"}, {}, "received none but current is the value 'v' of type 'longstr'"),
        ({"k": None}, {}, "received none but current is the value 'undefined' of type 'void'"),
    ],
)
def test_an_argument_that_differs_is_told_with_its_type_where_one_side_has_nothing(
    current: FieldTable, received: FieldTable, told: str
) -> None:
    with pytest.raises(PreconditionFailed) as caught:
        check_same_argument("k", current, received, "queue 'q' in vhost '/'")
    assert str(caught.value) == f"inequivalent arg 'k' for queue 'q' in vhost '/': {told}"


@pytest.mark.parametrize(
    ("current", "received"),
    [({}, {}), ({"other": 1}, {}), ({"k": 1}, {"k": Long(1)}), ({"k": "a"}, {"k": "a"})],
)
def test_an_argument_that_means_the_same_is_no_difference(
    current: FieldTable, received: FieldTable
) -> None:
    check_same_argument("k", current, received, "queue 'q' in vhost '/'")


def test_rows_know_whether_what_they_staged_is_on_disk() -> None:
    engine = BenchEngine()
    rows = Rows(engine)
    assert (rows.staged, rows.is_unsynced()) == (0, False)
    rows.put("queue", row_key("/", "q"), {"durable": True})
    rows.delete("queue", row_key("/", "nope"))
    assert (rows.staged, rows.is_unsynced()) == (2, True)
    for is_unsynced in (True, False):  # in flight, and on disk
        engine.require_sync()
        engine.hand_over()
        assert rows.is_unsynced() is is_unsynced
        engine.commit()
