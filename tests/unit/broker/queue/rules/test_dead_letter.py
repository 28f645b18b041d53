"""x-death: what is recorded, how it is merged, when a message has come round."""

from __future__ import annotations

from typing import Any, cast

import pytest

from burrowmq.broker.queue.rules.dead_letter import (
    DeadLetters,
    Death,
    dead_keys,
    is_cycle,
    record,
    routing_keys,
)
from burrowmq.broker.queue.rules.settings import Settings
from burrowmq.broker.report.metrics import NodeMetrics
from burrowmq.protocol.codec import Message, join_address, split_address
from burrowmq.protocol.hidden import Hidden, hidden, with_hidden
from burrowmq.protocol.properties import Properties, build, decode
from burrowmq.protocol.table import Long, Timestamp
from tests.support.fake_scheduler import FakeScheduler
from tests.support.messages import body_of, message


def death(queue: str = "q", reason: str = "expired", routing_key: bytes | None = None) -> Death:
    return Death(
        queue=queue, reason=reason, exchange=b"dlx", routing_key=routing_key, time_s=1_700_000_000
    )


def entry(**fields: Any) -> dict[str, Any]:
    """An entry of x-death with all that one has; None leaves a field out."""
    entry = {
        "count": Long(1),
        "reason": "expired",
        "queue": "q",
        "time": Timestamp(1_400_000_000),
        "exchange": "x",
        "routing-keys": ["k"],
    } | fields
    return {name: value for name, value in entry.items() if value is not None}


def with_deaths(found: Any) -> Message:
    return build(join_address(b"", b"k"), Properties(headers={"x-death": found}), b"")


def headers(found: Message) -> dict[str, Any]:
    return decode(found.raw).headers or {}


def test_the_first_death():
    original = message(b"body", routing_key=b"k", exchange=b"x", expiration="500", persistent=True)
    dead, deaths = record(original, death())
    assert split_address(dead.address) == (b"dlx", b"k")
    assert (body_of(dead.raw), decode(dead.raw).delivery_mode) == (b"body", 2)
    assert decode(dead.raw).expiration is None
    entry = headers(dead)["x-death"][0]
    assert entry == {
        "original-expiration": "500",
        "count": 1,
        "reason": "expired",
        "queue": "q",
        "time": 1_700_000_000,
        "exchange": "x",
        "routing-keys": ["k"],
    }
    assert isinstance(entry["count"], Long)
    assert deaths == [entry]
    for when in ("first", "last"):
        assert headers(dead)[f"x-{when}-death-reason"] == "expired"
        assert headers(dead)[f"x-{when}-death-queue"] == "q"
        assert headers(dead)[f"x-{when}-death-exchange"] == "x"
    assert decode(original.raw).expiration == "500", "the original stays as it was"


def test_a_routing_key_of_the_queue_wins():
    dead, _ = record(message(b"", routing_key=b"k"), death(routing_key=b"other"))
    assert split_address(dead.address)[1] == b"other"


def test_the_same_queue_and_reason_count_up_and_move_to_the_front():
    dead, _ = record(message(b""), death("a"))
    dead, _ = record(dead, death("b"))
    dead, _ = record(dead, death("a", "rejected"))
    dead, deaths = record(dead, death("a"))
    assert [(e["queue"], e["reason"], e["count"]) for e in deaths] == [
        ("a", "expired", 2),
        ("a", "rejected", 1),
        ("b", "expired", 1),
    ]
    found = headers(dead)
    assert (found["x-first-death-queue"], found["x-first-death-reason"]) == ("a", "expired")
    assert (found["x-last-death-queue"], found["x-last-death-reason"]) == ("a", "expired")


def test_what_a_client_put_into_x_death_is_no_trap():
    _, deaths = record(with_deaths(["text", entry(count="many"), entry(queue=5)]), death())
    assert deaths == [entry(time=1_700_000_000, exchange="")]
    _, deaths = record(with_deaths("no list"), death())
    assert len(deaths) == 1


def test_entries_of_old_versions_go_as_in_3_13():
    """Up to RabbitMQ 3.5 each death was an entry of its own, without a count."""
    old = [entry(queue=f"q{n % 4}", count=None) for n in range(23)]
    counted = entry(queue="other", count=Long(7))
    _, deaths = record(with_deaths([*old, counted]), death("q1"))
    assert deaths == [entry(queue="q1", time=1_700_000_000, exchange=""), counted]
    for field in entry():
        _, deaths = record(with_deaths([entry(queue="other") | {field: True}]), death())
        assert len(deaths) == 1, field


def test_a_count_at_the_end_of_64_bits_goes_on_at_their_beginning():
    for found, expected in ((Long(2**63 - 1), -(2**63)), (Timestamp(2**64 - 1), 0), (Long(-1), 0)):
        dead, _ = record(with_deaths([entry(count=found)]), death())
        assert headers(dead)["x-death"][0]["count"] == expected


def test_a_message_that_comes_with_deaths_has_died_before():
    address = join_address(b"", b"k")
    for found, is_first in (([], False), ([{"queue": "a"}], False), ("no list", True)):
        dead, _ = record(build(address, Properties(headers={"x-death": found}), b""), death())
        assert ("x-first-death-queue" in headers(dead)) is is_first
        assert headers(dead)["x-last-death-queue"] == "q"


def test_cc_stands_in_the_record_and_bcc_does_not():
    properties = Properties(headers={"CC": ["c1"], "BCC": ["b1"]})
    original = build(join_address(b"x", b"k"), properties, b"")
    assert routing_keys(original, decode(original.raw)) == [b"k", b"c1", b"b1"]
    _, deaths = record(original, death())
    assert deaths[0]["routing-keys"] == ["k", "c1"]


