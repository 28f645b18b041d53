"""What is asked of JetStream, and what its answers are taken for."""

from __future__ import annotations

import json

import pytest

from burrowmq.cluster import api
from burrowmq.cluster.api import Outcome, Place, PublishAnswer, Refusal
from burrowmq.cluster.wire import Delivered, decode_headers


def said(payload: object, headers: bytes = b"") -> Delivered:
    octets = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return Delivered(1, b"in.1", b"", headers, octets)


def refused(error: int, text: str = "why", code: int = 400) -> Delivered:
    return said({"error": {"code": code, "err_code": error, "description": text}})


def test_a_stream_is_replicated_refuses_what_is_new_and_takes_batches() -> None:
    request = api.create_stream(api.StreamSettings(name="Q_1", subjects=("q.1",), messages_max=5))
    assert request.subject == b"$JS.API.STREAM.CREATE.Q_1"
    body = json.loads(request.payload)
    assert body["num_replicas"] == 3
    assert body["discard"] == "new"
    assert body["retention"] == "workqueue"
    assert body["allow_atomic"] is True
    assert body["duplicate_window"] == 600 * 10**9
    assert body["max_msgs"] == 5


def test_a_consumer_is_durable_and_wants_each_message_acknowledged() -> None:
    request = api.create_consumer("Q_1", api.ConsumerSettings(name="c"))
    assert request.subject == b"$JS.API.CONSUMER.CREATE.Q_1.c"
    config = json.loads(request.payload)["config"]
    assert (config["durable_name"], config["ack_policy"]) == ("c", "explicit")
    assert config["max_deliver"] == -1  # who gives up is the front-end: it dead-letters
    assert config["ack_wait"] == 10 * 10**9


@pytest.mark.parametrize(
    ("request_", "subject"),
    [
        (api.stream_state("s"), b"$JS.API.STREAM.INFO.s"),
        (api.delete_stream("s"), b"$JS.API.STREAM.DELETE.s"),
        (api.purge_stream("s"), b"$JS.API.STREAM.PURGE.s"),
        (api.step_down("s"), b"$JS.API.STREAM.LEADER.STEPDOWN.s"),
        (api.consumer_state("s", "c"), b"$JS.API.CONSUMER.INFO.s.c"),
    ],
)
def test_what_has_no_settings_is_asked_without_a_body(
    request_: api.Request, subject: bytes
) -> None:
    assert request_ == (subject, b"", b"")


def test_messages_are_asked_for() -> None:
    request = api.pull("s", "c", 50, expires_ms=1000, heartbeat_ms=500)
    assert request.subject == b"$JS.API.CONSUMER.MSG.NEXT.s.c"
    wanted = {"batch": 50, "expires": 10**9, "idle_heartbeat": 5 * 10**8}
    assert json.loads(request.payload) == wanted
    assert json.loads(api.get_message("s", 7).payload) == {"seq": 7}
    assert api.trim_stream("s", 7) == (b"$JS.API.STREAM.PURGE.s", b'{"seq": 7}', b"")


