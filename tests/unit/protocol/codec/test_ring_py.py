"""The ring of a hash exchange in both codecs: where it sends keys, properties and headers, and each other's answers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burrowmq.broker.words.phash2 import UNDEFINED, Atom, field_term, phash2, seed_of_octets
from burrowmq.protocol.codec import _hash_py, join_address
from burrowmq.protocol.constants import PROP_CORRELATION_ID, PROP_MESSAGE_ID, PROP_TIMESTAMP
from burrowmq.protocol.properties import Properties, rewrite
from tests.support.amqp_frames import CODECS
from tests.support.field_values import NAMES, VALUES
from tests.support.messages import message

EACH_CODEC = pytest.mark.parametrize("codec", CODECS, ids=lambda module: module.NAME)
WEIGHTS = st.lists(st.integers(1, 10_000), min_size=1, max_size=12)
OCTETS = seed_of_octets()
TEXT = seed_of_octets(Atom("longstr"))
SHORT = st.text(max_size=60)


def expected(weights: list[int], hashed: int) -> int:
    """The number of the target, counted bucket by bucket."""
    bucket = _hash_py.jump(hashed, sum(weights))
    return next(n for n, end in enumerate(accumulate(weights)) if bucket < end)


def ring(codec: Any, weights: list[int], **what: Any) -> Any:
    given_ = {"seed": OCTETS, "missing": phash2(UNDEFINED), **what}
    return codec.Ring(list(accumulate(weights)), list(range(len(weights))), **given_)


def made_by(codec: Any, properties: Properties) -> Any:
    one = rewrite(message(b"x"), properties)
    return codec.Message(one.address, one.raw, one.size, one.flags, 1, 100)


def refuse(_message: object) -> int:
    raise AssertionError("the ring can say it")


@EACH_CODEC
@given(weights=WEIGHTS, exchange=st.binary(max_size=20), key=st.binary(max_size=255))
def test_a_key_goes_to_the_target_of_its_bucket(codec, weights, exchange, key) -> None:
    address = join_address(exchange, key)
    assert ring(codec, weights).of_key(address) == expected(weights, phash2(key))


@pytest.mark.slow
@EACH_CODEC
@given(
    weights=WEIGHTS,
    prop=st.sampled_from(
        [
            ("message_id", PROP_MESSAGE_ID),
            ("correlation_id", PROP_CORRELATION_ID),
            ("timestamp", PROP_TIMESTAMP),
        ]
    ),
    properties=st.fixed_dictionaries(
        {},
        optional={
            "content_type": SHORT,
            "headers": st.dictionaries(NAMES, VALUES, max_size=3),
            "priority": st.integers(0, 255),
            "correlation_id": SHORT,
            "reply_to": SHORT,
            "message_id": SHORT,
            "timestamp": st.sampled_from([0, 9, 10, 2**32, 2**64 - 1]) | st.integers(0, 2**64 - 1),
            "app_id": SHORT,
        },
    ),
)
def test_a_property_goes_where_its_text_goes(codec, weights, prop, properties) -> None:
    name, flag = prop
    one = made_by(codec, Properties(**properties))
    made = ring(codec, weights, prop=flag)
    value = properties.get(name)
    hashed = phash2(UNDEFINED if value is None else str(value).encode())
    assert codec.look_up_by_ring([one, one], made, refuse) == [expected(weights, hashed)] * 2


@pytest.mark.slow
@EACH_CODEC
@given(
    weights=WEIGHTS,
    name=NAMES,
    headers=st.none() | st.dictionaries(NAMES, VALUES, max_size=5),
    content_type=st.none() | SHORT,
)
def test_a_header_that_is_a_text_goes_where_erlang_sends_it(
    codec, weights, name, headers, content_type
) -> None:
    one = made_by(codec, Properties(headers=headers, content_type=content_type))
    made = ring(codec, weights, seed=TEXT, header=name.encode())
    (found,) = codec.look_up_by_ring([one], made, lambda _: -1)
    value = (headers or {}).get(name, UNDEFINED)
    if value is UNDEFINED:
        assert found == expected(weights, phash2(UNDEFINED))
    elif isinstance(value, str):
        assert found == expected(weights, phash2(field_term(value)))
    else:
        assert found == -1


def twice(headers: list[tuple[bytes, bytes]]) -> bytes:
    """A content header frame whose table has these fields, also one name twice."""
    fields = b"".join(
        bytes((len(name),)) + name + b"S" + len(value).to_bytes(4, "big") + value
        for name, value in headers
    )
    payload = (
        b"\0\x3c\0\0" + bytes(8) + (1 << 13).to_bytes(2, "big") + len(fields).to_bytes(4, "big")
    )
    payload += fields
    return b"\2\0\1" + len(payload).to_bytes(4, "big") + payload + b"\xce"


@EACH_CODEC
def test_a_header_that_is_there_twice_is_left_to_who_decodes(codec) -> None:
    raw = twice([(b"h", b"1"), (b"other", b"x"), (b"h", b"2")])
    one = codec.Message(b"\0\0", raw, 0, 1 << 13, 1, 100)
    made = ring(codec, [5, 5], seed=TEXT, header=b"h")
    assert codec.look_up_by_ring([one], made, lambda _: -1) == [-1]


@EACH_CODEC
def test_what_is_no_ring_is_refused(codec) -> None:
    for ends, targets in (([], []), ([1], []), ([1, 2], ["a"])):
        with pytest.raises(ValueError, match="a ring has"):
            codec.Ring(ends, targets, OCTETS)
    with pytest.raises(ValueError, match="no address"):
        ring(codec, [1]).of_key(b"\x09abc")


@EACH_CODEC
@pytest.mark.parametrize("is_known_first", [True, False])
def test_a_run_is_looked_up_by_routes_then_by_rings(codec, is_known_first) -> None:
    """Three exchanges: one with a ring, one remembered, one that nobody has asked for yet and that gets a ring then."""
    addresses = [
        join_address(exchange, b"%d" % n) for n in range(40) for exchange in (b"r", b"k", b"n")
    ]
    messages = [codec.Message(address, b"", 0, 0, 1, 100) for address in addresses]
    if not is_known_first:
        messages.reverse()
    rings = {b"\1r": ring(codec, [3, 4])}
    routes = {address: 7 for address in addresses if address.startswith(b"\1k")}
    asked: list[bytes] = []

    def resolve(address: bytes) -> int:
        asked.append(address)
        rings[b"\1n"] = ring(codec, [1, 2, 3])
        return int(rings[b"\1n"].of_key(address))

    found: list[int] = []
    codec.look_up(messages, routes, rings, resolve, found)
    say: dict[bytes, Callable[[bytes], int]] = {
        b"\1r": lambda key: expected([3, 4], phash2(key)),
        b"\1k": lambda key: 7,
        b"\1n": lambda key: expected([1, 2, 3], phash2(key)),
    }
    assert found == [say[each.address[:2]](each.address[3:]) for each in messages]
    assert len(asked) == 1
