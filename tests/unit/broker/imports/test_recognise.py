"""burrowmq.broker.imports.recognise: which messages come again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from burrowmq.broker.imports.recognise import SIZE, digest, repeated
from burrowmq.protocol.codec import join_address, load_message
from burrowmq.protocol.properties import Properties, build


def stream(*names: str) -> bytes:
    """Digests of messages; those in capitals are persistent."""
    return b"".join(
        name.lower().encode().ljust(SIZE - 1, b".") + bytes((name.isupper(),)) for name in names
    )


def test_the_counts_say_it_where_messages_are_alike() -> None:
    known, seen = stream(*"AAAA"), stream(*"AAAAAA")
    assert repeated(known, 2, seen) == (known, 2)
    assert repeated(known, 0, seen) == (known, 0)


def test_where_nothing_tells_which_of_alike_messages_come_again_they_come_twice() -> None:
    """One transient message is enough for the counts not to be exact: the others must not be taken for known."""
    known = stream(*"AAAAAa")
    assert repeated(known, 2, stream(*"AAAA"))[1] == 0
    assert repeated(stream(*"aaaa"), 1, stream(*"aaa"))[1] == 0


def test_what_somebody_published_there_meanwhile_is_new() -> None:
    known = stream(*"ABCD")
    assert repeated(known, 3, stream(*"CDXY")) == (known, 2)
    assert repeated(known, 3, stream(*"XYZ")) == (known, 0)


def test_what_was_lost_there_is_not_waited_for() -> None:
    known = stream(*"ABCD")
    assert repeated(known, -2, stream(*"DEF")) == (known, 1)


def test_a_killed_broker_gives_back_what_is_persistent() -> None:
    known = stream("A", "b", "C", "d", "E")
    assert repeated(known, 1, stream("C", "E", "F")) == (stream("A", "C", "E"), 2)


def test_nothing_comes() -> None:
    assert repeated(stream("A"), 0, b"") == (stream("A"), 0)
    assert repeated(b"", 3, stream("A")) == (b"", 0)


def test_a_digest_in_the_middle_of_two_is_none() -> None:
    known = stream("A", "B")
    assert repeated(known, -1, known[8 : 8 + SIZE])[1] == 0


@given(
    total=st.integers(0, 40),
    stored=st.integers(0, 40),
    acked=st.integers(0, 40),
    kinds=st.integers(1, 5),
)
def test_a_quiet_queue_is_never_mistaken(total: int, stored: int, acked: int, kinds: int) -> None:
    """Whatever was stored and acked: what is taken for known is exactly what is."""
    stored = min(stored, total)
    acked = min(acked, stored)
    names = ["ABCDE"[number * 7 % kinds] for number in range(total)]
    known, seen = stream(*names[:stored]), stream(*names[acked:])
    assert repeated(known, stored + (total - acked) - total, seen) == (known, stored - acked)


def test_frames_and_channels_make_no_difference() -> None:
    one = build(join_address(b"x", b"k"), Properties(delivery_mode=2), b"y" * 300_000)
    raw = bytearray(one.raw)
    raw[1:3] = b"\0\7"
    other = load_message(one.address, bytes(raw), one.size, one.flags, -1)
    assert digest(one)[:-1] == digest(other)[:-1]
    assert digest(one)[-1] & 1
    assert not digest(build(one.address, Properties(), b"y"))[-1] & 1
    elsewhere = build(join_address(b"x", b"l"), Properties(delivery_mode=2), b"y" * 300_000)
    assert digest(elsewhere) != digest(one)
