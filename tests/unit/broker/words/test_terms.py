"""burrowmq.broker.words.terms: JSON values as RabbitMQ's texts show them; the expectations are a live node's answers."""

from __future__ import annotations

import pytest

from burrowmq.broker.words.terms import pair, proplist, term


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("abc", '<<"abc">>'),
        ("", "<<>>"),
        ('a"b\\c', '<<"a\\"b\\\\c">>'),
        ("x\ny", '<<"x\\ny">>'),
        ("é", '<<"é"/utf8>>'),
        ("\x00\x01", "<<0,1>>"),
        (10, "10"),
        (-1, "-1"),
        (True, "true"),
        (None, "null"),
        (1.5, "1.5"),
        (100.0, "100.0"),
        (1e10, "1.0e10"),
        (1e-7, "1.0e-7"),
        (-2500000.0, "-2.5e6"),
        ([1, "a"], '[1,<<"a">>]'),
        ([], "[]"),
        ({"b": {"c": 1}, "a": []}, '#{<<"a">> => [],<<"b">> => #{<<"c">> => 1}}'),
    ],
)
def test_terms(value: object, shown: str) -> None:
    assert term(value) == shown


def test_proplists() -> None:
    assert proplist({"foo": 1}) == '[{<<"foo">>,1}]'
    assert proplist([("bar", "x"), ("foo", 1)]) == '[{<<"bar">>,<<"x">>},{<<"foo">>,1}]'


def test_a_pair_is_broken_where_the_line_gets_too_long() -> None:
    assert pair("nothing to repeat", 0, 53) == '{"nothing to repeat",0}'
    assert pair("\\ at end of pattern", 1, 53) == ('{"\\\\ at end of pattern",\n' + " " * 54 + "1}")