def test_bcc_keys_stay_until_a_queue_has_a_key_of_its_own():
    original = build(join_address(b"x", b"k"), Properties(headers={"CC": ["c1"]}), b"")
    original = with_hidden(original, Hidden(["b1", "b2"], []))
    dead, deaths = record(original, death())
    assert (hidden(dead).bcc, deaths[0]["routing-keys"]) == (["b1", "b2"], ["k", "c1"])
    assert routing_keys(dead, decode(dead.raw)) == [b"k", b"c1", b"b1", b"b2"]
    assert "BCC" not in headers(dead)
    dead, deaths = record(dead, death("other", routing_key=b"own"))
    assert (hidden(dead).bcc, deaths[0]["routing-keys"]) == ([], ["k", "c1"])


def test_after_a_queue_with_a_key_of_its_own_the_cc_header_is_for_show():
    original = build(join_address(b"x", b"k"), Properties(headers={"CC": ["c1"]}), b"")
    dead, _ = record(original, death("first", routing_key=b"own"))
    for queue in ("second", "third"):
        assert headers(dead)["CC"] == ["c1"]
        assert routing_keys(dead, decode(dead.raw)) == [b"own"]
        dead, deaths = record(dead, death(queue))
        assert [entry["routing-keys"] for entry in deaths][:1] == [["own"]]


@pytest.mark.parametrize("header_max", [0, 400, 1000, 1500, 5000, 1 << 17])
def test_what_a_header_has_no_room_for_is_kept_where_nobody_sees_it(header_max: int):
    """The oldest deaths go first, then all, then the other headers; the message and what is known of it stay."""
    dead = with_hidden(
        build(join_address(b"x", b"k"), Properties(headers={"h": "x" * 200}), b"body"),
        Hidden(["blind"], []),
    )
    limit = max(header_max, len(dead.raw) - len(b"body") - 8)
    for number in range(20):
        dead, deaths = record(dead, death(f"q{number}"), header_max)
        assert len(dead.raw) - len(b"body") - 8 <= limit
    expected = [f"q{number}" for number in reversed(range(20))]
    assert [each["queue"] for each in cast("Any", deaths)] == expected
    shown = headers(dead).get("x-death", [])
    behind = hidden(dead)
    assert [*shown, *behind.deaths] == deaths
    assert behind.bcc == ["blind"]
    assert (headers(dead)["h"], body_of(dead.raw)) == ("x" * 200, b"body")
    if header_max == 1 << 17:
        assert behind.deaths == []
    if header_max >= 1000:
        assert shown
        assert headers(dead)["x-last-death-queue"] == "q19"
        assert headers(dead)["x-first-death-queue"] == "q0"
    dead, deaths = record(dead, death("q3"), header_max)
    assert cast("Any", deaths)[0]["count"] == 2


def test_cycles():
    def of(queue: str, reason: str) -> dict[str, Any]:
        return {"queue": queue, "reason": reason}

    expired = death()
    assert not is_cycle("a", expired, [of("b", "expired")])
    assert is_cycle("a", expired, [of("b", "expired"), of("a", "maxlen")])
    assert not is_cycle("a", expired, [of("b", "rejected"), of("a", "expired")])
    assert is_cycle("a", expired, [of("a", "expired"), of("b", "rejected")])
    assert not is_cycle("a", expired, ["text"])
    assert not is_cycle("a", death(reason="rejected"), [of("a", "expired")])


def test_a_key_of_the_queues_replaces_all_others():
    both = Properties(headers={"CC": ["second"]})
    original = build(join_address(b"x", b"first"), both, b"")
    assert dead_keys(original, death()) == (b"first", b"second")
    assert dead_keys(original, death(routing_key=b"dead")) == (b"dead",)


# -- the queue's part -------------------------------------------------------------------------------------------------


class Sent:
    """A queue's dead letters, and where they went."""

    def __init__(self, **settings: Any) -> None:
        self.found: list[tuple[Death, list[Message]]] = []
        self.totals = NodeMetrics()
        self.letters = DeadLetters(
            "q",
            FakeScheduler(),
            self.totals,
            lambda death, sent: self.found.append((death, [*sent])),
        )
        self.letters.apply(Settings(**settings))


def test_they_go_where_the_settings_in_force_say():
    sent = Sent(dead_letter_exchange="dlx")
    one, other = message(b"1"), message(b"2")
    sent.letters.send("expired", [one])
    sent.letters.apply(Settings(dead_letter_exchange="é", dead_letter_routing_key=b"key"))
    sent.letters.send("maxlen", [other])
    assert sent.found == [
        (death(), [one]),
        (
            Death(
                queue="q",
                reason="maxlen",
                exchange="é".encode(),
                routing_key=b"key",
                time_s=1_700_000_000,
            ),
            [other],
        ),
    ]
    assert sent.totals == NodeMetrics()


def test_without_an_exchange_they_are_dropped_and_counted():
    sent = Sent()
    assert sent.letters.is_off
    sent.letters.send("rejected", [message(b"1"), message(b"2")])
    sent.letters.drop("maxlen", 3)
    assert sent.found == []
    assert (sent.totals.dropped_rejected, sent.totals.dropped_maxlen) == (2, 3)


def test_what_is_rejected_after_the_queues_end_just_goes():
    sent = Sent(dead_letter_exchange="dlx")
    sent.letters.end()
    sent.letters.send("rejected", [message(b"1")])
    assert sent.found == []
    assert sent.totals == NodeMetrics()
