"""JSON from outside has a bound on its depth, whatever stands around the deepest place."""

from __future__ import annotations

import pytest

from burrowmq.broker.words.json_document import DEPTH_MAX, BadJson, parse


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