@pytest.mark.parametrize(
    ("state", "consumer", "expected"),
    [
        ((4, 400, 3, 6), (4, 2, 2), (4, 400, 3, 2, 5)),  # 3 and 4 are handed out, 5 and 6 are not
        ((4, 400, 3, 6), (6, 5, 1), (1, 100, 3, 5, 0)),  # 3 to 5 are to be trimmed
        ((4, 400, 3, 6), (9, 6, 2), (2, 200, 3, 6, 0)),  # answered later than the stream
        ((0, 0, 7, 6), (2, 2, 0), (0, 0, 7, 2, 0)),  # purged, before all was delivered
        ((2, 200, 1, 6), (6, 0, 2), (2, 200, 1, 0, 0)),  # a work queue: 1 and 4 are left
        ((0, 0, 1, 0), (0, 0, 0), (0, 0, 1, 0, 0)),
    ],
)
def test_how_much_there_is_is_what_is_not_acknowledged(
    state: tuple[int, ...], consumer: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    names = ("messages", "bytes", "first_seq", "last_seq")
    delivered, floor, pending = consumer
    found = {
        "delivered": {"stream_seq": delivered},
        "ack_floor": {"stream_seq": floor},
        "num_ack_pending": pending,
    }
    stream = {"state": dict(zip(names, state, strict=True))}
    behind = max(0, state[3] - max(delivered, state[2] - 1))
    assert api.depth_of(stream, found) == (*expected, False, behind)
    assert api.depth_of(stream, found | {"num_waiting": 1}) == (*expected[:4], 0, True, behind)
    assert api.depth_of({}, {}).message_count == 0


@pytest.mark.parametrize(
    ("delivered", "expected"),
    [
        (said({"a": 1}), {"a": 1}),
        (refused(10059, "stream not found", 404), Refusal(404, 10059, "stream not found")),
        (said({"error": {}}), Refusal(0, 0, "no reason is given")),
        (said(b"", b"NATS/1.0 503\r\n\r\n"), Refusal(503, 0, "no responders")),
        (
            said(b"", b"NATS/1.0 404 Message Not Found\r\n\r\n"),
            Refusal(404, 0, "Message Not Found"),
        ),
        (said(b"", b"HTTP\r\n\r\n"), Refusal(0, 0, "not a block of headers: 'HTTP\\r\\n\\r\\n'")),
        (said(b"{"), Refusal(0, 0, "an answer that is not JSON")),
        (said([]), Refusal(0, 0, "an answer that is not a JSON object")),
    ],
)
def test_an_answer_is_a_document_or_a_refusal(delivered: Delivered, expected: object) -> None:
    assert api.answer(delivered) == expected


@pytest.mark.parametrize(
    ("delivered", "outcome"),
    [
        (said({"stream": "s", "seq": 9}), Outcome.STORED),
        (said({"stream": "s", "seq": 9, "duplicate": True}), Outcome.STORED),
        (refused(10201, "atomic publish batch contains duplicate message id"), Outcome.STORED),
        (said(b"", b"NATS/1.0 503\r\n\r\n"), Outcome.AGAIN),
        (said({"stream": "s"}), Outcome.AGAIN),
        (said(b"?"), Outcome.AGAIN),
        (refused(10158, "duplicate message id is in process", 409), Outcome.AGAIN),
        (refused(10176, "atomic publish batch is incomplete"), Outcome.AGAIN),
        (refused(10210, "atomic publish too many inflight", 429), Outcome.AGAIN),
        (refused(10077, "maximum messages exceeded", 503), Outcome.FULL),
        (refused(10077, "maximum bytes exceeded", 503), Outcome.FULL),
        (refused(10077, "no space left on device", 503), Outcome.AGAIN),
        (refused(10054, "message size exceeds maximum allowed"), Outcome.REFUSED),
        (refused(10174, "atomic publish is disabled"), Outcome.REFUSED),
    ],
)
def test_what_is_known_of_a_publish(delivered: Delivered, outcome: Outcome) -> None:
    assert api.publish_answer(delivered).outcome is outcome


def test_a_publish_that_is_stored_has_a_sequence() -> None:
    assert api.publish_answer(said({"seq": 9})) == PublishAnswer(Outcome.STORED, "", 9)


@pytest.mark.parametrize("count", [2, 3, 1000])
def test_a_batch_has_its_id_in_front_and_commits_behind(count: int) -> None:
    found = [decode_headers(block).values for block in api.batch_headers(b"b", b"m", count)]
    assert len(found) == count
    assert all(each["Nats-Batch-Id"] == "b" for each in found)
    assert [int(each["Nats-Batch-Sequence"]) for each in found] == list(range(1, count + 1))
    assert [each.get("Nats-Msg-Id") for each in found] == ["m"] + [None] * (count - 1)
    assert [each.get("Nats-Batch-Commit") for each in found] == [None] * (count - 1) + ["1"]


def test_a_single_message_has_an_id() -> None:
    assert decode_headers(api.single_headers(b"m")).values == {"Nats-Msg-Id": "m"}


@pytest.mark.parametrize(
    ("reply", "place"),
    [
        (b"$JS.ACK.s.c.2.31.7.1790000000000000000.5", Place(31, 2)),
        (b"$JS.ACK._.HASH.s.c.1.3.3.1790000000000000000.0", Place(3, 1)),
        (b"_INBOX.1", None),
        (b"$JS.ACK.s", None),
        (b"$JS.ACK.s.c.2.31.7.then.5", None),
    ],
)
def test_a_reply_subject_says_which_message_it_is(reply: bytes, place: Place | None) -> None:
    assert api.place_of(reply) == place


def test_when_a_message_was_stored_is_said_in_milliseconds() -> None:
    assert api.stored_ms(b"$JS.ACK.s.c.2.31.7.1790000000123456789.5") == 1790000000123


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        (
            {"leader": "b", "replicas": [{"name": "c", "offline": True}, {"name": "a"}]},
            ("b", ("a", "b", "c"), ("a", "b")),
        ),
        (  # what nats-server 2.15 says of one that is suspended, or was killed
            {
                "leader": "b",
                "replicas": [
                    {"name": "a", "current": True, "active": 4_999_999_999},
                    {"name": "c", "current": True, "active": 5_000_000_000},
                ],
            },
            ("b", ("a", "b", "c"), ("a", "b")),
        ),
        (  # and what a leader that was elected after that says of one that it has never heard
            {
                "leader": "b",
                "replicas": [
                    {"name": "a", "current": False, "active": 7_000_000, "lag": 1},
                    {"name": "c", "current": False, "active": 0},
                ],
            },
            ("b", ("a", "b", "c"), ("a", "b")),
        ),
        ({"replicas": [{"name": "c"}, "nonsense"]}, ("", ("c",), ("c",))),
        ({"leader": "a", "replicas": None}, ("a", ("a",), ("a",))),
        (None, ("", (), ())),
    ],
)
def test_who_keeps_a_stream(cluster: object, expected: tuple[object, ...]) -> None:
    assert api.members_of({"cluster": cluster}) == expected


def test_a_leader_may_be_named() -> None:
    subject, payload, *_ = api.step_down("s", "n2")
    assert subject == b"$JS.API.STREAM.LEADER.STEPDOWN.s"
    assert json.loads(payload) == {"placement": {"preferred": "n2"}}
