from __future__ import annotations

import pytest

from pyspark_amqp.options import (
    BadOptions,
    StreamQueueOptions,
    is_stream_queue,
    read_batch_options,
    read_stream_queue_options,
)
from pyspark_amqp.wire.table import Timestamp

QUEUE = {"queue": "a,b"}


def starting(text: str, **more: str) -> dict[str, object]:
    found = read_stream_queue_options({**QUEUE, "startingOffsets": text, **more})
    return dict(found.starting)


def refusal(**options: str) -> str:
    with pytest.raises(BadOptions) as raised:
        read_stream_queue_options({**QUEUE, "startingOffsets": "first", **options})
    return str(raised.value)


def test_what_says_that_queues_are_streams() -> None:
    assert is_stream_queue({"StartingOffsets": "first"})
    assert is_stream_queue({"mode": " Replay "})
    assert not is_stream_queue({"mode": "peek", "queue": "startingOffsets"})


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("first", "first"),
        ("LAST", "last"),
        ("next", "next"),
        ("0", 0),
        (str(1 << 40), 1 << 40),
        ("1970-01-02T00:00:00Z", Timestamp(86400)),
        ("1970-01-02", Timestamp(86400)),
        ("1970-01-02T01:00:00+01:00", Timestamp(86400)),
    ],
)
def test_a_position_for_all(text: str, position: object) -> None:
    found = starting(text)
    assert found == {"a": position, "b": position}
    assert {type(each) for each in found.values()} == {type(position)}


def test_a_position_for_each() -> None:
    assert starting('{"a": 5, "b": "last"}') == {"a": 5, "b": "last"}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"startingOffsets": "oldest"}, "'oldest' is none of first, last, next"),
        ({"startingOffsets": "-1"}, "'-1' is none of"),
        ({"startingOffsets": str(1 << 63)}, "is none of"),
        ({"startingOffsets": "1969-01-01"}, "is before 1970"),
        ({"startingOffsets": "{a"}, "is no JSON object"),
        ({"startingOffsets": '{"a": 1, "c": 2}'}, "c is not in 'queue'"),
        ({"startingOffsets": '{"a": 1}'}, "says nothing of b"),
        ({"queue": ""}, "option 'queue' is missing"),
        ({"mode": "peek"}, "option 'mode' is for batch reads"),
        ({"maxRecordsPerTrigger": "1", "maxOffsetsPerTrigger": "1"}, "are the same option"),
        ({"spoolLocation": "/x"}, "'spoollocation' is not known here: it is for streams and"),
        ({"prefetch": "1"}, "no whole number from 2"),
    ],
)
def test_what_is_wrong_is_told(options: dict[str, str], text: str) -> None:
    assert text in refusal(**options)


def test_a_replay_has_an_end() -> None:
    found = read_batch_options({**QUEUE, "mode": "replay", "endingOffsets": '{"a": 5, "b": 7}'})
    assert isinstance(found, StreamQueueOptions)
    assert found.starting == {"a": "first", "b": "first"}
    assert found.ending == {"a": 5, "b": 7}
    found = read_batch_options({**QUEUE, "mode": "replay", "endingOffsets": "1970-01-02"})
    assert isinstance(found, StreamQueueOptions)
    assert found.ending == {"a": Timestamp(86400), "b": Timestamp(86400)}
    with pytest.raises(BadOptions, match="'last' is no offset and no time: a replay ends before"):
        read_batch_options({**QUEUE, "mode": "replay", "endingOffsets": "last"})
