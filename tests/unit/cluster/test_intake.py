"""Messages are asked for ahead of need, whatever becomes of the requests; acknowledgements go many at a time."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burrowmq.cluster.intake import Acks, PullLimits, Pulls
from burrowmq.cluster.pin import Pin
from burrowmq.cluster.wire import Delivered

INBOX = b"in.p.1"
REPLY = b"$JS.ACK.s.c.1.1.1.1.0"


def asked(octets: bytes) -> tuple[int, int]:
    """(number of the request, how many messages it wants)."""
    line, body, end = octets.split(b"\r\n")
    assert end == b""
    fields = line.split()
    assert fields[1] == b"$JS.API.CONSUMER.MSG.NEXT.s.c"
    assert fields[2].startswith(INBOX + b".")
    return int(fields[2].rpartition(b".")[2]), json.loads(body)["batch"]


MESSAGE = Delivered(2, b"q.s", REPLY, b"", b"payload")  # its subject is that of the publish


def status(number: int, text: bytes, pending: int | None = None) -> Delivered:
    left = b"" if pending is None else b"Nats-Pending-Messages: %d\r\n" % pending
    block = b"NATS/1.0 %b\r\n%b\r\n" % (text, left)
    return Delivered(2, b"%b.%d" % (INBOX, number), b"", block, b"")


def opened(credit: int) -> Pulls:
    pulls = Pulls("s", "c", INBOX, PullLimits(expires_ms=30_000, heartbeat_ms=1_000))
    pulls.allow(credit)
    return pulls


def test_nothing_is_asked_without_credit() -> None:
    assert opened(0).poll(0.0) == b""


def test_more_is_asked_for_when_half_has_come() -> None:
    pulls = opened(10)
    assert asked(pulls.poll(0.0)) == (1, 10)
    for _ in range(4):
        assert pulls.delivered(MESSAGE, 1.0)
        assert pulls.poll(1.0) == b""
    assert pulls.delivered(MESSAGE, 1.0)
    assert asked(pulls.poll(1.0)) == (2, 5)
    assert pulls.open_count == 10


def wish(octets: bytes) -> tuple[int, int]:
    """How many messages a request wants, and how many octets: 0 for any."""
    body = json.loads(octets.split(b"\r\n")[1])
    return body["batch"], body.get("max_bytes", 0)


def test_what_is_larger_than_there_is_room_for_comes_alone() -> None:
    pulls = opened(10)
    pulls.allow(10, 5_000)
    assert wish(pulls.poll(0.0)) == (10, 5_000)
    assert pulls.delivered(MESSAGE, 1.0)
    assert not pulls.delivered(status(1, b"409 Message Size Exceeds MaxBytes", 9), 1.0)
    assert pulls.last_status is None
    assert wish(pulls.poll(1.0)) == (1, 0), "at once"
    assert wish(pulls.poll(1.0)) == (9, 5_000)
    assert pulls.poll(1.0) == b""
    assert pulls.open_count == 10


def test_a_request_that_was_filled_is_no_trouble() -> None:
    """The server says so of those with a limit of octets."""
    pulls = opened(2)
    pulls.allow(2, 5_000)
    assert wish(pulls.poll(0.0)) == (2, 5_000)
    for _ in range(2):
        assert pulls.delivered(MESSAGE, 1.0)
    assert not pulls.delivered(status(1, b"409 Batch Completed", 0), 1.0)
    assert pulls.last_status is None
    assert wish(pulls.poll(1.0)) == (2, 5_000), "at once"


def test_without_credit_what_is_large_waits() -> None:
    pulls = opened(1)
    pulls.allow(1, 5_000)
    assert wish(pulls.poll(0.0)) == (1, 5_000)
    pulls.delivered(status(1, b"409 Message Size Exceeds MaxBytes", 1), 1.0)
    pulls.allow(0)
    assert pulls.poll(1.0) == b""
    pulls.allow(1, 5_000)
    assert wish(pulls.poll(2.0)) == (1, 0)


def test_who_has_to_be_pinned_asks_for_any_size() -> None:
    pulls = Pulls("s", "c", INBOX, pin=Pin("s", "c", b"in.p"))
    pulls.allow(10, 5_000)
    assert wish(pulls.poll(0.0)) == (10, 0)


def test_a_single_message_at_a_time_can_be_wanted() -> None:
    pulls = opened(1)
    assert asked(pulls.poll(0.0)) == (1, 1)
    assert pulls.poll(0.0) == b""
    pulls.delivered(MESSAGE, 1.0)
    assert asked(pulls.poll(1.0)) == (2, 1)


def test_a_message_may_have_headers_of_its_own() -> None:
    pulls = opened(1)
    pulls.poll(0.0)
    assert pulls.delivered(MESSAGE._replace(headers=b"NATS/1.0\r\nA: 1\r\n\r\n"), 1.0)
    assert pulls.open_count == 0


@pytest.mark.parametrize(
    ("text", "waits_ms"),
    [(b"408 Request Timeout", 0.0), (b"409 Leadership Change", 100.0), (b"503", 100.0)],
)
def test_a_request_that_the_server_ends_is_made_again(text: bytes, waits_ms: float) -> None:
    pulls = opened(10)
    pulls.poll(0.0)
    pulls.delivered(MESSAGE, 1.0)
    assert not pulls.delivered(status(1, text, pending=9), 2.0)
    if waits_ms:
        assert pulls.poll(2.0) == b""
    assert asked(pulls.poll(2.0 + waits_ms)) == (2, 10)
    assert pulls.last_status is not None
    assert pulls.last_status.status == int(text[:3])


def test_a_heartbeat_keeps_a_request() -> None:
    pulls = opened(10)
    pulls.poll(0.0)
    assert not pulls.delivered(status(1, b"100 Idle Heartbeat"), 2_000.0)
    assert pulls.poll(4_499.0) == b""
    assert pulls.last_status is None
    assert asked(pulls.poll(4_500.0)) == (2, 10)  # and silence ends it


def test_the_rest_of_a_request_that_counts_as_lost_is_taken() -> None:
    pulls = opened(2)
    pulls.poll(0.0)
    pulls.lost()
    assert pulls.delivered(MESSAGE, 1.0)
    assert pulls.open_count == 0


def test_a_request_that_is_long_over_is_forgotten() -> None:
    pulls = opened(10)
    pulls.poll(0.0)
    for _ in range(5):
        pulls.delivered(MESSAGE, 20_000.0)
    assert asked(pulls.poll(20_000.0)) == (2, 5)
    for now_ms in (22_000.0, 24_000.0, 26_000.0, 28_000.0, 30_000.0, 30_999.0):
        pulls.delivered(status(2, b"100 Idle Heartbeat"), now_ms)
        assert pulls.poll(now_ms) == b""
    assert asked(pulls.poll(31_000.0)) == (3, 5)  # the first is


def test_a_status_puts_right_what_was_counted_for_another_request() -> None:
    pulls = opened(10)
    pulls.poll(0.0)
    for _ in range(5):
        pulls.delivered(MESSAGE, 1.0)
    pulls.poll(1.0)
    for _ in range(3):  # by the second request, as the server sees it
        pulls.delivered(MESSAGE, 2.0)
    assert pulls.open_count == 7
    pulls.delivered(status(1, b"408 Request Timeout", pending=5), 3.0)
    assert pulls.open_count == 2
    pulls.delivered(status(2, b"408 Request Timeout", pending=2), 3.0)
    assert pulls.open_count == 0


def test_a_status_that_cannot_be_read_ends_nothing() -> None:
    pulls = opened(2)
    pulls.poll(0.0)
    assert not pulls.delivered(Delivered(2, INBOX + b".1", b"", b"HTTP/1.1\r\n\r\n", b""), 1.0)
    assert pulls.open_count == 2


def test_a_link_that_breaks_takes_all_requests_with_it() -> None:
    pulls = opened(10)
    pulls.poll(0.0)
    pulls.lost()
    assert asked(pulls.poll(0.0)) == (2, 10)


@given(
    st.lists(st.sampled_from(["poll", "message", "status", "silence", "less", "more"]), max_size=60)
)
def test_never_more_is_asked_for_than_there_is_credit(steps: list[str]) -> None:
    credit, now_ms, last = 8, 0.0, 0
    pulls = opened(credit)
    for step in steps:
        now_ms += 1.0
        if step == "message" and pulls.open_count:
            pulls.delivered(MESSAGE, now_ms)
        elif step == "status":
            pulls.delivered(status(last, b"409 Leadership Change"), now_ms)
        elif step == "silence":
            now_ms += 10_000.0
        elif step in ("less", "more"):
            credit = 3 if step == "less" else 8
            pulls.allow(credit)
        before = pulls.open_count
        out = pulls.poll(now_ms)
        if out:
            last, _ = asked(out)
            assert pulls.open_count == credit
        else:
            assert pulls.open_count <= before


def test_acknowledgements_wait_for_company() -> None:
    acks = Acks(collect_count=3, collect_ms=20.0)
    assert acks.due_ms() is None
    assert acks.poll(0.0) == b""
    acks.add([b"a", b"b"], 10.0)
    assert acks.poll(29.0) == b""
    assert acks.due_ms() == 30.0
    assert acks.poll(30.0) == b"PUB a 0\r\n\r\nPUB b 0\r\n\r\n"
    assert acks.poll(100.0) == b""


def test_many_acknowledgements_go_at_once() -> None:
    acks = Acks(collect_count=3)
    acks.add([b"a", b"b"], 10.0)
    acks.add([b"c"], 11.0)
    assert acks.due_ms() == 10.0
    assert acks.poll(11.0).count(b"PUB") == 3


def answering(collect_count: int = 2) -> Acks:
    acks = Acks(collect_count=collect_count)
    acks.inbox = b"in.a"
    return acks


def answer(number: int, headers: bytes = b"") -> Delivered:
    return Delivered(3, b"in.a.%d" % number, b"", headers, b"")


def reply(sequence: int, count: int = 1) -> bytes:
    return b"$JS.ACK.s.c.%d.%d.1.1.0" % (count, sequence)


def test_acknowledgements_that_nobody_answers_are_sent_again_with_growing_pauses() -> None:
    acks = answering()
    acks.add([b"a", b"b"], 0.0)
    whole = b"PUB a 0\r\n\r\nPUB b in.a.1 0\r\n\r\n"
    assert acks.poll(0.0) == whole
    for due_ms in (1_500.0, 4_500.0, 8_500.0):
        assert acks.due_ms() == due_ms
        assert acks.poll(due_ms - 1) == b""
        assert acks.poll(due_ms) == whole
    acks.answered(answer(1), 9_000.0)
    acks.answered(answer(1), 9_000.0)  # of the attempt before
    assert acks.due_ms() is None


def test_acknowledgements_that_nobody_has_heard_are_said_again_soon() -> None:
    acks = answering()
    acks.add([b"a", b"b"], 0.0)
    acks.poll(0.0)
    acks.answered(answer(1, b"NATS/1.0 503\r\n\r\n"), 10.0)
    assert acks.due_ms() == 310.0
    assert acks.poll(310.0).count(b"PUB") == 2
    assert acks.due_ms() == 3_310.0


def test_what_is_not_answered_when_the_link_breaks_goes_by_the_next_one() -> None:
    acks = answering()
    acks.add([b"a", b"b"], 0.0)
    acks.poll(0.0)
    acks.add([b"c"], 1.0)
    acks.lost()
    assert acks.poll(2.0).count(b"PUB") == 2
    assert acks.poll(21.0) == b"PUB c in.a.2 0\r\n\r\n"


def test_it_is_known_which_messages_are_acknowledged_and_not_answered() -> None:
    acks = answering()
    acks.add([reply(7), reply(9)], 0.0)
    assert [acks.has(number) for number in (7, 8, 9)] == [True, False, True]
    acks.poll(0.0)
    acks.add([reply(8)], 1.0)
    assert all(acks.has(number) for number in (7, 8, 9))
    acks.answered(answer(1), 2.0)
    assert [acks.has(number) for number in (7, 8, 9)] == [False, True, False]
    acks.forget()
    assert not acks.has(8)
    assert acks.due_ms() is None


def test_acknowledgements_of_a_consumer_that_is_gone_end() -> None:
    acks = answering()
    acks.add([b"a", b"b"], 0.0)
    acks.poll(0.0)
    now_ms = 0.0
    while (due_ms := acks.due_ms()) is not None:
        now_ms = due_ms
        acks.poll(now_ms)
    assert now_ms >= 60_000.0
