"""The blocks of journals and segment files."""

from __future__ import annotations

from burrowmq.storage.queue import header as index_header
from burrowmq.storage.queue.v1 import blocks as queue_blocks


def test_acks_are_ranges() -> None:
    block = queue_blocks.pack_acks(3, 0, 0b1110_0001, 0, 7)
    data = bytes(index_header.HEADER_SIZE) + block
    (found,) = queue_blocks.blocks_of(data, 7)
    assert (found.kind, found.segment, found.rows) == (queue_blocks.ACKS, 3, 2)
    assert queue_blocks.acked_by(data, found) == 0b1110_0001
    assert list(queue_blocks.blocks_of(data, 8)) == []
    torn = data[:-1] + b"\xff"
    (found,) = queue_blocks.blocks_of(torn, 7)
    assert queue_blocks.acked_by(torn, found) == 0
