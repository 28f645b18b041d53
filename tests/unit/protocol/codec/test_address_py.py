"""Addresses: two names each behind its length octet; equal ones become one object, of a bounded number."""

from __future__ import annotations

import pytest

from burrowmq.protocol.codec import _address_py
from burrowmq.protocol.codec._address_py import is_sound, join_address, shared, split_address
from burrowmq.protocol.constants import KNOWN_ADDRESSES
from tests.support.amqp_frames import CODECS


@pytest.mark.parametrize("codec", CODECS, ids=lambda module: module.NAME)
@pytest.mark.parametrize("names", [(b"", b""), (b"e", b"key"), (b"e" * 255, b"k" * 255)])
def test_what_is_joined_is_split(codec, names: tuple[bytes, bytes]) -> None:
    address = codec.join_address(*names)
    assert address == bytes((len(names[0]),)) + names[0] + bytes((len(names[1]),)) + names[1]
    assert codec.split_address(address) == split_address(address) == names
    assert codec.split_address(address + b"hidden") == names


@pytest.mark.parametrize(
    ("octets", "is_so"),
    [
        (b"", False),
        (b"\0", False),
        (b"\0\0", True),
        (b"\1e\1k", True),
        (b"\1e\1", False),
        (b"\1e\1kk", False),
        (b"\2e", False),
        (b"\xff", False),
        (join_address(b"e" * 200, b"k" * 200), True),
        (join_address("ключ".encode(), "ключ".encode()), True),
        (join_address(b"\xff", b"k"), False),
        (join_address(b"e", b"\xff"), False),
        (join_address(b"\xd0", b"\xba"), False),
    ],
)
def test_soundness(octets: bytes, is_so: bool) -> None:
    assert is_sound(octets) == is_so


def test_equal_addresses_are_one_and_few_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_address_py, "_known", {})
    first = shared(join_address(b"e", b"k"))
    assert shared(join_address(b"e", b"k")) is first
    for number in range(KNOWN_ADDRESSES):
        shared(join_address(b"e", b"%d" % number))
    assert len(_address_py._known) <= KNOWN_ADDRESSES
    assert shared(join_address(b"e", b"k")) is not first
