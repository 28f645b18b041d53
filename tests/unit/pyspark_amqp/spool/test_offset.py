# ruff: noqa: E402 - without pyarrow the file is skipped before its imports
from __future__ import annotations

import json

import pytest

pa = pytest.importorskip(
    "pyarrow", reason="pyarrow is not installed: pip install 'burrowmq[spark]'"
)

from pyspark_amqp.spool.offset import PIECE_MAX, BadOffset, Offset, Piece, Share


def test_an_offset_comes_through_json_as_it_was() -> None:
    offset = Offset("s", 7, {"a": Share(3000, 2), "b": Share(1, 1)})
    assert offset.to_json() == {
        "v": 1,
        "stream": "s",
        "seq": 7,
        "plan": {"a": {"n": 3000, "k": 2}, "b": {"n": 1, "k": 1}},
    }
    assert Offset.from_json(json.loads(json.dumps(offset.to_json()))) == offset


@pytest.mark.parametrize(
    "found",
    [
        {},
        {"v": 2, "stream": "s", "seq": 1, "plan": {}},
        {"v": 1, "stream": "s", "seq": 1},
        {"v": 1, "stream": "s", "seq": 1, "plan": {"q": {"n": 1}}},
        {"v": 1, "stream": "s", "seq": 1, "plan": []},
    ],
)
def test_what_is_no_offset_is_refused(found: dict) -> None:
    with pytest.raises(BadOffset):
        Offset.from_json(found)


def test_every_stream_has_a_name_of_its_own() -> None:
    assert Offset.first().stream != Offset.first().stream


def test_nothing_ready_leaves_the_offset() -> None:
    offset = Offset.first()
    assert offset.following({"a": 0}, 100) is offset
    assert offset.following({}, 100) is offset


@pytest.mark.parametrize(
    ("ready", "limit", "counts"),
    [
        ({"a": 10, "b": 20}, None, {"a": 10, "b": 20}),
        ({"a": 10, "b": 20}, 1000, {"a": 10, "b": 20}),
        ({"a": 2, "b": 500, "c": 500}, 100, {"a": 2, "b": 49, "c": 49}),
        ({"a": 500, "b": 0}, 100, {"a": 100}),
        ({"a": 500, "b": 500, "c": 500}, 2, {"a": 1, "b": 1}),
    ],
)
def test_the_limit_is_divided(ready: dict, limit: int | None, counts: dict) -> None:
    offset = Offset("s", 4).following(ready, limit, 3)
    assert (offset.stream, offset.seq) == ("s", 5)
    assert {queue: share.count for queue, share in offset.plan.items()} == counts
    assert {share.consumer_count for share in offset.plan.values()} == {3}


def test_pieces_hold_the_whole_plan() -> None:
    offset = Offset("s", 5, {"a": Share(7, 2), "b": Share(1, 4)})
    assert offset.pieces() == [
        Piece("s", "a", 5, 0, 4),
        Piece("s", "a", 5, 1, 3),
        Piece("s", "b", 5, 0, 1),
    ]
    large = Offset("s", 5, {"a": Share(200_000, 1)}).pieces()
    assert sum(piece.count for piece in large) == 200_000
    assert max(piece.count for piece in large) <= PIECE_MAX
