"""burrowmq.broker.imports.recognise: which messages come again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burrowmq.broker.imports import recognise
from burrowmq.broker.imports.recognise import SIZE, digest, persistent_count
from burrowmq.protocol import properties
from burrowmq.protocol.codec import Message, join_address, load_message
from burrowmq.protocol.properties import Properties, build


def stream(*names: str) -> bytes:
    """Digests of messages; those in capitals are persistent."""
    return b"".join(
        name.lower().encode().ljust(SIZE - 1, b".") + bytes((name.isupper(),)) for name in names
    )


def repeated(known: bytes, expected: int, seen: bytes) -> tuple[bytes, int]:
    """Of a queue to which nobody publishes, as the operator says."""
    return recognise.repeated(known, expected, seen, is_quiet=True)


def live(known: bytes, expected: int, seen: bytes, again: bool | None = True) -> int:
    """How many come again of a queue to which somebody may publish."""
    redelivered = None if again is None else [again] * (len(seen) // SIZE)
    return recognise.repeated(known, expected, seen, is_quiet=False, redelivered=redelivered)[1]


def test_where_somebody_publishes_only_what_is_unmistakable_is_passed_over() -> None:
    known = stream(*"ABCD")
    assert live(known, 2, stream(*"CDXY")) == 2
    assert live(known, 5, stream(*"CDXY")) == 2, "what was published since counts too"
    assert live(known, 2, stream(*"CDXY"), again=None) == 2, "a broker that was started again"
    assert live(known, 2, stream(*"CDXY"), again=False) == 0, "new ones that look like those"
    assert live(known, 1, stream(*"CDXY")) == 0, "the counts say that fewer come again"


def test_what_is_alike_is_stored_again_where_somebody_publishes() -> None:
    assert live(stream(*"AAAA"), 2, stream(*"AAAA")) == 0
    assert live(stream(*"ABAC"), 1, stream(*"CX")) == 1
    assert live(stream(*"ACAC"), 2, stream(*"ACX")) == 0, "the two before may be the ones that came"
    assert live(stream("A"), 1, stream("A"), again=False) == 0, "a new one like the only one so far"


@given(st.lists(st.sampled_from("ABcde"), max_size=20))
def test_persistent_ones_are_counted(names: list[str]) -> None:
    assert persistent_count(stream(*names)) == sum(name.isupper() for name in names)


@given(
    there=st.integers(1, 30),
    stored=st.integers(0, 30),
    acked=st.integers(0, 30),
    published=st.integers(0, 10),
    kinds=st.integers(1, 40),
    delivered=st.integers(0, 30),
)
def test_nothing_is_lost_while_somebody_publishes(
    there: int, stored: int, acked: int, published: int, kinds: int, delivered: int
) -> None:
    """What is taken for known is never more than what is, for contents that come back after `kinds` messages."""
    stored = min(stored, there)
    acked = min(acked, stored)
    delivered = max(stored, min(delivered, there))
    names = [b"%d" % (number % kinds) for number in range(there + published)]
    digests = [name.ljust(SIZE - 1, b".") + b"\1" for name in names]
    seen = b"".join(digests[acked:])
    again = [number < delivered for number in range(acked, there + published)]
    _, count = recognise.repeated(
        b"".join(digests[:stored]),
        stored + (there + published - acked) - there,
        seen,
        is_quiet=False,
        redelivered=again,
    )
    first_again = kinds  # the first content that comes a second time is where nothing can tell it
    if stored <= first_again - 1 or stored > first_again:
        assert count <= stored - acked
    assert count in (0, stored - acked) or stored == first_again


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


def test_what_may_have_come_before_is_told_from_what_has_not() -> None:
    assert recognise.may_be_again(stream(*"AAAA"), stream(*"AAAAAA"))
    assert recognise.may_be_again(stream("A", "b", "C"), stream("A", "C", "D")), "without b"
    assert not recognise.may_be_again(stream(*"ABCD"), stream(*"ABX"))
    assert not recognise.may_be_again(stream(*"ABCD"), b"")
    assert not recognise.may_be_again(b"", stream("A"))


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


def test_what_a_quorum_queue_counts_makes_no_other_message() -> None:
    address = join_address(b"", b"q")
    for headers in (None, {"a": 1}):
        once = build(address, Properties(headers=headers, delivery_mode=2), b"body")
        again = {**(headers or {}), "x-delivery-count": 1}
        assert digest(
            build(address, Properties(headers=again, delivery_mode=2), b"body")
        ) == digest(once)
    other = build(
        address, Properties(headers={"a": 2, "x-delivery-count": 1}, delivery_mode=2), b"body"
    )
    assert digest(other) != digest(once)
    in_the_body = build(address, Properties(delivery_mode=2), b"x-delivery-count")
    assert digest(in_the_body) != digest(
        build(address, Properties(delivery_mode=2), b"x-delivery-counu")
    )


def published(table: bytes, body: bytes) -> Message:
    """A message whose header table has these octets, as a client has published it."""
    address = join_address(b"", b"q")
    frames = build(address, Properties(), body).raw
    head = (60).to_bytes(2, "big") + bytes(2) + len(body).to_bytes(8, "big")
    header = head + (1 << 13).to_bytes(2, "big") + len(table).to_bytes(4, "big") + table
    body_at = 8 + int.from_bytes(frames[3:7], "big")
    raw = b"\x02\0\x01" + len(header).to_bytes(4, "big") + header + b"\xce" + frames[body_at:]
    return load_message(address, raw, len(body), 1 << 13, -1)


def given_back(message: Message) -> Message:
    """The same, delivered again by a quorum queue: its headers are written anew."""
    found = properties.decode(message.raw)
    found.headers = {**(found.headers or {}), "x-delivery-count": 1}
    return properties.rewrite(message, found)


@pytest.mark.parametrize(
    "table",
    [
        b"\x01ai\0\0\0\x01",
        b"",  # what some clients send where there are no headers
        b"\x01aL\0\0\0\x01\0\0\0\0",  # it is written as l
        b"\x01at\x05",
        b"\x01aI\0\0\0\x01\x01aI\0\0\0\x02",  # of two the first counts
    ],
)
def test_however_headers_were_written_a_count_makes_no_other_message(table: bytes) -> None:
    first = [published(table, b"%d" % number) for number in range(3)]
    known = b"".join(map(digest, first))
    seen = b"".join(digest(given_back(each)) for each in first)
    assert repeated(known, 3, seen) == (known, 3)
