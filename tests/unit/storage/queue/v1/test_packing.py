"""A run of messages as a block."""

from __future__ import annotations

from burrowmq.storage import record
from burrowmq.storage.queue.entries import new_entries
from burrowmq.storage.queue.header import HEADER_SIZE
from burrowmq.storage.queue.v1.blocks import MESSAGES, blocks_of, entries_in
from burrowmq.storage.queue.v1.packing import pack_run
from tests.support.queue_on_disk import messages
from tests.support.stored_message import FakeMessage

SEED = 77


def block_of(sent: list[FakeMessage]) -> tuple[bytes, list[object]]:
    """Pack a run behind a file's header; gives the file, and the records that its entries lead to."""
    parts, columns = pack_run((3, 1, 10), new_entries(sent, None), HEADER_SIZE, (5, 2), SEED)
    data = bytes(HEADER_SIZE) + b"".join(parts)
    (block,) = blocks_of(data, SEED)
    assert (block.kind, block.segment, block.generation, block.first) == (MESSAGES, 3, 1, 10)
    assert (block.journal, block.durable, block.end) == (5, 2, len(data))
    assert entries_in(data, block, SEED) == columns
    slots = [slot for slot, size in enumerate(columns.sizes) if size]
    offsets = [columns.locations[slot] for slot in slots]
    return data, record.unpack_many(data, offsets, 3, [10 + slot for slot in slots], SEED)


def test_small_messages_are_in_the_block() -> None:
    sent = messages(0, 20)
    _, found = block_of(sent)
    assert found == [message.record for message in sent]


def test_shared_messages_are_entries_only() -> None:
    sent = [*messages(0, 2), *messages(2, 3, handle=40), *messages(5, 1)]
    data, found = block_of(sent)
    assert found == [sent[at].record for at in (0, 1, 5)]
    assert sent[3].raw not in data


def test_a_long_run_is_packed_in_pieces() -> None:
    sent = messages(0, 40, 60_000)
    parts, _ = pack_run((0, 0, 0), new_entries(sent, None), HEADER_SIZE, (1, 0), SEED)
    assert len(parts) > 3
    _, found = block_of(sent)
    assert found == [message.record for message in sent]
