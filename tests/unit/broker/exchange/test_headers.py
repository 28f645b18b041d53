"""burrowmq.broker.exchange.headers: which values are equal, which arguments count, what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from burrowmq.broker.exchange.binding import Binding
from burrowmq.broker.exchange.headers import HeadersExchange
from burrowmq.protocol.errors import PreconditionFailed
from burrowmq.protocol.properties import Properties
from burrowmq.protocol.table import DecimalValue, Long, Timestamp
from tests.support.bench.broker import BrokerBench

QUEUE = BrokerBench().queue()


def matches(arguments: dict[str, Any], headers: dict[str, Any]) -> bool:
    exchange = HeadersExchange("x")
    exchange.validate(b"", arguments)
    exchange.bind(Binding(exchange, QUEUE, "queue", b"", arguments))
    return bool(list(exchange.match(b"", lambda: Properties(headers=headers))))


@pytest.mark.parametrize(
    ("arguments", "headers", "expected"),
    [
        ({"a": 1, "b": "x"}, {"a": 1, "b": "x", "c": 3}, True),
        ({"a": 1, "b": "x"}, {"a": 1}, False),
        ({"x-match": "any", "a": 1, "b": "x"}, {"a": 1}, True),
        ({"x-match": "any", "a": 1}, {"a": 2}, False),
        ({"x-match": "all"}, {}, True),
        ({"x-match": "any"}, {"a": 1}, False),
        ({}, {"a": 1}, True),
        ({"x-a": 1}, {}, True),
        ({"x-match": "all-with-x", "x-a": 1}, {}, False),
        ({"x-match": "all-with-x", "x-a": 1}, {"x-a": 1}, True),
        ({"x-match": "any-with-x", "x-a": 1}, {"x-a": 1}, True),
        ({"x-match": "any", "x-a": 1}, {"x-a": 1}, False),
        ({"a": None}, {"a": "whatever"}, True),
        ({"a": None}, {}, False),
        ({"a": 1}, {"a": None}, False),
    ],
)
def test_kinds(arguments: dict[str, Any], headers: dict[str, Any], expected: bool) -> None:
    assert matches(arguments, headers) is expected


@pytest.mark.parametrize(
    ("wanted", "given", "expected"),
    [
        (1, Long(1), True),
        ("a", b"a", True),
        (1, True, False),
        (1, 1.0, False),
        (1.5, 1.5, True),
        (Timestamp(10), Timestamp(10), True),
        (Timestamp(10), Timestamp(11), False),
        (DecimalValue(1, 5), DecimalValue(1, 5), True),
        (["a", 1], ["a", 1], True),
        (["a", 1], ["a", 2], False),
        ({"k": 1}, {"k": 1}, True),
        (["a"], {"a": 1}, False),
        ({}, [], True),
        ([], {}, True),
        ([], None, False),
        ([], "", False),
        ([{}], [[]], False),
        ({"a": {}}, {"a": []}, False),
    ],
)
def test_values(wanted: Any, given: Any, expected: bool) -> None:
    assert matches({"h": wanted}, {"h": given}) is expected


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (
            "foo",
            'Invalid x-match field value <<"foo">>; expected all, any, all-with-x, or any-with-x',
        ),
        (
            "",
            "Invalid x-match field value <<>>; expected all, any, all-with-x, or any-with-x",
        ),
        (1, "Invalid x-match field type signedint (value 1); expected longstr"),
        (True, "Invalid x-match field type bool (value true); expected longstr"),
        (b"all", 'Invalid x-match field type binary (value <<"all">>); expected longstr'),
        (None, "Invalid x-match field type void (value undefined); expected longstr"),
        ([1], "Invalid x-match field type array (value [{signedint,1}]); expected longstr"),
        (
            {"a": 1},
            'Invalid x-match field type table (value [{<<"a">>,signedint,1}]); expected longstr',
        ),
        (
            DecimalValue(1, 5),
            "Invalid x-match field type decimal (value {1,5}); expected longstr",
        ),
    ],
)
def test_bad_kinds_are_refused(value: Any, text: str) -> None:
    with pytest.raises(PreconditionFailed) as caught:
        HeadersExchange("x").validate(b"", {"x-match": value})
    assert caught.value.text == text


def test_unbinding_forgets() -> None:
    exchange = HeadersExchange("x")
    binding = Binding(exchange, QUEUE, "queue", b"", {"a": 1})
    exchange.bind(binding)
    exchange.unbind(binding)
    assert list(exchange.match(b"", lambda: Properties(headers={"a": 1}))) == []


def test_headers_are_not_asked_for_when_nothing_is_bound() -> None:
    def never() -> Properties:
        raise AssertionError("headers were decoded for nothing")

    assert list(HeadersExchange("x").match(b"", never)) == []
