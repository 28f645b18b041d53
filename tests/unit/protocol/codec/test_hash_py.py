"""Both codecs' hash of octets and jump: what Erlang/OTP 25 answered, and each other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burrowmq.protocol.codec import _hash_py
from tests.support.amqp_frames import CODECS

EACH_CODEC = pytest.mark.parametrize("codec", CODECS, ids=lambda module: module.NAME)
BINARY = _hash_py.GOLDEN * 13 & 0xFFFFFFFF


@EACH_CODEC
def test_octets_hash_as_erlang_hashes_a_binary(codec) -> None:
    assert codec.hash_octets(b"k0", BINARY) & (1 << 27) - 1 == 92414295
    assert codec.hash_octets(b"", BINARY) & (1 << 27) - 1 == 13708901


@EACH_CODEC
def test_the_plugins_three_queues_get_its_keys(codec) -> None:
    """As RabbitMQ 3.10.8 placed k0 to k29 on three queues of weight 1."""
    placed: list[list[int]] = [[], [], []]
    for number in range(30):
        key = codec.hash_octets(b"k%d" % number, BINARY) & (1 << 27) - 1
        placed[codec.jump(key, 3)].append(number)
    assert placed[0] == [1, 7, 15, 16, 17, 18, 25, 27]
    assert placed[2] == [4, 8, 9, 12, 13, 21, 26, 29]


@EACH_CODEC
def test_one_bucket_more_takes_its_share_and_moves_nothing_else(codec) -> None:
    before = [codec.jump(key, 9) for key in range(900)]
    after = [codec.jump(key, 10) for key in range(900)]
    moved = [new for old, new in zip(before, after, strict=True) if old != new]
    assert set(moved) == {9}
    assert 50 < len(moved) < 130


@given(octets=st.binary(max_size=60), seed=st.integers(0, 2**32 - 1))
def test_both_hash_alike(octets, seed) -> None:
    assert len({codec.hash_octets(octets, seed) for codec in CODECS}) == 1


@given(key=st.integers(0, 2**27 - 1), count=st.integers(1, 10**6))
def test_both_jump_alike(key, count) -> None:
    (bucket,) = {codec.jump(key, count) for codec in CODECS}
    assert 0 <= bucket < count
