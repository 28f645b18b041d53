"""The one client to whom a consumer gives its messages: how it knows, stays it, and lets go."""

from __future__ import annotations

import json

from burrowmq.cluster.api import ConsumerSettings, create_consumer
from burrowmq.cluster.intake import PullLimits, Pulls
from burrowmq.cluster.pin import PINNED, Pin, pinned_id
from burrowmq.cluster.wire import Delivered, encode_headers

REPLY = b"$JS.ACK.s.c.1.1.1.1.0"
WRONG = b"NATS/1.0 423 Nats-Wrong-Pin-Id\r\n\r\n"


def message(who: bytes = b"") -> Delivered:
    headers = encode_headers([(b"Nats-Pin-Id", who)]) if who else b""
    return Delivered(2, b"s", REPLY, headers, b"payload")


def body(octets: bytes) -> dict[str, object]:
    found = json.loads(octets.split(b"\r\n")[1])
    assert isinstance(found, dict)
    return found


def pin() -> Pin:
    return Pin("s", "c", b"nowhere")


def tended(
    found: Pin, now_ms: float, *, is_consuming: bool = True, is_holding: bool = False
) -> bytes:
    return found.tend(now_ms, is_consuming=is_consuming, is_holding=is_holding)


def test_requests_carry_the_id_once_it_is_known_and_no_longer() -> None:
    found = pin()
    pulls = Pulls("s", "c", b"in", PullLimits(), found)
    pulls.allow(4)
    asked = body(pulls.poll(0.0))
    assert (asked["group"], "id" in asked) == ("sac", False)
    pulls.allow(10)
    pulls.poll(0.0)
    assert pulls.open_count == 10
    assert pulls.delivered(message(b"a"), 1.0)
    assert pulls.open_count == 3  # the second request has no id, and is not served any more
    again = body(pulls.poll(1.0))
    assert (again["batch"], again["id"]) == (7, "a")
    assert found.fields() == {"group": "sac", "id": "a"}
    assert not pulls.delivered(Delivered(2, b"in.1", b"", WRONG, b""), 2.0)
    assert found.fields() == {"group": "sac"}


def test_who_is_alone_is_due_when_there_is_something_to_say_and_not_before() -> None:
    found = pin()
    found.delivered(encode_headers([(b"Nats-Pin-Id", b"a")]), 0.0)
    assert tended(found, 1_400.0, is_consuming=False, is_holding=True) == b""
    for now_ms in (1_700.0, 3_200.0, 4_700.0, 6_200.0):
        tended(found, now_ms, is_consuming=False, is_holding=True)
        due_ms = found.due_ms()
        assert due_ms is not None
        assert due_ms > now_ms, "else the queue is served again and again"
    tended(found, 6_300.0, is_consuming=False, is_holding=False)
    assert found.due_ms() is None


def test_a_second_one_asks_later_than_the_one_that_was_pinned() -> None:
    for who, later_ms in ((b"a", 100.0), (b"", 1_000.0)):
        pulls = Pulls("s", "c", b"in", PullLimits(), pin())
        pulls.allow(2)
        pulls.poll(0.0)
        if who:
            pulls.delivered(message(who), 0.0)
        status = b"NATS/1.0 409 Leadership Change\r\n\r\n"
        pulls.delivered(Delivered(2, b"in.1", b"", status, b""), 0.0)
        assert pulls.poll(later_ms - 1) == b""
        assert pulls.poll(later_ms)


def test_a_pin_is_kept_by_what_brings_nothing() -> None:
    found = pin()
    assert (tended(found, 0.0), found.due_ms()) == (b"", None)
    assert found.delivered(message(b"a").headers, 10.0)
    assert not found.delivered(message(b"a").headers, 20.0)
    assert tended(found, 1_000.0) == b""
    assert found.due_ms() == 1_510.0
    kept = body(tended(found, 1_510.0))
    assert (kept["max_bytes"], kept["no_wait"], kept["id"]) == (1, True, "a")
    assert found.due_ms() == 3_010.0


def test_it_is_let_go_of_when_what_was_said_has_arrived_and_nothing_is_held() -> None:
    found = pin()
    found.delivered(message(b"a").headers, 0.0)
    assert tended(found, 0.0, is_consuming=False, is_holding=True) == b""
    assert found.due_ms() == 1_500.0
    assert b"UNPIN" not in tended(found, 4_900.0, is_consuming=False, is_holding=True)
    assert tended(found, 4_950.0, is_consuming=False).startswith(b"PUB $JS.API.CONSUMER.UNPIN.s.c ")
    assert (found.id, found.let_go()) == ("", b"")
    found.delivered(message(b"b").headers, 0.0)
    tended(found, 0.0, is_consuming=False, is_holding=True)
    assert b"UNPIN" in tended(found, 5_000.0, is_consuming=False, is_holding=True)


def test_who_may_have_lost_it_unpins_nobody() -> None:
    found = pin()
    found.delivered(message(b"a").headers, 0.0)
    found.lost()
    assert found.let_go() == b""
    found.delivered(message(b"a").headers, 0.0)
    found.lost()
    found.delivered(message(b"a").headers, 0.0)
    assert b"UNPIN" in found.let_go()


def test_what_has_no_id_or_is_no_header_says_nothing() -> None:
    found = pin()
    for headers in (b"", b"nonsense", encode_headers([(b"Other", b"x")])):
        assert not found.delivered(headers, 0.0)
    assert found.id == ""


def test_who_is_pinned_is_in_the_consumers_state() -> None:
    assert pinned_id({}) == ""
    groups = [
        {"group": "other", "pinned_client_id": "x"},
        {"group": "sac", "pinned_client_id": "a"},
    ]
    assert pinned_id({"priority_groups": groups}) == "a"
    assert pinned_id({"priority_groups": [{"group": "sac"}]}) == ""
    config = json.loads(create_consumer("s", ConsumerSettings(name="c", more=PINNED)).payload)[
        "config"
    ]
    assert config["priority_groups"] == ["sac"]
    assert (config["priority_policy"], config["priority_timeout"]) == ("pinned_client", 7 * 10**9)
