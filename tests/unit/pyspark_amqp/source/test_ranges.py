from __future__ import annotations

import pytest

pytest.importorskip("pyarrow", reason="needs pyarrow: run by `make test-spark`")

from pyspark_amqp.source.ranges import Range, Ranges
from pyspark_amqp.spool import BadOffset


def test_an_offset_comes_back_as_it_was() -> None:
    found = Ranges({"a": 1, "b": 0}, {"a": 5, "b": 0})
    assert Ranges.from_json(found.to_json()) == found


@pytest.mark.parametrize(
    ("found", "text"),
    [
        ({"v": 1, "stream": "s", "seq": 1, "plan": {}}, "a checkpoint of queues cannot go on"),
        ({"v": 2, "from": {}, "to": {}}, "not an offset of stream queues"),
        ({"v": 1, "from": {"a": 1}}, "not an offset"),
        ({"v": 1, "from": {"a": "x"}, "to": {"a": 1}}, "not an offset"),
        ({"v": 1, "from": {"a": 1}, "to": {"b": 1}}, "not an offset"),
    ],
)
def test_what_is_none_of_ours_is_refused(found: dict[str, object], text: str) -> None:
    with pytest.raises(BadOffset, match=text):
        Ranges.from_json(found)


def test_batches_follow_each_other() -> None:
    first = Ranges().following({"a": 10, "b": 0}, {"a": 30, "b": 4}, 10)
    assert (first.starts, first.ends) == ({"a": 10, "b": 0}, {"a": 16, "b": 4})
    second = first.following({}, {"a": 30, "b": 4}, None)
    assert (second.starts, second.ends) == ({"a": 16, "b": 4}, {"a": 30, "b": 4})
    assert second.following({}, {"a": 30, "b": 4}, None) is second
    assert second.following({}, {"a": 20}, None) is second  # an end that went back


def test_where_a_stream_begins_is_named_before_anything_is_read() -> None:
    found = Ranges().following({"a": 10}, {"a": 10}, None)
    assert (found.starts, found.ends) == ({"a": 10}, {"a": 10})
    assert found.pieces(3) == []
    assert found.following({}, {"a": 10}, None) is found
    later = found.following({"b": 5}, {"a": 10, "b": 6}, None)
    assert later.pieces(1) == [Range("b", 5, 6)]
    empty = Ranges()
    assert empty.following({}, {}, None) is empty


def test_a_range_is_cut_into_parts_in_order() -> None:
    found = Ranges({"a": 0, "b": 7}, {"a": 10, "b": 9})
    assert found.pieces(3) == [
        Range("a", 0, 4),
        Range("a", 4, 7),
        Range("a", 7, 10),
        Range("b", 7, 8),
        Range("b", 8, 9),
    ]


def test_a_batch_reaches_as_far_as_its_messages_do() -> None:
    batch = Ranges({"a": 0, "b": 7}, {"a": 10, "b": 7})
    asked: list[tuple[str, int, int]] = []

    def reach(queue: str, start: int, count: int) -> int:
        asked.append((queue, start, count))
        return 4096 * 3

    assert batch.reaching(reach) == Ranges({"a": 0, "b": 7}, {"a": 4096 * 3, "b": 7})
    assert asked == [("a", 0, 10)]
