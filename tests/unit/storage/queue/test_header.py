"""The header of every index file tells files made under other terms apart."""

from __future__ import annotations

import pytest

from burrowmq.storage.errors import ForeignStore, LimitChanged, UnknownFormat
from burrowmq.storage.queue import header

IDENTITY = b"i" * 16
MAGICS = (b"BQI1", b"BQJ1")


def found(head: bytes, *, entry_count: int = 64, identity: bytes = IDENTITY) -> int | None:
    return header.read(head, "p", MAGICS, entry_count, identity)


def test_headers_tell_other_terms_apart() -> None:
    head = header.pack(b"BQI1", 5, 64, 3, IDENTITY)
    assert len(head) == header.HEADER_SIZE
    assert found(head) == 3
    with pytest.raises(LimitChanged, match=r"64.*128"):
        found(head, entry_count=128)
    with pytest.raises(ForeignStore):
        found(head, identity=b"j" * 16)
    with pytest.raises(UnknownFormat):
        found(header.pack(b"BQX1", 5, 64, 3, IDENTITY))


def test_a_header_that_is_not_whole_says_nothing() -> None:
    head = header.pack(b"BQI1", 5, 64, 3, IDENTITY)
    assert found(head[:63]) is None
    assert found(bytes(64)) is None
    for at in (0, 10, 40, 63):
        damaged = bytearray(head)
        damaged[at] ^= 1
        assert found(bytes(damaged)) is None
