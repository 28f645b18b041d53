"""A bucket's requests, and what a watch makes of what comes."""

from __future__ import annotations

import json

import pytest

from burrowmq.cluster.api import Refusal
from burrowmq.cluster.bucket import AT_ONCE, Bucket, Ended, Entry, Watch, current_revision
from burrowmq.cluster.wire import Delivered, decode_headers, encode_headers

BUCKET = Bucket("b", 3)


def delivered(own: int, payload: bytes = b"", headers: bytes = b"", rest: int = 0) -> Delivered:
    subject = f"$KV.b.{BUCKET.token('queue', 'k')}".encode()
    return Delivered(
        1, subject, b"$JS.ACK.KV_b.w.1.%d.%d.0.%d" % (own + 40, own, rest), headers, payload
    )


def status(line: bytes, *pairs: tuple[bytes, bytes]) -> Delivered:
    head = encode_headers(pairs).replace(b"NATS/1.0", b"NATS/1.0 " + line)
    return Delivered(1, b"in", b"", head, b"")


def test_a_row_is_written_where_its_revision_is_known() -> None:
    request = BUCKET.put("queue", "k", {"a": 1}, 7)
    assert request.subject == b"$KV.b." + BUCKET.token("queue", "k").encode()
    assert json.loads(request.payload) == {"key": "k", "row": {"a": 1}}
    values = decode_headers(request.headers).values
    assert values == {"Nats-Expected-Last-Subject-Sequence": "7"}


def test_a_removed_row_leaves_a_marker_that_has_its_time() -> None:
    request = BUCKET.put("queue", "k", None, 7)
    assert request.payload == b""
    values = decode_headers(request.headers).values
    assert (values["KV-Operation"], values["Nats-TTL"]) == ("DEL", "3600s")


def test_it_keeps_one_message_a_subject_on_so_many_servers() -> None:
    made = json.loads(BUCKET.create().payload)
    assert (made["max_msgs_per_subject"], made["num_replicas"], made["storage"]) == (1, 3, "file")
    assert json.loads(Bucket("b", 1, is_in_memory=True).create().payload)["storage"] == "memory"


def test_a_watch_gives_rows_in_their_order_and_says_how_many_are_left() -> None:
    watch = Watch(BUCKET, "w", b"in")
    row = json.dumps({"key": "k", "row": {"a": 1}}).encode()
    token = BUCKET.token("queue", "k")
    assert watch.delivered(delivered(1, row, rest=1)) == Entry(token, "k", {"a": 1}, 41, 1)
    found = watch.delivered(delivered(2, headers=encode_headers([(b"KV-Operation", b"DEL")])))
    assert found == Entry(token, "", None, 42, 0)
    assert isinstance(found, Entry)
    assert found.kind == "queue"
    assert watch.delivered(delivered(3, b"not ours")) == Entry(token, "", None, 43, 0)


@pytest.mark.parametrize(
    "said",
    [
        delivered(2),
        status(b"100 Idle", (b"Nats-Last-Consumer", b"3")),
        status(b"409 Consumer Deleted"),
        Delivered(1, b"in", b"", b"nonsense", b""),
    ],
)
def test_a_watch_that_has_missed_something_is_over(said: Delivered) -> None:
    assert isinstance(Watch(BUCKET, "w", b"in").delivered(said), Ended)


def test_more_is_asked_for_when_nothing_is_left_or_the_time_is_over() -> None:
    watch = Watch(BUCKET, "w", b"in")
    assert b"$JS.API.CONSUMER.MSG.NEXT.KV_b.w in " in watch.poll()
    assert watch.poll() == b""
    assert watch.delivered(status(b"100 Idle", (b"Nats-Last-Consumer", b"0"))) is None
    assert watch.poll() == b""
    assert watch.delivered(status(b"408 Request Timeout")) is None
    assert watch.poll() != b""
    for number in range(AT_ONCE):
        assert watch.poll() == b""
        watch.delivered(delivered(number + 1))
    assert watch.poll() != b""


def test_the_refusal_of_a_wrong_revision_says_the_right_one() -> None:
    assert current_revision(Refusal(400, 10071, "wrong last sequence: 12")) == 12
    assert current_revision(Refusal(400, 10071, "wrong last sequence")) == 0
