"""broker.replicated.shelf: whatever comes, goes and comes back, each message is in one place, and let go of once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burrowmq.broker.queue.run import LOGGED, returned
from burrowmq.broker.replicated.shelf import Shelf, _counted
from burrowmq.protocol.codec import Message, join_address
from burrowmq.protocol.errors import FrameError
from burrowmq.protocol.properties import Properties, build, decode, rewrite
from burrowmq.protocol.table import Long


def message(body: bytes = b"x") -> Message:
    return build(join_address(b"", b"q"), Properties(), body)


def shelf(told: list[bytes]) -> Shelf:
    return Shelf(told.extend, lambda: 1_000)


def test_what_was_delivered_before_comes_first_and_says_so() -> None:
    one = shelf([])
    one.put(7, b"r7", message(), 0)
    one.put(5, b"r5", message(), 2)
    one.put(8, b"r8", message(), 0)
    one.put(3, b"r3", message(), 1)
    first, second = one.take(10, 1000), one.take(10, 1000)
    assert (list(first.seqs), first.redelivered) == ([3, 5], True)
    assert [decode(each.raw).headers for each in first.messages] == [
        {"x-delivery-count": 1},
        {"x-delivery-count": 2},
    ]
    assert (list(second.seqs), second.redelivered) == ([7, 8], False)
    assert one.take(1, 1) is None


def test_a_run_ends_by_octets_but_one_always_goes() -> None:
    one = shelf([])
    for sequence in (1, 2, 3):
        one.put(sequence, b"r", message(b"x" * 10), 0)
    assert len(one.take(10, 25).messages) == 2
    assert len(one.take(10, 5).messages) == 1


def test_beyond_the_limit() -> None:
    one = shelf([])
    for sequence, count in ((1, 3), (2, 1), (3, 4)):
        one.put(sequence, b"r", message(), count)
    assert one.take_beyond(5) == ([], [])
    sequences, messages = one.take_beyond(2)
    assert (sequences, len(messages), one.count, one.size) == ([1, 3], 2, 1, 1)


def test_only_what_is_here_for_long_is_worked_on() -> None:
    one = shelf([])
    one.put(1, b"r1", message(), 0)
    assert one.grown_old() == []
    one.put(2, b"r2", message(), 0)
    assert one.grown_old() == [b"r1"]
    one.forget([1], None, LOGGED)
    assert one.grown_old() == [b"r2"]


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("put"), st.integers(0, 2)),
            st.tuples(st.just("take"), st.integers(1, 4)),
            st.tuples(st.just("ack"), st.integers(0, 9)),
            st.tuples(st.just("back"), st.integers(0, 9)),
            st.tuples(st.just("clear"), st.just(0)),
        ),
        max_size=60,
    )
)
def test_each_message_is_let_go_of_once(steps: list[tuple[str, int]]) -> None:
    told: list[bytes] = []
    one = shelf(told)
    made: dict[int, Message] = {}
    out: list[int] = []
    gone: list[int] = []
    for what, value in steps:
        match what:
            case "put":
                number = len(made) + 1
                made[number] = message(b"x" * number)
                one.put(number, b"%d" % number, made[number], value)
            case "take":
                run = one.take(value, 1 << 20)
                out += [] if run is None else list(run.seqs)
            case "ack" if out:
                number = out.pop(value % len(out))
                one.forget([number], None, LOGGED)
                one.forget([number], None, LOGGED)  # again is nothing
                gone.append(number)
            case "back" if out:
                number = out.pop(value % len(out))
                entries = returned([number], [made[number]], None, LOGGED, redelivered=True)
                one.give_back(entries, made[number].size)
            case "clear":
                gone += [int(reply) for reply in one.clear()]
    ready = set(made) - set(out) - set(gone)
    assert one.count == len(ready)
    assert one.size == sum(made[number].size for number in ready)
    assert one.held_count == len(ready) + len(out)
    assert len(gone) == len(set(gone))
    assert set(told) <= {b"%d" % number for number in gone}


def test_what_has_expired_leaves_from_the_head_only() -> None:
    told: list[bytes] = []
    shelf = Shelf(told.extend, lambda: 1_000)
    assert not shelf.has_expiries
    for sequence, deadline_ms in ((1, 900), (2, 1_000), (3, 0), (4, 10)):
        shelf.put(sequence, b"%d" % sequence, message(b"x"), 0, deadline_ms)
    assert (shelf.has_expiries, shelf.deadline_ms) == (True, 900)
    seqs, messages = shelf.take_expired()
    assert (seqs, len(messages), shelf.size) == ([1, 2], 2, 2)
    assert (shelf.deadline_ms, shelf.take_expired()) == (0, ([], []))
    assert shelf.live_count(0, 10) == 1  # 4 has expired behind it
    run = shelf.take(10, 100)
    assert run is not None
    shelf.give_back([(3, run.messages[0], 0, LOGGED, True)], 1)
    assert shelf.live_count(0, 10) == 1
    shelf.forget([1, 2, 3, 4], None, LOGGED)
    assert told == [b"1", b"2", b"3", b"4"]


def test_a_header_without_room_for_the_count_of_its_deliveries_is_left_as_it_is() -> None:
    """It is delivered, and so is what is taken with it."""
    full = build(b"\0\x01q", Properties(headers={"h": "x" * 131_043}), b"full")
    with pytest.raises(FrameError):
        rewrite(full, Properties(headers={"h": "x" * 131_043, "x-delivery-count": Long(1)}))
    assert _counted(full, 1) is full
