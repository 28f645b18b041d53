"""A run cut by where its messages go: both codecs against what is plainly meant."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.amqp_frames import CODECS, flat, publish

EACH_CODEC = pytest.mark.parametrize("codec", CODECS, ids=lambda module: module.NAME)
QUEUES = ["a", "b", "c", "d"]


class Way(NamedTuple):
    """What stands for a route. Equal ones are one, as the broker's are."""

    queues: tuple[str, ...]


ways = st.builds(Way, st.lists(st.sampled_from(QUEUES), unique=True, max_size=4).map(tuple))
runs = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 7)), max_size=30)


def made(codec: Any, run: list[tuple[int, int, int]]) -> list[Any]:
    return [codec.Message(b"\0\1%d" % key, b"", size, flags, 1, 8) for key, size, flags in run]


def described(parts: list[Any]) -> list[tuple[object, ...]]:
    return [(part.target, part.messages, part.flags, part.size) for part in parts]


def expected(messages: list[Any], targets: list[list[Any]]) -> list[tuple[object, ...]]:
    by_target: dict[Any, list[Any]] = {}
    for message, found in zip(messages, targets, strict=True):
        for target in found:
            by_target.setdefault(target, []).append(message)
    result = []
    for target, some in by_target.items():
        flags = 0
        for message in some:
            flags |= message.flags
        result.append((target, some, flags, sum(message.size for message in some)))
    return result


@EACH_CODEC
@given(run=runs, routes=st.lists(ways, min_size=6, max_size=6))
def test_sheaves_and_shares_are_what_goes_one_way(codec, run, routes) -> None:
    messages = made(codec, run)
    known = {b"\0\1%d" % key: route for key, route in enumerate(routes[:4])}
    asked = []

    def resolve(address: bytes) -> Way:
        asked.append(address)
        return routes[int(address[2:])]

    found: list[Way] = []
    codec.look_up(messages, known, {}, resolve, found)
    assert found == [routes[key] for key, _, _ in run]
    assert set(asked) == {message.address for message in messages} - set(known)
    parts = codec.sheaves(messages, found)
    assert described(parts) == expected(messages, [[route] for route in found])
    shares = codec.shares(messages, found)
    assert described(shares) == expected(messages, [list(route.queues) for route in found])


@EACH_CODEC
def test_what_resolve_raises_leaves_the_routes_before_it(codec) -> None:
    messages = made(codec, [(0, 1, 0), (1, 1, 0), (2, 1, 0)])
    found: list[Way] = []

    def resolve(address: bytes) -> Way:
        if address == b"\0\0011":
            raise LookupError(address)
        return Way(())

    with pytest.raises(LookupError):
        codec.look_up(messages, {}, {}, resolve, found)
    assert found == [Way(())]


@EACH_CODEC
@given(st.lists(st.booleans(), max_size=30))
def test_places_of_some_messages(codec, is_wanted: list[bool]) -> None:
    messages = made(codec, [(0, 1, 0)] * len(is_wanted))
    wanted = [place for place, is_one in enumerate(is_wanted) if is_one]
    assert codec.places(messages, [messages[place] for place in wanted]) == wanted


@EACH_CODEC
def test_what_does_not_fit_together_is_refused(codec) -> None:
    first, second = made(codec, [(0, 1, 0), (1, 1, 0)])
    with pytest.raises(ValueError):
        codec.places([first, second], [second, first])
    for cut in (codec.sheaves, codec.shares):
        with pytest.raises(ValueError):
            cut([first], [])


@EACH_CODEC
@settings(max_examples=100)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["", "x"]),
            st.sampled_from(["a", "b", "ключ", "k" * 255]),
            st.booleans(),
            st.sampled_from([b"", b"1", b"22"]),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_a_mixed_run_is_its_messages_and_nothing_else(codec, sent) -> None:
    pieces = [
        publish(1, body, exchange=exchange, routing_key=key, mandatory=mandatory)
        for exchange, key, mandatory, body in sent
    ]
    at_once = codec.HotCodec(131072).feed(b"".join(pieces))
    hot = codec.HotCodec(131072)
    singly = [event for piece in pieces for event in hot.feed(piece)]
    assert flat(at_once) == flat(singly)
    changes = sum(one[2] != other[2] for one, other in pairwise(sent))
    assert len(at_once) == 1 + changes, "flags alone end a run"
    for run in at_once:
        addresses = {message.address for message in run.messages}
        assert run.is_mixed == (len(addresses) > 1)
        assert run.address == run.messages[0].address
        assert len({id(message.address) for message in run.messages}) == len(addresses)
    assert not any(run.is_mixed for run in singly)
