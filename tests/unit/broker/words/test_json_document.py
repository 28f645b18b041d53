"""JSON from outside has a bound on its depth, whatever stands around the deepest place."""

from __future__ import annotations

import json

import pytest

from burrowmq.broker.words.json_document import DEPTH_MAX, BadJson, Reading, parse


@pytest.mark.parametrize("text", ["", "{", "nul", b"\xff", '{"a":1}x'])
def test_what_is_no_json_is_refused(text: str | bytes) -> None:
    with pytest.raises(BadJson):
        parse(text)


@pytest.mark.parametrize(
    ("opening", "closing"), [("[", "]"), ('{"k":', "}"), ('[1,{"k":', "},[]]")]
)
def test_depth_has_a_bound(opening: str, closing: str) -> None:
    levels = DEPTH_MAX // (opening.count("{") + opening.count("["))
    assert parse(opening * levels + "0" + closing * levels)
    for deeper in (levels + 1, 900, 100_000):
        with pytest.raises(BadJson):
            parse(opening * deeper + "0" + closing * deeper)


def read(text: bytes) -> tuple[object, int]:
    """What a reading finds, and in how many steps."""
    reading = Reading(text)
    count = sum(1 for _ in reading.steps())
    return reading.value, count


@pytest.mark.parametrize(
    "text",
    [
        b"{}",
        b' { "a" : [ ] , "b":[1 , {"c":[2,3]}, "x"],"d":{"e":[1]} } ',
        b"[1, 2]",
        b"null",
        '{"ä": ["ö"]}'.encode(),
        '{"a": [1]}'.encode("utf-16"),
        b'{"a": 1, "a": [2]}',
    ],
)
def test_a_long_text_is_read_as_a_short_one(text: bytes) -> None:
    assert read(text)[0] == json.loads(text)


def test_there_is_a_step_for_each_entry() -> None:
    assert read(b'{"a": [1, [2], 3], "b": {"c": [4, 5]}, "d": [6]}')[1] == 4


@pytest.mark.parametrize(
    "text",
    [
        b"", b"{", b"{]", b'{"a"', b'{"a":', b'{"a":[', b'{"a":[1', b'{"a":[1,]}', b'{"a":[1 2]}', b'{"a":1,}', b"{1:2}",
        b'{"a":1}x', b"\xff\xfe\xff", b'{"a":[' + b"[" * 300 + b"]" * 300 + b"]}", b"[" * 100_000,
    ],
)  # fmt: skip
def test_what_is_no_json_is_refused_in_steps_too(text: bytes) -> None:
    with pytest.raises(BadJson):
        read(text)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_what_is_no_number_is_refused(number: str) -> None:
    for text in (number, f'{{"a": [{number}]}}', f'{{"a": {{"b": {number}}}}}'):
        with pytest.raises(BadJson, match=number):
            parse(text)
        with pytest.raises(BadJson, match=number):
            read(text.encode())
    assert parse("[1e300, -0.5]") == read(b"[1e300, -0.5]")[0] == [1e300, -0.5]
